"""What agents and their users wrote is shown, whatever it is."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from memadmin.web.safe_text import SHOWN_CHARACTERS, SHOWN_STRING, mark_matches, pretty_json, write_out_invisible

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=20,
)


def text_of(shown: str) -> str:
    return html.unescape(re.sub(r"</?span[^>]*>", "", shown))


@given(VALUES)
def test_shown_json_reads_back_as_the_same_value(value: Any) -> None:
    assert json.loads(text_of(pretty_json(value))) == value


def test_shown_json_is_indented_as_everywhere() -> None:
    value = {"pnr": "QX7F2L", "paid": {"amount": 418.6, "by": []}, "legs": [1, {}, None, True]}
    assert text_of(pretty_json(value)) == json.dumps(value, indent=2)


def test_keys_strings_and_numbers_are_told_apart() -> None:
    shown = pretty_json({"a": ["b", 1, None]})
    assert '<span class="j-key">&quot;a&quot;</span>: ' in shown
    assert '<span class="j-str">&quot;b&quot;</span>' in shown
    assert '<span class="j-num">1</span>' in shown
    assert '<span class="j-num">null</span>' in shown


@pytest.mark.parametrize(
    "place",
    [lambda text: text, lambda text: {text: 1}, lambda text: [{"a": [text]}]],
    ids=["alone", "as key", "inside"],
)
def test_markup_stays_text(place: Any) -> None:
    shown = pretty_json(place("</span></pre><script>alert(1)</script><img src=x onerror='a'>"))
    assert re.findall(r"<(?!/?span)", shown) == []
    assert "onerror=&#x27;" in shown


def test_depth_does_not_matter() -> None:
    value: Any = "the bottom"
    for _ in range(100_000):
        value = [value]
    shown = pretty_json(value)
    assert "truncated: too long to display" in shown
    assert " " * 50 not in shown


@pytest.mark.parametrize(
    "value",
    [
        "w" * 10_000_000,
        {"w" * 1_000_000: 1},
        ["w" * 1000] * 100_000,
        list(range(1_000_000)),
        {str(n): n for n in range(300_000)},
        10**100_000,
    ],
    ids=["word", "key", "long list of words", "long list of numbers", "many keys", "number"],
)
def test_size_has_a_limit(value: Any) -> None:
    assert len(text_of(pretty_json(value))) < SHOWN_CHARACTERS + SHOWN_STRING + 200


def test_long_string_says_how_much_is_left_out() -> None:
    assert "… 1,234 more characters" in pretty_json("w" * (SHOWN_STRING + 1234))


def test_lone_surrogate_can_be_sent_to_a_browser() -> None:
    shown = pretty_json({"broken \udc80": "half an emoji \ud83d"})
    shown.encode()
    assert r"half an emoji \ud83d" in shown


@pytest.mark.parametrize(
    ("text", "written_out"),
    [
        ("pay \u202e001\u202c now", r"pay \u202e001\u202c now"),
        ("\u2066isolated\u2069", r"\u2066isolated\u2069"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("nul\0, bell\7, escape\x1b[31m", r"nul\u0000, bell\u0007, escape\u001b[31m"),
        ("\U000e0041 tag", r"\udb40\udc41 tag"),
        ("half \ud83d", r"half \ud83d"),
        ("soft\u00adhyphen \u3164", r"soft\u00adhyphen \u3164"),
        ("x\U000e0100 and \u845b\U000e0100", "x\\udb40\\udd00 and \u845b\U000e0100"),
        ("storm\u0301\u0302\u0303\u0304\u0305\u0306", "storm\u0301\u0302\u0303\u0304\\u0305\\u0306"),
    ],
)
def test_characters_that_hide_or_reorder_are_written_out(text: str, written_out: str) -> None:
    assert write_out_invisible(text) == written_out


@pytest.mark.parametrize("text", ["tab\tline\nend", "Ōtautahi, Åse, ひらがな, עברית, العربية", "👩‍👩‍👧 می‌خواهم"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert write_out_invisible(text) == text


@given(st.text(st.characters(max_codepoint=127)))
def test_each_character_of_plain_text_is_shown_as_it_is_alone(text: str) -> None:
    alone = {chr(code): chr(code) if chr(code).isprintable() else f"\\u{code:04x}" for code in range(128)}
    alone |= {"\t": "\t", "\n": "\n", "\b": r"\b", "\r": r"\r", "\f": r"\f"}
    assert write_out_invisible(text) == "".join(alone[character] for character in text)


def test_text_that_came_as_safe_is_escaped_as_any_other() -> None:
    assert type(write_out_invisible(mark_safe("<b>"))) is str


def test_what_was_searched_for_is_marked_wherever_it_stands() -> None:
    assert mark_matches("Not a Voucher, no vouchers", re.compile("voucher", re.IGNORECASE)) == (
        "Not a <mark>Voucher</mark>, no <mark>voucher</mark>s"
    )
    assert mark_matches("a <b> & <b>", re.compile("<b>")) == "a <mark>&lt;b&gt;</mark> &amp; <mark>&lt;b&gt;</mark>"


def test_nothing_is_marked_without_a_match() -> None:
    assert mark_matches("<b>", None) == mark_matches("<b>", re.compile("x*")) == "&lt;b&gt;"


@given(st.text(max_size=40), st.text(min_size=1, max_size=3))
def test_marking_adds_nothing_but_marks(text: str, word: str) -> None:
    shown = mark_matches(text, re.compile(re.escape(word), re.IGNORECASE))
    assert html.unescape(re.sub("</?mark>", "", shown)) == text
    assert not re.search("<(?!/?mark>)", shown)
