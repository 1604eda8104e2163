"""What hung on deleted sessions: each kind of row has its defined outcome, and no id of a session stays behind."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from memadmin.accounts.models import GrantedSession
from memadmin.retention.models import LegalHold
from memories_app.models import Distillation, Evidence, Memory, Recall, Signal
from sessions_app.models import Redaction, SessionFinding, SessionRecord


def delete_what_hung_on(records: Sequence[SessionRecord]) -> dict[str, int]:
    """Deletes the registry rows of sessions that are gone, and what came from them; returns rows by table.

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
        Distillation.objects.filter(record_id__in=keys),
        SessionFinding.objects.filter(record_id__in=keys),
        GrantedSession.objects.filter(record_id__in=keys),
    ]
    # Redactions and released holds stay as records of what people did, with our random id alone.
    Redaction.objects.filter(record_id__in=keys, ended_at__isnull=False).update(session_id="", item_id="", item_mark="")
    LegalHold.objects.filter(record_id__in=keys, released_at__isnull=False).exclude(session_id="").update(session_id="")
    deleted = [rows.delete()[1] for rows in gone]
    deleted.append(SessionRecord.objects.filter(pk__in=keys).delete()[1])
    for model, count in chain.from_iterable(each.items() for each in deleted):
        table = model.lower().replace(".", "_")
        changed[table] = changed.get(table, 0) + count
    return {table: count for table, count in changed.items() if count}
