"""Querysets of registry rows, subjects, patterns and searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connections, models
from django.db.models import Case, Count, F, Q, When
from django.db.models.functions import Now

from memadmin.accounts.approvals.models import Approval, waits
from memadmin.counting import count_up_to

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime
    from uuid import UUID

    from sessions_app.models import Redaction, SessionIdPattern, SessionRecord, SessionStore, Subject, TextSearch


# A loose index scan: one step along an index for each name, however many sessions have it. DISTINCT reads them all.
AGENTS = """
WITH RECURSIVE names(agent) AS (
    (SELECT agent FROM sessions_app_sessionrecord WHERE agent <> '' ORDER BY agent LIMIT 1)
    UNION ALL
    SELECT (SELECT agent FROM sessions_app_sessionrecord WHERE agent <> '' AND agent > names.agent
            ORDER BY agent LIMIT 1)
    FROM names WHERE agent IS NOT NULL
)
SELECT agent FROM names WHERE agent IS NOT NULL LIMIT %s
"""

MERGED_GROUPS = """
WITH RECURSIVE together(root, id, depth, created_at) AS (
    SELECT id, id, 0, created_at FROM sessions_app_subject WHERE id = ANY (%s)
    UNION ALL
    SELECT root, merged.id, depth + 1, merged.created_at
    FROM together JOIN sessions_app_subject AS merged ON merged.merged_into_id = together.id
)
SELECT root, id FROM together ORDER BY depth, created_at, id
"""


FORGOTTEN = """
SELECT asked.session_id FROM unnest(%s::text[]) AS asked(session_id) WHERE memadmin_is_forgotten(%s, asked.session_id)
"""


class SessionRecordQuerySet(models.QuerySet["SessionRecord"]):
    def on_record(self) -> SessionRecordQuerySet:
        """Sessions that were not erased; all lists start from these."""
        return self.filter(erased_at__isnull=True)

    def forgotten(self, store: SessionStore, session_ids: Collection[str]) -> set[str]:
        """Ids of erased sessions of which only the digest is on record. One query, or none."""
        # The main store may have no row yet.
        if not session_ids or store.pk is None:
            return set()
        with connections[self.db].cursor() as cursor:
            cursor.execute(FORGOTTEN, [list(session_ids), store.pk])
            return {session_id for (session_id,) in cursor.fetchall()}

    def erased(self, store: SessionStore, session_ids: Collection[str]) -> set[str]:
        """Ids whose sessions were erased, including those known by digest alone. Two queries, or one."""
        known = dict(self.filter(store_id=store.pk, session_id__in=session_ids).values_list("session_id", "erased_at"))
        unknown = [session_id for session_id in session_ids if session_id not in known]
        return {session_id for session_id, erased_at in known.items() if erased_at} | self.forgotten(store, unknown)

    def newest_first(self) -> SessionRecordQuerySet:
        return self.order_by("-last_activity_at", "-id")

    def with_names(self) -> SessionRecordQuerySet:
        """Sessions with store, subject and the subject's ids, as every list shows them. One query more."""
        return self.select_related("store", "subject").prefetch_related("subject__aliases")

    def readable(self, granted: Collection[UUID]) -> SessionRecordQuerySet:
        """Sessions without the locked ones that are not granted: not even a match of a search in these may be shown."""
        locked = self.locked_q()
        return self.exclude(locked & ~Q(pk__in=granted)) if granted else self.exclude(locked)

    @staticmethod
    def locked_q() -> Q:
        """Condition of locked sessions: by themselves, or by their store."""
        return Q(is_sensitive=True) | Q(store__is_sensitive=True)

    @staticmethod
    def unreadable_q() -> Q:
        """Condition of sessions whose items are all encrypted, as far as they were inspected.

        One item in the form of an envelope hides no others: whoever can write an item could hide a session with it.
        """
        return Q(is_encrypted=True, has_plain_items=False)

    def about(self, subject: Subject) -> SessionRecordQuerySet:
        """Sessions of a subject and of all that were merged into it. One query for those."""
        return self.filter(subject_id__in=subject.group_ids())

    def without_subject(self) -> SessionRecordQuerySet:
        return self.filter(subject__isnull=True)

    def in_state(self, state: str) -> SessionRecordQuerySet:
        """Sessions with findings, encrypted, or locked individually; sessions of a locked store are found by its own
        filter.
        """
        if state == "findings":
            return self.with_findings()
        return self.filter(**{{"encrypted": "is_encrypted", "locked": "is_sensitive"}[state]: True})

    def with_findings(self) -> SessionRecordQuerySet:
        return self.filter(finding_count__gt=0)

    def labelled(self, label: str) -> SessionRecordQuerySet:
        # The second condition is what the index is limited to.
        return self.filter(labels__contains=[label]).exclude(labels=[])

    def any_encrypted(self) -> bool:
        """Whether there is any encrypted session, whatever else is filtered: most consoles have none."""
        return self.on_record().filter(is_encrypted=True).exists()

    def agent_names(self, limit: int = 50) -> list[str]:
        """Names of agents that have sessions, in alphabetical order. One query, an index step for each name."""
        with connections[self.db].cursor() as cursor:
            cursor.execute(AGENTS, [limit])
            return [name for (name,) in cursor.fetchall()]

    def count_up_to(self, cap: int) -> int:
        """Number of sessions, at most cap + 1."""
        return count_up_to(self, cap)

    def awaiting_patterns(self, store: SessionStore, version: int) -> SessionRecordQuerySet:
        """Sessions of a store without a subject or a ticket, to which its current patterns were not applied yet, in no
        order.
        """
        missing = self.subject_to_find_q() | Q(ticket="")
        return self.on_record().filter(missing, store=store, patterns_tried__lt=version)

    @staticmethod
    def subject_to_find_q() -> Q:
        """Condition of sessions whose subject a pattern may find: nobody registered, attached or detached one."""
        return Q(subject__isnull=True, subject_source="")

    def awaiting_inspection(self) -> SessionRecordQuerySet:
        """Sessions written since they were last inspected, the longest waiting first."""
        return self.on_record().exclude(inspected_count=F("activity_count")).order_by("last_activity_at", "id")

    def inspect_again(self) -> int:
        """Marks sessions for inspection although nothing was written to them; returns how many."""
        return self.update(inspected_count=-1)


