"""Untrusted Markdown as HTML with structure only: no links, no pictures, no attributes.

Two well-maintained libraries work in sequence, and neither is trusted alone: markdown-it-py passes no HTML from the
text, and nh3 allows only the elements named here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from memadmin.web.safe_text import mark_in_html, write_out_invisible

ELEMENTS = frozenset(
    "p br hr strong em s code pre blockquote ul ol li table thead tbody tr th td".split()  # noqa: SIM905
)
ATTRIBUTES = {"ol": {"start"}}

NESTING = 20
"""Maximum depth of quotes and lists; deeper ones stay as typed."""


class Plain(RendererHTML):
    """Renders links as their text and address, and headings as bold lines: the page has its own headings."""

    def link_open(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        link = tokens[index].attrs
        env.setdefault("addresses", []).append(f"{link.get('href', '')} {link.get('title', '')}".strip())
        return ""

    def link_close(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return f" ({escapeHtml(env['addresses'].pop())})"

    def fence(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        language = escapeHtml(tokens[index].info.strip())
        return f"<p>{language}</p>" * bool(language) + f"<pre><code>{escapeHtml(tokens[index].content)}</code></pre>\n"

    def heading_open(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return "<p><strong>"

    def heading_close(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return "</strong></p>\n"


# References would remove their definitions from the text, entities would restore escaped characters, pictures and
# bare addresses would become links.
reader = (
    MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": NESTING}, renderer_cls=Plain)
    .enable(["table", "strikethrough"])
    .disable(["reference", "entity", "image", "autolink", "html_block", "html_inline"])
)

WORD = re.compile(r"[^\W\d_]+")
TAG = re.compile(r"<[^<>]*>")


def render(text: str, highlight: re.Pattern[str] | None = None) -> SafeString:
    """`text` in HTML with every word, with matches of `highlight` marked and invisible characters escaped.

    Markdown can drop words, such as an extra cell in a table row. Such a text is shown as typed.
    """
    visible = write_out_invisible(text)
    html = nh3.clean(
        reader.render(visible), tags=set(ELEMENTS), attributes=ATTRIBUTES, link_rel=None, url_schemes=set()
    )
    if set(WORD.findall(visible)) - set(WORD.findall(unescape(TAG.sub(" ", html)))):
        html = f"<pre>{escapeHtml(visible)}</pre>"
    # Written by nh3 or escapeHtml; masks and marks add only our elements.
    return mark_safe(mark_in_html(html, highlight))


def render_line(text: str) -> SafeString:
    """A sentence or a few of our own in HTML, without a paragraph around them: emphasis and code."""
    return mark_safe(nh3.clean(reader.renderInline(text), tags=set(ELEMENTS), attributes=ATTRIBUTES, link_rel=None))
