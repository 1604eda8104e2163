"""Rows that belonged to deleted sessions: each kind has its defined outcome, and no session id stays behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from memadmin.accounts.models import GrantedSession
from memadmin.retention.models import LegalHold
from memadmin.retention.targets.base import tables_of
from memories_app.models import Distillation, Evidence, Memory, Recall, Signal
from sessions_app.models import Redaction, SessionFinding, SessionRecord

NOTES: tuple[Any, ...] = (Signal, Distillation, SessionFinding, GrantedSession)
"""Notes about sessions, which are deleted with them."""

HANGING: tuple[Any, ...] = (Evidence, Recall, Redaction, LegalHold, *NOTES)
"""Models whose rows name a session by the id of its record."""

# One statement for all of them: most sessions have left nothing in most tables.
WITH_ROWS = " UNION ALL ".join(
    f"SELECT {number} WHERE EXISTS (SELECT FROM {model._meta.db_table} WHERE record_id = ANY(%(keys)s))"
    for number, model in enumerate(HANGING)
)


def delete_what_hung_on(records: Sequence[SessionRecord]) -> Counter[str]:
    """Gives what came from sessions its outcome; returns rows by table. Raises DeletionRefused where a hold keeps it.

    Quotes go, and their memories stay with the note that the source is gone; summaries without another source go.
    Signals are words of these sessions, and go. Recalls stay, without the session. In the caller's transaction.
    """
    keys = [record.pk for record in records]
    present = models_with_rows_of(keys)
    changed: Counter[str] = Counter()
    if Evidence in present:
        changed.update(unquote(keys))
    if Recall in present:
        recalls = Recall.objects.filter(record_id__in=keys)
        changed["memories_app_recall"] += recalls.update(record_id=None, session_id="")
    # Redactions and released holds stay as records of what people did, with our random id alone.
    if Redaction in present:
        Redaction.objects.filter(record_id__in=keys, ended_at__isnull=False).update(
            session_id="", item_id="", item_mark=""
        )
    if LegalHold in present:
        released = LegalHold.objects.filter(record_id__in=keys, released_at__isnull=False)
        released.exclude(session_id="").update(session_id="")
    for model in NOTES:
        if model in present:
            changed.update(deleted(model.objects.filter(record_id__in=keys)))
    return changed


def models_with_rows_of(keys: Sequence[UUID]) -> set[Any]:
    """Those of HANGING that have a row of one of these sessions. One query."""
    with connection.cursor() as cursor:
        cursor.execute(WITH_ROWS, {"keys": list(keys)})
        return {HANGING[number] for (number,) in cursor.fetchall()}


def unquote(keys: Sequence[UUID]) -> Counter[str]:
    """Empties the quotes from sessions, and deletes the summaries that have no other source."""
    quotes = Evidence.objects.filter(record_id__in=keys)
    summaries = list(
        Memory.objects.filter(kind=Memory.Kind.SUMMARY, pk__in=quotes.values("memory")).values_list("pk", flat=True)
    )
    count = quotes.update(quote="", session_id="", item_id="", record_id=None, gone_at=Now(), said_at=None)
    with_source = Evidence.objects.filter(memory=OuterRef("pk"), record_id__isnull=False)
    without = Memory.objects.filter(pk__in=summaries).exclude(Exists(with_source))
    return Counter({"memories_app_evidence": count}) + deleted(without)


def delete_what_hung_on_items(record: SessionRecord, item_ids: Collection[str]) -> Counter[str]:
    """As `delete_what_hung_on`, of items that go or lose their text, in a session that stays."""
    of_items = {"record_id": record.pk, "item_id__in": list(item_ids)}
    quotes = Evidence.objects.filter(**of_items).update(quote="", item_id="", gone_at=Now(), said_at=None)
    changed = Counter({"memories_app_evidence": quotes})
    return changed + deleted(Signal.objects.filter(**of_items)) + deleted(SessionFinding.objects.filter(**of_items))


def deleted(rows: QuerySet[Any]) -> Counter[str]:
    """Deletes rows; returns their numbers by table."""
    return Counter(tables_of(rows.delete()[1]))
