"""Ways to pick registry rows and subjects, named as the reader would say them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connections, models
from django.db.models import F, Q

from memadmin.counting import counts_up_to

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

    from sessions_app.models import Redaction, SessionIdPattern, SessionRecord, SessionStore, Subject, TextSearch


# What is of all stores together stands beside the first: there may be a thousand of them.
ON_OFFER = """
WITH RECURSIVE names(agent) AS (
    (SELECT agent FROM sessions_app_sessionrecord WHERE agent <> '' ORDER BY agent LIMIT 1)
    UNION ALL
    SELECT (SELECT agent FROM sessions_app_sessionrecord WHERE agent <> '' AND agent > names.agent
            ORDER BY agent LIMIT 1)
    FROM names WHERE agent IS NOT NULL
)
SELECT store.*,
       CASE WHEN row_number() OVER (ORDER BY store.name, store.id) = 1
            THEN ARRAY(SELECT agent FROM names WHERE agent IS NOT NULL LIMIT %s) END AS agents_on_offer,
       (SELECT count(*) FROM (
           SELECT FROM sessions_app_sessionrecord WHERE subject_id IS NULL AND erased_at IS NULL LIMIT %s
       ) AS few) AS without_subject_count
FROM sessions_app_sessionstore AS store ORDER BY store.name, store.id
"""

# The ids of fifty subjects as one text: Django prepares each by itself, and psycopg an array of them.
LABELS = """
SELECT DISTINCT ON (subject_id) subject_id, key FROM sessions_app_subjectalias WHERE subject_id = ANY(%s::uuid[])
ORDER BY subject_id, is_primary DESC, kind, key, id
"""

IN_FULL = """
SELECT subject.*,
       coalesce((SELECT key FROM sessions_app_subjectalias WHERE subject_id = subject.id
                 ORDER BY is_primary DESC, kind, key, id LIMIT 1), '') AS known_as,
       ARRAY(
           WITH RECURSIVE together(id, depth, created_at) AS (
               SELECT subject.id, 0, subject.created_at
               UNION ALL
               SELECT merged.id, depth + 1, merged.created_at
               FROM together JOIN sessions_app_subject AS merged ON merged.merged_into_id = together.id
           )
           SELECT id FROM together ORDER BY depth, created_at, id
       ) AS together
FROM sessions_app_subject AS subject WHERE subject.id = %s
"""

MERGED = "SELECT id FROM sessions_app_subject WHERE merged_into_id = ANY(%s) ORDER BY created_at, id"


ANY_ENCRYPTED = "SELECT EXISTS (SELECT FROM {table} WHERE is_encrypted AND erased_at IS NULL)"


STANDING_ONE = "SELECT * FROM {table} WHERE id = %s AND expires_at > statement_timestamp()"


class SessionRecordQuerySet(models.QuerySet["SessionRecord"]):
    def on_record(self) -> SessionRecordQuerySet:
        """Every session that was not erased; what all lists start from."""
        return self.filter(erased_at__isnull=True)

    def newest_first(self) -> SessionRecordQuerySet:
        return self.order_by("-last_activity_at", "-id")

    def with_names(self) -> SessionRecordQuerySet:
        """With store, subject and the subject's ids at hand, as every list shows them. One query more."""
        return self.select_related("store", "subject").prefetch_related("subject__aliases")

    def readable(self, granted: Collection[UUID]) -> SessionRecordQuerySet:
        """Without the locked sessions that nobody granted: not even that something was said in them may be found."""
        locked = Q(is_sensitive=True) | Q(store__is_sensitive=True)
        return self.exclude(locked & ~Q(pk__in=granted)) if granted else self.exclude(locked)

    def about(self, subject: Subject) -> SessionRecordQuerySet:
        """Sessions of a subject and of all that were merged into it. A query for those, unless it came in full."""
        return self.filter(subject_id__in=list(subject.group_ids()))

    def without_subject(self) -> SessionRecordQuerySet:
        return self.filter(subject__isnull=True)

    def in_state(self, state: str) -> SessionRecordQuerySet:
        """With findings, encrypted, or locked one by one; those of a locked store are all, and have its filter."""
        if state == "findings":
            return self.with_findings()
        return self.filter(**{{"encrypted": "is_encrypted", "locked": "is_sensitive"}[state]: True})

    def with_findings(self) -> SessionRecordQuerySet:
        return self.filter(finding_count__gt=0)

    def labelled(self, label: str) -> SessionRecordQuerySet:
        # The second condition is what the index is limited to.
        return self.filter(labels__contains=[label]).exclude(labels=[])

    def any_encrypted(self) -> bool:
        """Whether there is an encrypted session at all, whatever else is asked for: most consoles have none."""
        with connections[self.db].cursor() as cursor:
            cursor.execute(ANY_ENCRYPTED.format(table=self.model._meta.db_table))
            return bool(cursor.fetchone()[0])

    def count_up_to(self, cap: int) -> int:
        """How many there are, at most cap + 1."""
        return counts_up_to(cap, self)[0]

    def awaiting_patterns(self, store: SessionStore, version: int) -> SessionRecordQuerySet:
        """Sessions of a store without a subject that its present patterns were not tried on, in no order."""
        return self.on_record().without_subject().filter(store=store, subject_source="", patterns_tried__lt=version)

    def awaiting_inspection(self) -> SessionRecordQuerySet:
        """Sessions written since they were last inspected, the longest waiting first."""
        return self.on_record().exclude(inspected_count=F("activity_count")).order_by("last_activity_at", "id")


