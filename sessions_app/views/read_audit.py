"""Audit events of sessions' content that a page shows, with its amount.

Each function commits its event and then returns; if that fails it raises audit.AuditUnavailable, which ends the view.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from django.http import HttpRequest

from memadmin import audit
from memadmin.accounts.content_access import rules
from sessions_app import audit_events
from sessions_app.items import StoredItem
from sessions_app.listing import ListedSession
from sessions_app.models import SessionRecord, Subject, SubjectAlias


def session(request: HttpRequest, record: SessionRecord, items: Sequence[StoredItem]) -> None:
    purpose = rules.opening(request, record.pk)
    audit.before_showing(
        audit_events.SESSION_VIEWED,
        target=record,
        subject=record.subject,
        counters={"items": len(items)},
        reason_code=purpose,
    )
    decrypted(request, record, items)


def news(request: HttpRequest, record: SessionRecord, items: Sequence[StoredItem]) -> None:
    """Records that an open page shows something new. A refresh without news is not recorded."""
    purpose = rules.purpose_of(request)
    audit.before_showing(
        audit_events.SESSION_FOLLOWED,
        target=record,
        subject=record.subject,
        counters={"items": len(items)},
        reason_code=purpose,
    )
    decrypted(request, record, items)


def item(request: HttpRequest, record: SessionRecord, stored: StoredItem, *, as_file: bool) -> None:
    purpose = rules.opening(request, record.pk)
    event_type = audit_events.ITEM_DOWNLOADED if as_file else audit_events.ITEM_VIEWED
    audit.before_showing(event_type, target=record, subject=record.subject, reason_code=purpose)
    decrypted(request, record, [stored])


def decrypted(request: HttpRequest, record: SessionRecord, items: Sequence[StoredItem]) -> None:
    """Records how many of the items that were read were decrypted for the reader; nothing if none."""
    if count := sum(item.seal is not None and item.seal.is_open for item in items):
        note_decrypted(record, record.subject, count, rules.purpose_of(request))


def snippets(request: HttpRequest, records: Iterable[SessionRecord], granted: Collection[UUID]) -> None:
    """Records the items that a search decrypted: one of each encrypted session that a grant covers."""
    purpose = rules.purpose_of(request)
    for record in records:
        if record.is_encrypted and record.pk in granted:
            note_decrypted(record, record.subject_id, 1, purpose)


def note_decrypted(record: SessionRecord, subject: Subject | UUID | None, count: int, purpose: str) -> None:
    counters = {"items": count}
    audit.before_showing(
        audit_events.SESSION_DECRYPTED, target=record, subject=subject, counters=counters, reason_code=purpose
    )


def download(request: HttpRequest, record: SessionRecord, form: str, *, is_decrypted: bool) -> None:
    purpose = rules.opening(request, record.pk)
    counters = {form: 1, **({"opened": 1} if is_decrypted else {})}
    audit.before_showing(
        audit_events.SESSION_DOWNLOADED, target=record, subject=record.subject, counters=counters, reason_code=purpose
    )


def listed(sessions: Sequence[ListedSession]) -> None:
    if sessions:
        audit.before_showing(
            audit_events.SESSIONS_LISTED,
            shown=with_subjects(each.record for each in sessions),
            counters={"sessions": len(sessions)},
        )


def subject(shown: Subject, sessions: Sequence[ListedSession] = ()) -> None:
    audit.before_showing(
        audit_events.SUBJECT_VIEWED,
        target=shown,
        subject=shown,
        shown=[each.record for each in sessions],
        counters={"sessions": len(sessions)},
    )


def subjects(shown: Sequence[Subject]) -> None:
    if shown:
        audit.before_showing(audit_events.SUBJECTS_LISTED, shown=shown, counters={"subjects": len(shown)})


def found(request: HttpRequest, records: Sequence[SessionRecord]) -> None:
    """Records the sessions that a search shows."""
    if records:
        audit.before_showing(
            audit_events.SEARCH_SHOWN,
            shown=with_subjects(records),
            counters={"sessions": len(records)},
            reason_code=rules.purpose_of(request),
        )


def places(aliases: Sequence[SubjectAlias], sessions: Sequence[SessionRecord], tickets: Sequence[str]) -> None:
    if aliases or sessions or tickets:
        audit.before_showing(
            audit_events.SEARCH_SHOWN,
            shown={*with_subjects(sessions), *(alias.subject_id for alias in aliases)},
            counters={"subjects": len(aliases), "sessions": len(sessions), "tickets": len(tickets)},
        )


def with_subjects(records: Iterable[SessionRecord]) -> set[UUID]:
    """Ids of the records and of their subjects, as an event names them."""
    refs: set[UUID] = set()
    for record in records:
        refs |= {record.pk} if record.subject_id is None else {record.pk, record.subject_id}
    return refs
