"""Scope of a request: a subject with all that were merged into it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.db import connection
from django.db.models import Q

from memadmin.retention.models import LegalHold
from sessions_app.models import SessionRecord, Subject, SubjectAlias
from sessions_app.models.querysets import SessionRecordQuerySet

HOLDS_ON_SUBJECTS = "SELECT DISTINCT number FROM unnest(%s::uuid[]) AS id, memadmin_holds_on(NULL, id, '{}') AS number"

HOLDS_ON_RECORDS = """
SELECT DISTINCT number
FROM sessions_app_sessionrecord AS r, memadmin_holds_on(r.id, r.subject_id, r.labels) AS number
WHERE r.subject_id = ANY (%s)
"""

HELD_RECORDS = """
SELECT r.id FROM sessions_app_sessionrecord AS r
WHERE r.subject_id = ANY (%s) AND EXISTS (SELECT FROM memadmin_holds_on(r.id, r.subject_id, r.labels))
"""


@dataclass(frozen=True)
class SubjectScope:
    """A subject, the ids of its merged group, the texts by which the person is known, and the ids with their kinds."""

    subject: Subject
    group: list[UUID]
    texts: list[str]
    keys: list[tuple[str, str]]

    def records(self) -> SessionRecordQuerySet:
        """All session records of the group, erased ones, too."""
        return SessionRecord.objects.filter(subject_id__in=self.group)

    def of_sessions(self, owner: str = "subject") -> Q:
        """Condition of rows that belong to a session of the group, by its record or, without one, by its id.

        `owner` is the path to a row's own subject. A row of another subject does not belong to the group, because two
        stores can have the same session id. An empty path takes rows of any subject.
        """
        records = self.records()
        others = SessionRecord.objects.exclude(subject_id__in=self.group).values("session_id")
        by_id = records.exclude(session_id="").exclude(session_id__in=others)
        owned = Q(**{f"{owner}__isnull": True}) | Q(**{f"{owner}__in": self.group}) if owner else Q()
        return Q(record_id__in=records.values("id")) | Q(
            owned, record_id__isnull=True, session_id__in=by_id.values("session_id")
        )

    def holds(self) -> list[int]:
        """Numbers of the holds in force on the subject itself, which keep everything. One query."""
        with connection.cursor() as cursor:
            cursor.execute(HOLDS_ON_SUBJECTS, [self.group])
            return sorted(number for (number,) in cursor.fetchall())

    def all_holds(self) -> list[int]:
        """Numbers of the holds in force on the subject or on any of its sessions. At most three queries."""
        if not LegalHold.objects.in_force().exists():
            return []
        with connection.cursor() as cursor:
            cursor.execute(HOLDS_ON_RECORDS, [self.group])
            return sorted({*self.holds(), *(number for (number,) in cursor.fetchall())})

    @cached_property
    def held_records(self) -> list[UUID]:
        """Ids of session records that a hold keeps now. At most two queries."""
        if not LegalHold.objects.in_force().exists():
            return []
        with connection.cursor() as cursor:
            cursor.execute(HELD_RECORDS, [self.group])
            return [record_id for (record_id,) in cursor.fetchall()]

    def reread_holds(self) -> None:
        """Has `held_records` read again: holds can change at any time."""
        self.__dict__.pop("held_records", None)


def scope_of(
    subject: Subject, texts: list[str] | None = None, keys: list[tuple[str, str]] | None = None
) -> SubjectScope:
    """The scope of a subject. `texts` and `keys` are those that the case keeps; otherwise the ids of the group.

    Two queries.
    """
    group = subject.group_ids()
    aliases = SubjectAlias.objects.filter(subject_id__in=group).order_by("pk").values_list("kind", "key")
    keys = keys or list(aliases)
    return SubjectScope(subject, group, [key for _, key in keys] if texts is None else texts, keys)
