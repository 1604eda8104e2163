"""Downloads of lists as CSV, under their filters and without content: no message, no first words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from memadmin import audit
from memadmin.counting import count_up_to
from memadmin.web.downloads import MOST_ROWS, in_utc, table_download
from memadmin.web.pages import operator_page
from memadmin.web.paging import in_batches
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import audit_events
from sessions_app.filters import SessionFilter
from sessions_app.models import SessionRecord, SessionStore, Subject

BATCH = 1_000

SESSION_COLUMNS = (
    *("id", "store", "session id", "subject", "subject id", "ticket", "agent", "labels"),
    *("first seen (UTC)", "last activity (UTC)", "encrypted", "locked", "findings", "gone from the store since (UTC)"),
)
SUBJECT_COLUMNS = ("id", "name", "IDs", "first seen (UTC)")


@operator_page("sessions_app.read_content")
@recently_authenticated(doing="download a list", file=True)
def session_table(request: OperatorRequest) -> HttpResponseBase:
    """The sessions of the list under its filters; not of a search in messages, which reads stores for each page."""
    filters = SessionFilter(request.GET)
    address = f"{reverse('sessions:list')}?{request.GET.urlencode()}"
    if filters.problems:
        return redirect(address)
    if filters.searched:
        messages.warning(request, "A search in messages cannot be downloaded. Remove it and keep the other filters.")
        return redirect(address)
    found = filters.queryset()
    count = count_up_to(found, MOST_ROWS)
    if count > MOST_ROWS:
        messages.warning(request, f"More than {MOST_ROWS:,} sessions match. Add a filter.")
        return redirect(address)
    audit.before_showing(
        audit_events.SESSIONS_EXPORTED,
        subject=filters.active.get("subject"),
        counters={"sessions": count},
        details={"filter": filters.query_string()},
    )
    rows = chain.from_iterable(session_rows(batch) for batch in in_batches(found, BATCH))
    return table_download(SESSION_COLUMNS, islice(rows, count), "sessions")


def session_rows(records: Iterable[SessionRecord]) -> Iterator[tuple[object, ...]]:
    """Two queries, for the names of stores and subjects."""
    records = list(records)
    stores = SessionStore.objects.in_bulk({record.store_id for record in records})
    subjects = Subject.objects.labels({record.subject_id for record in records if record.subject_id})
    for record in records:
        store = stores[record.store_id]
        yield (
            record.pk,
            store.name,
            record.session_id,
            subjects.get(record.subject_id) if record.subject_id else None,
            record.subject_id,
            record.ticket,
            record.agent,
            ", ".join(record.labels),
            in_utc(record.registered_at),
            in_utc(record.last_activity_at),
            yes_or_no(record.is_encrypted),
            yes_or_no(record.is_sensitive or store.is_sensitive),
            record.finding_count,
            in_utc(record.missing_since),
        )


@operator_page("sessions_app.view_subject")
@recently_authenticated(doing="download a list", file=True)
def subject_table(request: OperatorRequest) -> HttpResponseBase:
    """The subjects of the list, with their ids."""
    found = Subject.objects.listed()
    count = count_up_to(found, MOST_ROWS)
    if count > MOST_ROWS:
        messages.warning(request, f"There are more than {MOST_ROWS:,} subjects, too many for a table.")
        return redirect("sessions:subjects")
    audit.before_showing(audit_events.SUBJECTS_EXPORTED, counters={"subjects": count})
    rows = (subject_row(subject) for batch in in_batches(found, BATCH) for subject in batch)
    return table_download(SUBJECT_COLUMNS, islice(rows, count), "subjects")


def subject_row(subject: Subject) -> tuple[object, ...]:
    ids = ", ".join(f"{alias.kind} {alias.key}" for alias in subject.aliases.all())
    return (subject.pk, subject.label, ids, in_utc(subject.created_at))


def yes_or_no(value: bool) -> str:
    return "yes" if value else "no"
