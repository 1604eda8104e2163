"""How people sign in, in templates: `{% load accounts %}`."""

from __future__ import annotations

from django import template
from django.conf import settings

register = template.Library()


@register.inclusion_tag("accounts/_second_factor_notice.html")
def second_factor_notice() -> dict[str, bool]:
    """Says so where a password alone opens everything."""
    return {"is_off": not settings.SECOND_FACTOR_REQUIRED}
