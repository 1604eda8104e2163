"""What hung on deleted sessions: each kind of row has its defined outcome, and no id of a session stays behind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet, Value
from django.db.models.functions import Now

from memadmin.accounts.models import GrantedSession
from memadmin.retention.models import LegalHold
from memadmin.retention.targets.base import added, tables_of
from memories_app.models import Distillation, Evidence, Memory, Recall, Signal
from sessions_app.models import Redaction, SessionFinding, SessionRecord


def delete_what_hung_on(records: Sequence[SessionRecord]) -> dict[str, int]:
    """Gives what came from sessions its outcome; returns rows by table. Raises DeletionRefused where a hold keeps it.

    Quotes go, and their memories stay with the note that the source is gone; summaries without another source go.
    Signals are words of these sessions, and go. Recalls stay, without the session. In the caller's transaction.
    """
    keys = [record.pk for record in records]
    present = tables_with_rows_of(keys)
    changed: dict[str, int] = {}
    if Evidence in present:
        changed = unquote(keys)
    if Recall in present:
        recalls = Recall.objects.filter(record_id__in=keys)
        changed["memories_app_recall"] = recalls.update(record_id=None, session_id="")
    # Redactions and released holds stay as records of what people did, with our random id alone.
    if Redaction in present:
        Redaction.objects.filter(record_id__in=keys, ended_at__isnull=False).update(
            session_id="", item_id="", item_mark=""
        )
    if LegalHold in present:
        released = LegalHold.objects.filter(record_id__in=keys, released_at__isnull=False)
        released.exclude(session_id="").update(session_id="")
    gone = [model.objects.filter(record_id__in=keys) for model in (Signal, *NOTES) if model in present]
    return added(changed, deleted(gone))


def unquote(keys: Sequence[UUID]) -> dict[str, int]:
    """Empties the quotes from sessions, and deletes the summaries that have no other source."""
    quotes = Evidence.objects.filter(record_id__in=keys)
    summaries = list(
        Memory.objects.filter(kind=Memory.Kind.SUMMARY, pk__in=quotes.values("memory")).values_list("pk", flat=True)
    )
    count = quotes.update(quote="", session_id="", item_id="", record_id=None, gone_at=Now(), said_at=None)
    with_source = Evidence.objects.filter(memory=OuterRef("pk"), record_id__isnull=False)
    without = Memory.objects.filter(pk__in=summaries).exclude(Exists(with_source))
    return added({"memories_app_evidence": count}, deleted([without]))


NOTES: tuple[Any, ...] = (Distillation, SessionFinding, GrantedSession)
"""What is noted about sessions, and goes with them."""


def tables_with_rows_of(keys: Sequence[UUID]) -> set[Any]:
    """Models with rows that name one of these sessions. One query: most sessions have left nothing in most tables."""
    models: list[Any] = [Evidence, Recall, Signal, *NOTES, Redaction, LegalHold]
    rows = [
        model.objects.filter(record_id__in=keys)
        .order_by()
        .annotate(place_in_list=Value(number))
        .values_list("place_in_list")[:1]
        for number, model in enumerate(models)
    ]
    return {models[number] for (number,) in rows[0].union(*rows[1:], all=True)}


def delete_what_hung_on_items(record: SessionRecord, item_ids: Collection[str]) -> dict[str, int]:
    """As `delete_what_hung_on`, of items that go or lose their text, in a session that stays."""
    of_items = {"record_id": record.pk, "item_id__in": list(item_ids)}
    changed = {
        "memories_app_evidence": Evidence.objects.filter(**of_items).update(
            quote="", item_id="", gone_at=Now(), said_at=None
        )
    }
    gone = [Signal.objects.filter(**of_items), SessionFinding.objects.filter(**of_items)]
    return added({table: count for table, count in changed.items() if count}, deleted(gone))


def delete_records(records: Sequence[SessionRecord]) -> dict[str, int]:
    """Deletes the registry rows of sessions that are gone; returns rows by table."""
    return deleted([SessionRecord.objects.filter(pk__in=[record.pk for record in records])])


def deleted(several: Sequence[QuerySet[Any]]) -> dict[str, int]:
    """Deletes rows; returns their numbers by table."""
    counts: dict[str, int] = {}
    for rows in several:
        counts = added(counts, tables_of(rows.delete()[1]))
    return counts
