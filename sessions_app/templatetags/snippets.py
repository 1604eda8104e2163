"""What a search found, in templates: `{% load snippets %}`."""

from __future__ import annotations

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from memadmin.web.hostile import write_out_invisible
from sessions_app.search.snippets import Snippet

register = template.Library()


@register.simple_tag
def snippet(found: Snippet) -> SafeString:
    """Where something was said, with the words marked: `{% snippet match.snippet %}`."""
    if not found.parts:
        return mark_safe("The item was taken back since it was found")
    # Each part is escaped.
    return mark_safe("".join(f"<mark>{shown(text)}</mark>" if is_hit else shown(text) for text, is_hit in found.parts))


def shown(text: str) -> str:
    return escape(write_out_invisible(text))
