"""Links of the sidebar with the permissions that open them. A page appears here when its feature does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import chain

from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """One entry. `key` follows `g`; any one of the permissions is enough; without permissions it is for all users."""

    title: str
    url_name: str
    symbol: str
    key: str
    permissions: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return address_of(self.url_name)


@cache
def address_of(url_name: str) -> str:
    """Address of an entry, without arguments. Cached, because every page needs all of them several times."""
    return reverse(url_name)


@dataclass(frozen=True, slots=True)
class Link:
    title: str
    url: str
    symbol: str
    key: str
    is_current: bool
    count: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    links: list[Link]


RAW_EDITS = NavigationLink("Raw edits", "admin:index", "tool", "w", ("auth.view_user", "sessions_app.raw_edit"))
"""Administrators have the first permission; the second is given to single people."""

SECTIONS = {
    "": [NavigationLink("Overview", "sessions:overview", "layout-dashboard", "o")],
    "Conversations": [
        NavigationLink("Sessions", "sessions:list", "messages", "s", ("sessions_app.read_content",)),
        NavigationLink("Subjects", "sessions:subjects", "user-search", "u", ("sessions_app.view_subject",)),
    ],
    "Memories": [
        NavigationLink("Review queue", "reviews:list", "checklist", "r", ("memories_app.review_memory",)),
        NavigationLink("Memories", "memories:list", "bulb", "m", ("memories_app.read_memory",)),
        NavigationLink("Recall preview", "memories:recall", "sparkles", "p", ("memories_app.read_memory",)),
    ],
    "Governance": [
        NavigationLink("Requests", "erasure:requests", "file-text-shield", "d", ("erasure.view_request",)),
        NavigationLink("Retention", "policies:list", "hourglass", "y", ("retention.view_policy",)),
        NavigationLink("Holds", "retention:holds", "gavel", "h", ("retention.view_hold",)),
        NavigationLink("Redactions", "sessions:redactions", "eraser", "x", ("sessions_app.redact_content",)),
        NavigationLink("Data map", "data_map:map", "map-2", "e", ("erasure.view_data_map",)),
        NavigationLink("Audit log", "audit:list", "list-check", "a", ("audit.view_auditevent",)),
    ],
    "System": [
        NavigationLink("Stores", "sessions:stores", "database", "t", ("sessions_app.view_sessionstore",)),
        NavigationLink("Runs", "runs:list", "circle-dashed", "n", ("runs.view_run",)),
        NavigationLink("Health", "system:system", "heartbeat", "i", ("accounts.view_system",)),
        NavigationLink("People", "people:list", "users", "l", ("accounts.view_people",)),
        RAW_EDITS,
    ],
}

WAITING: dict[str, Callable[[], int]] = {}
"""Capped counts of waiting work, by URL name; evaluated on every page for users who may see the entry."""


def sections_for(request: HttpRequest) -> list[Section]:
    """The sections with the entries this operator may see."""
    current, sections = place_at(request.path), []
    for title, places in SECTIONS.items():
        links = [
            Link(
                place.title,
                place.url,
                place.symbol,
                f"g {place.key}",
                is_current=place is current,
                count=waiting_at(place.url_name),
            )
            for place in places
            if may_see(request.user, place)
        ]
        if links:
            sections.append(Section(title, links))
    return sections


def waiting_at(url_name: str) -> int:
    """Count of waiting work. One query if the entry has a count."""
    count = WAITING.get(url_name)
    return count() if count else 0


def place_at(path: str) -> NavigationLink | None:
    """The entry of `path`, regardless of permissions; of nested entries the innermost one."""
    around = [place for place in chain.from_iterable(SECTIONS.values()) if is_inside(path, place.url)]
    return max(around, key=lambda place: len(place.url), default=None)


def may_see(user: User | AnonymousUser, place: NavigationLink) -> bool:
    return not place.permissions or any(map(user.has_perm, place.permissions))


def is_inside(path: str, url: str) -> bool:
    """Whether `path` is the page at `url` or one below it; every page is below `/`, so that counts only for itself."""
    return path == url or (url != "/" and path.startswith(url))
