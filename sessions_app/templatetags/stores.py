"""Template tags for the kind of a store: `{% load stores %}`."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memadmin.web.templatetags.memadmin import icon, tagx
from sessions_app.listing import about_store
from sessions_app.models import SessionStore
from sessions_app.stores.kinds import kind_of

register = template.Library()


@register.simple_tag
def store_kind(store: SessionStore) -> SafeString:
    """Icon and name of the kind of a store: `{% store_kind record.store %}`."""
    kind = kind_of(store)
    return format_html("{} {}", icon(kind.icon), kind.label)


@register.simple_tag
def store_tag(store: SessionStore) -> SafeString:
    """Name of a store with the icon of its kind, and its limits as a tooltip: `{% store_tag record.store %}`."""
    return format_html('<span title="{}">{}</span>', about_store(store), tagx(kind_of(store).icon, store.name))
