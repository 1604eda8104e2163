"""Template tag for the saved views of a list: `{% load saved_views %}`."""

from __future__ import annotations

from typing import Any

from django import template

from memadmin.home.saved_views import list_at, views_of

register = template.Library()


@register.inclusion_tag("home/_saved_views.html", takes_context=True)
def saved_views(context: template.Context) -> dict[str, Any]:
    """The signed-in person's views of the list at `address` with `filters`, and the forms for them. One query."""
    filters, of = context["filters"], list_at(context["address"])
    if of is None:
        return {"of": None}
    current = filters.query_string()
    views = views_of(context["request"].user, of.name)
    return {
        "of": of,
        "views": [(view, view.query == current) for view in views],
        "query": current,
        "is_plain": not current,
        "leaves_out": any(name in filters.not_saved for name in filters.active),
        "csrf_token": context.get("csrf_token"),
    }
