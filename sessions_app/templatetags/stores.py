"""What kind of store it is, in templates: `{% load stores %}`."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memadmin.web.templatetags.memadmin import icon
from sessions_app.models import SessionStore
from sessions_app.stores.kinds import kind_of

register = template.Library()


@register.simple_tag
def store_kind(store: SessionStore) -> SafeString:
    """Icon and name: `{% store_kind record.store %}`."""
    kind = kind_of(store)
    return format_html("{} {}", icon(kind.icon), kind.label)
