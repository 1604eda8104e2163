"""Markdown has form and nothing else: no link, no picture, no attribute, and no word of it goes missing."""

from __future__ import annotations

import re
from html import unescape

import nh3
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memadmin.web import markdown
from memadmin.web.markdown import ELEMENTS, render
from memadmin.web.safe_text import write_out_invisible
from tests.hostile import CORPUS

MARK = re.compile(r"</?mark>")
TAGS = re.compile(r"<[^>]*>")
ALLOWED = re.compile(rf"</?(?:{'|'.join(ELEMENTS)})>|<ol start=\"\d+\">|<span class=\"masked\">|</span>|</?mark>")
MARKUP = st.text(st.sampled_from("ab1 \n\t*_`#>-+.|[]()!<>&\"'~\\:/=;{}\u00e9\u202e"), max_size=80)


def words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", text))


def assert_sound(text: str, highlight: re.Pattern[str] | None = None) -> None:
    html = render(text, highlight)
    assert not [tag for tag in TAGS.findall(html) if not ALLOWED.fullmatch(tag)]
    # A mark may begin and end inside a word.
    shown = TAGS.sub(" ", MARK.sub("", html))
    assert words(write_out_invisible(text)) <= words(unescape(shown))
    assert "\u202e" not in html


@pytest.mark.parametrize("text", CORPUS.values(), ids=CORPUS)
def test_hostile_text_has_form_and_nothing_else(text: str) -> None:
    assert_sound(text)


@given(MARKUP | st.text())
def test_any_text_has_form_and_nothing_else(text: str) -> None:
    assert_sound(text)


@given(MARKUP | st.text(), MARKUP | st.text(min_size=1, max_size=3))
@example("aé", "a")
def test_marks_add_nothing_but_marks(text: str, searched: str) -> None:
    highlight = re.compile(re.escape(searched))
    assert_sound(text, highlight)
    plain = [TAGS.sub("", render(text, pattern)) for pattern in (None, highlight)]
    assert unescape(plain[0]) == unescape(plain[1])


@pytest.mark.parametrize(
    ("text", "searched", "shown"),
    [
        ("**tea** & tea", "tea", "<p><strong><mark>tea</mark></strong> &amp; <mark>tea</mark></p>"),
        ("a < b", "<", "<p>a <mark>&lt;</mark> b</p>"),
        ("R&amp;D", "amp", "<p>R&amp;<mark>amp</mark>;D</p>"),
        ("5. strong", "strong|ol|start", '<ol start="5">\n<li><mark>strong</mark></li>\n</ol>'),
        ("to**day**", "today", "<p>to<strong>day</strong></p>"),
        ("[card •••• 4242]", "card|4242", '<p><span class="masked">card •••• 4242</span></p>'),
    ],
)
def test_what_was_searched_for_is_marked_in_the_text_alone(text: str, searched: str, shown: str) -> None:
    assert render(text, re.compile(searched)).strip() == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**b** *i* ~~s~~ `c`", "<p><strong>b</strong> <em>i</em> <s>s</s> <code>c</code></p>"),
        ("# Head", "<p><strong>Head</strong></p>"),
        ("5. five\n6. six", '<ol start="5">\n<li>five</li>\n<li>six</li>\n</ol>'),
        ("[read](https://example.com/a?b=1&c=2)", "<p>read (https://example.com/a?b=1&amp;c=2)</p>"),
        ('[read](https://example.com "title")', "<p>read (https://example.com title)</p>"),
        ("![x](https://example.com/x.png)", "<p>!x (https://example.com/x.png)</p>"),
        ("<https://example.com> www.example.com", "<p>&lt;https://example.com&gt; www.example.com</p>"),
        ("[a]: https://example.com", "<p>[a]: https://example.com</p>"),
        ("[x](javascript:hostile)", "<p>[x](javascript:hostile)</p>"),
        ("```python\nx < 1\n```", "<p>python</p><pre><code>x &lt; 1\n</code></pre>"),
        ("&#8238;&lt;b&gt;", "<p>&amp;#8238;&amp;lt;b&amp;gt;</p>"),
        ("pay to [card •••• 4242]", '<p>pay to <span class="masked">card •••• 4242</span></p>'),
        ("|a|b|\n|-|-|\n|1|2|hidden|", "<pre>|a|b|\n|-|-|\n|1|2|hidden|</pre>"),
    ],
)
def test_form(text: str, shown: str) -> None:
    assert render(text).strip() == shown


def test_a_renderer_that_lets_html_through_is_caught_by_the_cleaner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the two stands alone: here the first one fails, in the next test the second."""
    careless = MarkdownIt("commonmark", {"html": True}, renderer_cls=markdown.Plain)
    monkeypatch.setattr(markdown, "reader", careless)
    for text in CORPUS.values():
        html = render(text)
        assert not [tag for tag in TAGS.findall(html) if not ALLOWED.fullmatch(tag)], text


def test_without_the_cleaner_the_renderer_still_lets_no_html_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nh3, "clean", lambda html, **rules: html)
    for text in CORPUS.values():
        for tag in TAGS.findall(render(text)):
            assert ALLOWED.fullmatch(re.sub(r' style="text-align:\w+"', "", tag)) or tag == "<hr />", text


def test_without_both_the_test_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    careless = MarkdownIt("commonmark", {"html": True}, renderer_cls=markdown.Plain)
    monkeypatch.setattr(markdown, "reader", careless)
    monkeypatch.setattr(nh3, "clean", lambda html, **rules: html)
    with pytest.raises(AssertionError):
        assert_sound(CORPUS["script"])
