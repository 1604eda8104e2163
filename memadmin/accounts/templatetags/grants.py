"""Grants in templates: `{% load grants %}`."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString
from django.utils.timezone import now

from memadmin.accounts.grants import services
from memadmin.accounts.models import ContentGrant
from memadmin.web.templatetags.memadmin import badge

register = template.Library()

LOOKS = {
    ContentGrant.State.WAITING: ("yellow", "clock"),
    ContentGrant.State.LAPSED: ("secondary", "hourglass-off"),
    ContentGrant.State.REFUSED: ("red", "ban"),
    ContentGrant.State.OPEN: ("orange", "lock-open"),
    ContentGrant.State.OVER: ("secondary", "clock"),
    ContentGrant.State.REVIEWED: ("green", "check"),
}


@register.simple_tag
def grant_state(grant: ContentGrant) -> SafeString:
    state = grant.state_at(now())
    colour, symbol = LOOKS[state]
    return badge(colour, symbol, state.label)


@register.inclusion_tag("accounts/_grant_banner.html", takes_context=True)
def grant_banner(context: template.Context) -> dict[str, object]:
    """Active grants of the signed-in user. One query for users who may request grants, more if one is active."""
    user = context["request"].user
    is_asked = user.is_authenticated and user.has_perm(services.REQUEST)
    return {"grants": services.open_grants(user) if is_asked else [], "csrf_token": context.get("csrf_token")}
