"""What hung on deleted sessions: each kind of row has its defined outcome, and no id of a session stays behind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
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
    quotes = Evidence.objects.filter(record_id__in=keys)
    summaries = list(
        Memory.objects.filter(kind=Memory.Kind.SUMMARY, pk__in=quotes.values("memory")).values_list("pk", flat=True)
    )
    changed = {
        "memories_app_evidence": quotes.update(
            quote="", session_id="", item_id="", record_id=None, gone_at=Now(), said_at=None
        ),
        "memories_app_recall": Recall.objects.filter(record_id__in=keys).update(record_id=None, session_id=""),
    }
    with_source = Evidence.objects.filter(memory=OuterRef("pk"), record_id__isnull=False)
    gone: list[QuerySet[Any]] = [
        Memory.objects.filter(pk__in=summaries).exclude(Exists(with_source)),
        Signal.objects.filter(record_id__in=keys),
    ]
    # Redactions and released holds stay as records of what people did, with our random id alone.
    Redaction.objects.filter(record_id__in=keys, ended_at__isnull=False).update(session_id="", item_id="", item_mark="")
    LegalHold.objects.filter(record_id__in=keys, released_at__isnull=False).exclude(session_id="").update(session_id="")
    return added({table: count for table, count in changed.items() if count}, deleted(gone))


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
    """Deletes the registry rows of sessions that are gone, and what is noted about them; returns rows by table."""
    keys = [record.pk for record in records]
    return deleted(
        [
            Distillation.objects.filter(record_id__in=keys),
            SessionFinding.objects.filter(record_id__in=keys),
            GrantedSession.objects.filter(record_id__in=keys),
            SessionRecord.objects.filter(pk__in=keys),
        ]
    )


def deleted(several: Sequence[QuerySet[Any]]) -> dict[str, int]:
    """Deletes rows; returns their numbers by table."""
    counts: dict[str, int] = {}
    for rows in several:
        counts = added(counts, tables_of(rows.delete()[1]))
    return counts