class SessionStoreQuerySet(models.QuerySet["SessionStore"]):
    def by_name(self) -> SessionStoreQuerySet:
        return self.order_by("name", "id")

    def in_this_database(self) -> SessionStoreQuerySet:
        """Stores of which the agents' tables are in our own database."""
        return self.filter(kind="sqlalchemy")

    def worst_first(self) -> SessionStoreQuerySet:
        """Stores that are unreachable, degraded, not checked yet, and healthy, each by name."""
        rank = Case(When(state="down", then=0), When(state="degraded", then=1), When(state="", then=2), default=3)
        return self.order_by(rank, "name", "id")

    def longest_unchecked(self) -> SessionStoreQuerySet:
        """Stores by the time of their last health check, those without one first."""
        return self.order_by(F("checked_at").asc(nulls_first=True), "id")

    def count_by_state(self) -> dict[str, int]:
        """Number of stores in each state that any has; the state is empty before the first check. One query."""
        return dict(self.order_by().values_list("state").annotate(count=Count("pk")))


class SubjectQuerySet(models.QuerySet["Subject"]):
    def newest_first(self) -> SubjectQuerySet:
        return self.order_by("-created_at", "-id")

    def unmerged(self) -> SubjectQuerySet:
        """Subjects that were not merged into another."""
        return self.filter(merged_into__isnull=True)

    def listed(self) -> SubjectQuerySet:
        """The subjects of the list, newest first, with their ids."""
        return self.unmerged().filter(erased_at=None).newest_first().with_ids()

    def with_ids(self) -> SubjectQuerySet:
        """Subjects with their ids, and so their labels. One query more."""
        return self.prefetch_related("aliases")

    def labels(self, subject_ids: Collection[UUID]) -> dict[UUID, str]:
        """Label of each subject, as `Subject.label` returns it. One query, and none without ids."""
        if not subject_ids:
            return {}
        known = self.filter(pk__in=subject_ids, aliases__isnull=False)
        first = known.order_by("pk", "-aliases__is_primary", "aliases__kind", "aliases__key", "aliases__pk")
        return dict(first.distinct("pk").values_list("pk", "aliases__key"))

    def merged_group(self, subject_id: UUID) -> list[UUID]:
        """Id of a subject and those of all that were merged into it, however deep. One query."""
        return self.merged_groups([subject_id])[subject_id]

    def merged_groups(self, subject_ids: Iterable[UUID]) -> dict[UUID, list[UUID]]:
        """The merged group of each of the subjects. One query."""
        groups: dict[UUID, list[UUID]] = {subject_id: [] for subject_id in subject_ids}
        with connections[self.db].cursor() as cursor:
            cursor.execute(MERGED_GROUPS, [list(groups)])
            for root, merged_id in cursor.fetchall():
                groups[root].append(merged_id)
        return groups


class SessionIdPatternQuerySet(models.QuerySet["SessionIdPattern"]):
    def of(self, store: SessionStore) -> SessionIdPatternQuerySet:
        """Patterns of a store in the order in which they are tried."""
        return self.filter(store=store).order_by("position", "pk")


class RedactionQuerySet(models.QuerySet["Redaction"]):
    def newest_first(self) -> RedactionQuerySet:
        return self.order_by("-requested_at", "-pk")

    def unfinished(self) -> RedactionQuerySet:
        return self.filter(ended_at__isnull=True)

    def ended(self) -> RedactionQuerySet:
        return self.filter(ended_at__isnull=False)

    def awaiting_approval(self, at: datetime) -> RedactionQuerySet:
        """Redactions that wait for a second person, and have not expired at `at`."""
        return self.unfinished().filter(waits(at, "approval__"), expires_at__gt=at)

    def refused(self) -> RedactionQuerySet:
        """Redactions that ended without the approval they needed: declined, withdrawn or expired."""
        return self.ended().filter(approval__isnull=False).exclude(approval__decision=Approval.Decision.APPROVED)

    def carried_out(self) -> RedactionQuerySet:
        """Ended redactions that needed no approval, or had it."""
        approved = Q(approval__decision=Approval.Decision.APPROVED)
        return self.ended().filter(Q(approval__isnull=True) | approved)

    def with_people(self) -> RedactionQuerySet:
        """Redactions with subject, run, requester and approver, and the addresses of the requester. One query more."""
        people = self.select_related(
            "subject", "run__reason_by", "requested_by", "approval__asked_by", "approval__decided_by"
        )
        return people.prefetch_related("approval__asked_by__emailaddress_set")


class TextSearchQuerySet(models.QuerySet["TextSearch"]):
    def unexpired(self, search_id: UUID) -> TextSearch | None:
        """Search by its id, unless it has expired."""
        return self.filter(pk=search_id, expires_at__gt=Now()).first()

    def expired(self, at: datetime) -> TextSearchQuerySet:
        return self.filter(expires_at__lte=at)
