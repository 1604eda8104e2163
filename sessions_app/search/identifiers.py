"""Search for subjects, tickets and sessions by a part of their names, along the indexes of the registry."""

from __future__ import annotations

from django.db.models import QuerySet, Value
from django.db.models.functions import Left, Length, Lower

from sessions_app.models import Grams, SessionRecord, SubjectAlias
from sessions_app.models.querysets import SessionRecordQuerySet

LEAST_CHARACTERS = 3
"""The indexes cover shorter texts only as whole keys and tickets."""

CANDIDATES = 1_000
"""Most keys that are compared for the closest, if half of all keys contain the text."""

NEWEST = 100_000
"""Sessions in which any part of the id is looked for."""

PREFIX_CHARACTERS = 200
"""Characters covered by the index on session ids."""


def aliases_like(text: str) -> QuerySet[SubjectAlias]:
    """Subject keys that contain a text, regardless of case, the closest first.

    A text of fewer than LEAST_CHARACTERS has to be the whole key. Only the first 200 characters of a key count.
    """
    some = SubjectAlias.objects.alias(grams=Grams("key"))
    some = some.filter(grams__contains=Grams(Value(text)), key__icontains=text)
    return (
        SubjectAlias.objects.filter(pk__in=some.order_by().values("pk")[:CANDIDATES])
        .select_related("subject")
        .order_by(Length("key"), "key", "pk")
    )


def tickets_like(text: str) -> QuerySet[SessionRecord, str]:
    """Tickets that contain a text, regardless of case, the closest first.

    A text of fewer than LEAST_CHARACTERS has to be the whole ticket.
    """
    some = (
        SessionRecord.objects.on_record()
        .exclude(ticket="")
        .alias(grams=Grams("ticket"))
        .filter(grams__contains=Grams(Value(text)), ticket__icontains=text)
    )
    return (
        SessionRecord.objects.filter(pk__in=some.order_by().values("pk")[:CANDIDATES])
        .order_by(Length("ticket"), "ticket")
        .values_list("ticket", flat=True)
        .distinct()
    )


def sessions_like(text: str, *, at_most: int) -> list[SessionRecord]:
    """Sessions whose id begins with a text, and then those that contain it, regardless of case, each newest first.

    Beginnings are found among all sessions. Other parts are looked for in the newest NEWEST sessions: an index for them
    would be written at each write of an agent.
    """
    found = list(sessions_beginning(text)[:at_most])
    if len(text) < LEAST_CHARACTERS or len(found) == at_most:
        return found
    newest = SessionRecord.objects.on_record().newest_first().values("pk")[:NEWEST]
    containing = SessionRecord.objects.filter(pk__in=newest, session_id__icontains=text)
    others = containing.exclude(pk__in=[record.pk for record in found]).newest_first().with_names()
    return [*found, *others[: at_most - len(found)]]


def sessions_beginning(text: str) -> SessionRecordQuerySet:
    """Sessions whose id begins with a text, regardless of case, newest first."""
    sessions = (
        SessionRecord.objects.on_record()
        .alias(beginning=Lower(Left("session_id", PREFIX_CHARACTERS)))
        .filter(beginning__startswith=text[:PREFIX_CHARACTERS].lower())
    )
    if len(text) > PREFIX_CHARACTERS:
        sessions = sessions.filter(session_id__istartswith=text)
    return sessions.newest_first().with_names()
