"""Changes of the head of the record of processing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from memadmin import audit
from memadmin.erasure.audit_events import RECORD_CHANGED
from memadmin.erasure.data_map.models import ProcessingRecord


class RecordChanged(Exception):
    """Another person saved the record meanwhile; nothing was saved."""

    def __init__(self) -> None:
        super().__init__("Another person has changed the record since you opened it. Nothing was saved.")


def current_record() -> ProcessingRecord | None:
    """The head of the record, or None before it is filled in. One query."""
    return ProcessingRecord.objects.select_related("changed_by").first()


@transaction.atomic
def change_record(values: Mapping[str, str], *, by: User, seen: datetime | None) -> ProcessingRecord:
    """Saves the head of the record. `seen` is the time of the version that the person had before them, None without
    one. Raises RecordChanged.
    """
    audit.record(RECORD_CHANGED, by=by, target=ProcessingRecord())
    # Of two first changes one waits here for the other.
    ProcessingRecord.objects.bulk_create([ProcessingRecord()], ignore_conflicts=True)
    record = ProcessingRecord.objects.select_for_update().get()
    # The row was made just now if it is empty: the form requires every field.
    if (record.changed_at if record.purpose else None) != seen:
        raise RecordChanged
    ProcessingRecord.objects.update(**values, changed_by=by, changed_at=Now())
    record.refresh_from_db()
    return record