class SessionStoreQuerySet(models.QuerySet["SessionStore"]):
    def on_offer(self, cap: int, limit: int = 50) -> tuple[list[SessionStore], list[str], int]:
        """What the filters of the list offer: the stores and the agents' names, in alphabetical order, and how many
        sessions have no subject, at most cap + 1. One query, a step along an index for each name, however many sessions
        there are.
        """
        stores = list(self.raw(ON_OFFER, [limit, cap + 1]))
        if not stores:
            # Then there is no session.
            return [], [], 0
        return stores, stores[0].agents_on_offer, stores[0].without_subject_count


class SubjectQuerySet(models.QuerySet["Subject"]):
    def newest_first(self) -> SubjectQuerySet:
        return self.order_by("-created_at", "-id")

    def standing(self) -> SubjectQuerySet:
        """Subjects that were not merged into another."""
        return self.filter(merged_into__isnull=True)

    def in_full(self, subject_id: UUID) -> Subject | None:
        """A subject that knows its label, and who was merged into it, without being asked again. One query."""
        return next(iter(self.raw(IN_FULL, [subject_id])), None)

    def labels(self, subject_ids: Collection[UUID]) -> dict[UUID, str]:
        """The id by which people know each of them, as `Subject.label` says it. One query, for rows of lists; none for
        nobody.
        """
        if not subject_ids:
            return {}
        with connections[self.db].cursor() as cursor:
            cursor.execute(LABELS, [f"{{{','.join(map(str, subject_ids))}}}"])
            return dict(cursor.fetchall())

    def merged_into(self, subject_ids: Collection[UUID]) -> list[UUID]:
        """The ids of those that were merged into one of these. One query, for every list of one subject's sessions."""
        with connections[self.db].cursor() as cursor:
            cursor.execute(MERGED, [list(subject_ids)])
            return [subject_id for (subject_id,) in cursor.fetchall()]


class SessionIdPatternQuerySet(models.QuerySet["SessionIdPattern"]):
    def of(self, store: SessionStore) -> SessionIdPatternQuerySet:
        """A store's patterns in the order in which they are tried."""
        return self.filter(store=store).order_by("position", "pk")


class TextSearchQuerySet(models.QuerySet["TextSearch"]):
    def standing_one(self, search_id: UUID) -> TextSearch | None:
        """A search by its id, unless its time is over. One query, which Django would take longer to compose."""
        return next(iter(self.raw(STANDING_ONE.format(table=self.model._meta.db_table), [search_id])), None)

    def expired(self, at: datetime) -> TextSearchQuerySet:
        return self.filter(expires_at__lte=at)


class RedactionQuerySet(models.QuerySet["Redaction"]):
    def to_be_done(self) -> RedactionQuerySet:
        """What has not ended, the longest waiting first."""
        return self.filter(ended_at__isnull=True).order_by("requested_at", "pk")
