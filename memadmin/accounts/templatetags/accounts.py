"""Template tags for ways to sign in: `{% load accounts %}`."""

from __future__ import annotations

from dataclasses import dataclass

from django import template
from django.conf import settings
from django.contrib.auth.models import User

from memadmin.accounts.content_access.rules import Stated, stated_in

register = template.Library()


@register.filter
def roles(user: User) -> str:
    """The names of a person's roles: "reviewer, support", or "no role". One query."""
    return ", ".join(user.groups.order_by("name").values_list("name", flat=True)) or "no role"


@register.inclusion_tag("accounts/_second_factor_notice.html")
def second_factor_notice() -> dict[str, bool]:
    """Notice shown while two-factor sign-in is off."""
    return {"is_off": not settings.SECOND_FACTOR_REQUIRED}


@register.simple_tag(takes_context=True)
def stated_purpose(context: template.Context) -> Stated | None:
    """Current purpose of the signed-in user; no query."""
    request = context["request"]
    return stated_in(request) if request.user.is_authenticated else None


@dataclass(frozen=True, slots=True)
class BrowserWords:
    """A browser in words, with its symbol."""

    words: str
    symbol: str


PROGRAMS = [("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari")]
"""Parts of what browsers call themselves. Most name others too, so the first that is found counts."""

SYSTEMS = [
    *(("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows")),
    *(("Mac OS", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux")),
]
MOBILE = {"iPhone", "iPad", "Android"}


@register.filter
def browser(user_agent: str) -> BrowserWords:
    """Browser and system of a user agent, such as "Firefox on Android"; an unknown one unchanged."""
    program = next((words for part, words in PROGRAMS if part in user_agent), "")
    system = next((words for part, words in SYSTEMS if part in user_agent), "")
    words = " on ".join(filter(None, [program, system])) or user_agent or "unknown browser"
    return BrowserWords(words, "device-mobile" if system in MOBILE else "device-desktop")
