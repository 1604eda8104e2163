"""Tickets, sessions and subjects in the command palette, and what can be begun for a subject that was found."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

from django.urls import reverse

from memadmin.web.palette import ACTIONS, FINDERS, Option, OptionGroup, PaletteAction, actions_for
from memadmin.web.requests import OperatorRequest
from sessions_app.search.identifiers import LEAST_CHARACTERS, aliases_like, sessions_like, tickets_like
from sessions_app.views import read_audit

MOST = 5
"""Options of each kind."""


def identifiers(request: OperatorRequest, text: str) -> Iterable[Option]:
    """Ids that contain a text, as the search finds them; shown ids are recorded as there. Three queries."""
    reads = request.user.has_perm("sessions_app.read_content")
    if len(text) < LEAST_CHARACTERS or not reads:
        return
    aliases = list(aliases_like(text)[:MOST]) if request.user.has_perm("sessions_app.view_subject") else []
    tickets, sessions = list(tickets_like(text)[:MOST]), sessions_like(text, at_most=MOST)
    read_audit.places(aliases, sessions, tickets)
    for ticket in tickets:
        address = f"{reverse('sessions:list')}?{urlencode({'ticket': ticket})}"
        yield Option(OptionGroup.TICKETS, ticket, address, "messages", "sessions of this ticket")
    for record in sessions:
        detail = " · ".join(part for part in (record.subject and record.subject.label, record.ticket) if part)
        yield Option(OptionGroup.SESSIONS, record.session_id, record.get_absolute_url(), "messages", detail)
    for alias in aliases:
        yield Option(
            OptionGroup.SUBJECTS, alias.key, alias.subject.get_absolute_url(), "user", alias.get_kind_display()
        )
    if aliases:
        yield from actions_for(request.user, aliases[0].subject_id, aliases[0].key)


FINDERS.append(identifiers)
ACTIONS.append(PaletteAction("Connect a store", "sessions:connect", "database", ("sessions_app.add_sessionstore",)))
