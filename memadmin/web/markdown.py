"""Markdown as somebody else wrote it, as HTML that only has form: no link, no picture, no attribute.

Two well-kept libraries stand behind each other, and neither is trusted alone: markdown-it-py writes none of the HTML in
the text, and nh3 lets nothing through but the elements named here.
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
"""How deep quotes and lists go; what is deeper stays as it was typed."""


class Plain(RendererHTML):
    """Links as their words and their address, headings as bold lines: the page has headings of its own."""

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


# References would take their definitions out of the text, entities would bring back what was written out, pictures and
# bare addresses would become links.
reader = (
    MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": NESTING}, renderer_cls=Plain)
    .enable(["table", "strikethrough"])
    .disable(["reference", "entity", "image", "autolink", "html_block", "html_inline"])
)

WORD = re.compile(r"[^\W\d_]+")
TAG = re.compile(r"<[^>]*>")


def render(text: str, highlight: re.Pattern[str] | None = None) -> SafeString:
    """`text` in HTML, every word of it, what `highlight` finds marked; characters that hide something are written out.

    Markdown has ways to leave words out, such as a cell too many in a table. A text with such is shown as it was typed.
    """
    visible = write_out_invisible(text)
    html = nh3.clean(
        reader.render(visible), tags=set(ELEMENTS), attributes=ATTRIBUTES, link_rel=None, url_schemes=set()
    )
    if set(WORD.findall(visible)) - set(WORD.findall(unescape(TAG.sub(" ", html)))):
        html = f"<pre>{escapeHtml(visible)}</pre>"
    # nh3 or escapeHtml has written it, and masks and marks add elements of ours.
    return mark_safe(mark_in_html(html, highlight))
