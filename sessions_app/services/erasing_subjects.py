"""The identity of an erased subject: its fence, the tombstones of its session ids and keys, and a new start.

The steps of an erasure call these, the fence first and the keys last. A tombstone is a keyed digest: it still keeps the
session or the key out, and nobody can find the id from it.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import CharField, Func, Value
from django.db.models.functions import Now

from memadmin import audit
from memadmin.audit.log.erasing import ErasureReason, erase_details
from memadmin.audit.models import AuditEvent
from sessions_app import audit_events
from sessions_app.models import ErasedKey, Subject, SubjectKind, SubjectSource
from sessions_app.services.deletion_guards import refusals_explained
from sessions_app.services.subject_keys import allow_new_key
from sessions_app.services.subjects import BadKey, SubjectError, is_key, merge_target, subject_for_key

FORGET_SESSIONS = """
WITH due AS (
    SELECT store_id, session_id FROM sessions_app_sessionrecord
    WHERE subject_id = ANY (%s::uuid[]) AND erased_at IS NOT NULL AND NOT is_forgotten
        AND NOT (id = ANY (%s::uuid[]))
    ORDER BY session_id, store_id LIMIT %s FOR UPDATE
)
UPDATE sessions_app_sessionrecord AS r
SET session_id = memadmin_session_digest(r.store_id, r.session_id), is_forgotten = true,
    ticket = '', agent = '', labels = '{}', change_mark = ''
FROM due WHERE r.store_id = due.store_id AND r.session_id = due.session_id
"""

FORGET_KEYS = """
INSERT INTO sessions_app_erasedkey (digest, subject_id, epoch)
SELECT memadmin_key_digest(a.kind, a.key), a.subject_id,
       (SELECT max(epoch) FROM sessions_app_subject WHERE id = ANY (%(group)s::uuid[]))
FROM sessions_app_subjectalias AS a WHERE a.subject_id = ANY (%(group)s::uuid[]) ORDER BY 1
ON CONFLICT (digest) DO UPDATE
SET subject_id = EXCLUDED.subject_id, epoch = EXCLUDED.epoch, erased_at = now(), reopened_at = NULL
"""

DELETE_KEYS = "DELETE FROM sessions_app_subjectalias WHERE subject_id = ANY (%(group)s::uuid[])"


class NotErased(SubjectError):
    def __init__(self) -> None:
        super().__init__("No data was erased under this ID, or a new start was allowed already. Nothing was changed.")


def fence_subject(subject: Subject) -> None:
    """Marks a whole merged group as erased, in the caller's transaction and for good. Safe to repeat.

    From the commit on nothing is registered or stored about it. Waits for transactions that are storing something. A
    caller that checks holds does that before, for placing a hold locks in the same order.
    """
    group = group_of(subject)
    while True:
        # In the order in which all code locks several. Somebody may have merged another subject meanwhile.
        list(Subject.objects.select_for_update().filter(pk__in=group).order_by("pk").values_list("pk"))
        now_together = group_of(Subject.objects.get(pk=subject.pk))
        if set(now_together) == set(group):
            break
        group = now_together
    Subject.objects.filter(pk__in=group, erased_at=None).update(erased_at=Now())
    subject.refresh_from_db(fields=["erased_at"])


@refusals_explained()
@transaction.atomic
def forget_sessions(subject: Subject, *, at_most: int, keep: Collection[UUID] = ()) -> int:
    """Replaces the ids of erased sessions of a merged group by their digests, and clears ticket, agent and labels.

    Returns the number of sessions; 0 when none is left. Sessions that are not erased yet stay as they are, and those
    to `keep`, which are ids of records. Raises DeletionRefused for another session under a hold.
    """
    with audit.recording(audit_events.SESSIONS_FORGOTTEN) as event, connection.cursor() as cursor:
        cursor.execute(FORGET_SESSIONS, [group_of(subject), list(keep), at_most])
        count = int(cursor.rowcount)
        event.target, event.subject, event.is_void = subject, subject, not count
        event.counters = {"sessions": count}
    if count:
        forget_details(event)
    return count


@transaction.atomic
def forget_keys(subject: Subject) -> int:
    """Deletes the ids of a merged group that is fenced, and keeps their digests; returns the number of ids."""
    group = group_of(subject)
    if Subject.objects.filter(pk__in=group, erased_at=None).exists():
        raise ValueError("The ids of a subject are forgotten after it was fenced.")
    with audit.recording(audit_events.KEYS_FORGOTTEN) as event, connection.cursor() as cursor:
        cursor.execute(FORGET_KEYS, {"group": group})
        cursor.execute(DELETE_KEYS, {"group": group})
        count = int(cursor.rowcount)
        event.target, event.subject, event.is_void = subject, subject, not count
        event.counters = {"keys": count}
    if count:
        forget_details(event)
    return count


@transaction.atomic
def reopen_key(kind: SubjectKind, key: str, *, by: User) -> Subject:
    """Allows a new start under an erased id; returns a new subject of the next epoch, which has this id alone.

    Erased sessions stay erased, also for agents that know the id. Raises BadKey and NotErased.
    """
    if not is_key(key):
        raise BadKey
    digest = Func(Value(kind), Value(key), function="memadmin_key_digest", output_field=CharField())
    with audit.recording(audit_events.KEY_REOPENED, by=by) as event:
        if not ErasedKey.objects.filter(digest=digest, reopened_at=None).update(reopened_at=Now()):
            raise NotErased
        subject = subject_for_key(kind, key, SubjectSource.OPERATOR)
        event.target, event.subject = subject, subject
        allow_new_key(subject, kind=kind, key=key, by=by)
    subject.refresh_from_db()
    return subject


def group_of(subject: Subject) -> list[UUID]:
    """Ids of all subjects that are one with this one, by merges in both directions."""
    return merge_target(subject).group_ids()


def forget_details(event: audit.Recording) -> None:
    """Takes the values out of the log that the change itself has put there: they are what is to be forgotten."""
    erase_details(AuditEvent.objects.get(id=event.id), reason=ErasureReason.SUBJECT_REQUEST)
