"""The run that builds a copy: a part for each session, then the ZIP file.

Parts stay when the run is interrupted, so it continues with the next session. They are put together without reading a
store, so a store that is away delays the copy and never spoils it.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, timedelta
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from django.conf import settings
from django.db.models.functions import Now
from django.template.loader import render_to_string
from django.utils.timezone import now

from memadmin import audit
from memadmin.batching import batched
from memadmin.erasure import audit_events
from memadmin.erasure.access_copy import files, writing
from memadmin.erasure.access_copy.exclusions import NEVER_INCLUDED, NotIncluded
from memadmin.erasure.access_copy.keys import unwrapped
from memadmin.erasure.access_copy.locked import approved_sessions, left_out_of
from memadmin.erasure.access_copy.records import LISTINGS, CopyContext, person, session_row, sessions
from memadmin.erasure.access_copy.sealed_files import unsealed
from memadmin.erasure.data_map.models import ProcessingRecord
from memadmin.erasure.models import AccessCopy, RequestNote
from memadmin.erasure.scope import SubjectScope, scope_of
from memadmin.erasure.steps.away import RETRY_STORE
from memadmin.runs import engine
from memadmin.runs.engine import Interrupted, Lease, LeaseLost, Wait
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores.base import SessionUnreadable, StoreUnavailable
from sessions_app.stores.sealed import sealed_backend_for

RUN_KIND = "access_copy"

RETRY_FULL = timedelta(hours=1)

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL = (
    "There is no space for the copy in MEMADMIN_DATA_DIR. What was written was deleted; the run begins again in an"
    " hour, or when it is resumed."
)

SESSIONS_AT_ONCE = 50

FORMS = ("json", "html")
"""Parts of a session, by the ends of their names."""

PROCESSING_FACTS = ("controller", "contact", "purpose", "recipients", "third_countries")


def work(lease: Lease) -> None:
    """Works on a copy from where it is. Raises what the lease raises, and Wait."""
    copy = AccessCopy.objects.select_related("request__subject", "request__approval").get(run=lease.run)
    if copy.state != AccessCopy.State.BUILDING:
        # Killed between the last chunk and the end of the run.
        files.delete_parts(copy)
        return
    try:
        build(lease, copy)
    except OSError as problem:
        if problem.errno not in FULL:
            raise
        # The agents' database may be on the same disk.
        files.delete_parts(copy)
        raise Wait(DISK_FULL, retry_after=RETRY_FULL) from problem
    except (Interrupted, LeaseLost):
        # Of a copy that was deleted meanwhile nothing may stay.
        if not AccessCopy.objects.filter(pk=copy.pk, state=AccessCopy.State.BUILDING).exists():
            files.delete_parts(copy)
        raise


def build(lease: Lease, copy: AccessCopy) -> None:
    if not files.parts_of(copy).exists():
        # The first attempt; or the parts are on another machine, or were deleted because the disk was full.
        with lease.chunk() as run:
            run.cursor, run.counters, run.done = {}, {}, 0
    files.make_parts_folder(copy)
    scope, allowed = scope_of(copy.request.subject, []), approved_sessions(copy)
    away = []
    for store in SessionStore.objects.filter(pk__in=scope.records().values("store")).order_by("name"):
        if store.name not in copy.left_out:
            try:
                write_sessions(lease, copy, scope, store, allowed)
            except StoreUnavailable:
                away.append(store.name)
    if away or copy.waits_for:
        with lease.chunk():
            AccessCopy.objects.filter(pk=copy.pk).update(waits_for=away)
    if away:
        raise Wait(
            f"The store {', '.join(away)} does not respond. The run tries again; a person may leave it out.",
            retry_after=RETRY_STORE,
        )
    put_together(lease, copy, scope, allowed)


# --- parts ------------------------------------------------------------------------------------------------------------


def write_sessions(
    lease: Lease, copy: AccessCopy, scope: SubjectScope, store: SessionStore, allowed: frozenset[UUID]
) -> None:
    """Writes the parts of a store's sessions after the last one that was done, without locked ones that are not
    `allowed`. Raises StoreUnavailable.
    """
    place = str(store.pk)
    records = scope.records().filter(store=store, erased_at=None).order_by("pk")
    # No key comes before this one.
    while batch := list(records.filter(pk__gt=lease.run.cursor.get(place, UUID(int=0)))[:SESSIONS_AT_ONCE]):
        left_out = left_out_of(scope, allowed, among=[record.pk for record in batch])
        for record in batch:
            record.store = store
            try:
                counts = (
                    writing.SessionCounts()
                    if record.pk in left_out
                    else write_parts(lease, copy, record, opens=record.pk in allowed)
                )
            except SessionUnreadable:
                counts = None
            with lease.chunk() as run:
                run.cursor = {**run.cursor, place: str(record.pk)}
                if counts is None:
                    run.count(unreadable=1)
                else:
                    run.done += counts.items
                    closed = "closed" if record.pk in allowed else "sealed"
                    run.count(sessions=record.pk not in left_out, **{closed: counts.closed})
            lease.checkpoint()


def part_of(copy: AccessCopy, record_id: UUID, form: str) -> Path:
    return files.parts_of(copy) / f"{record_id}.{form}"


def write_parts(lease: Lease, copy: AccessCopy, record: SessionRecord, *, opens: bool) -> writing.SessionCounts:
    """Writes one session as JSON and as a page, decrypted if `opens`. Raises StoreUnavailable, with nothing written."""
    counts = writing.SessionCounts()
    backend = sealed_backend_for(record.store, opens=opens)
    items = backend.every_item(record.session_id)
    with (
        files.new_sealed_file(part_of(copy, record.pk, "json"), copy) as as_json,
        files.new_sealed_file(part_of(copy, record.pk, "html"), copy) as as_page,
    ):
        pages = writing.SessionPages()
        as_json.write(encoded('{"session": ' + writing.json_text(session_row(record)) + ',\n"items": ['))
        for batch in batched(items, writing.ITEMS_AT_ONCE):
            for item in batch:
                as_json.write(encoded(("," if counts.items else "") + "\n" + writing.json_item(item, counts.items + 1)))
                counts.items += 1
                counts.closed += writing.is_closed(item)
            as_page.write(encoded(pages.add(batch)))
            keep(lease)
        as_page.write(encoded(pages.finish()))
        as_json.write(b"\n]}\n")
    return counts


def keep(lease: Lease) -> None:
    """Between two batches of what is one step for the cursor. Raises Interrupted when this process must end."""
    lease.keep()
    if engine.stopping.is_set():
        raise Interrupted


def encoded(text: str) -> bytes:
    # Pages write half characters out; this is for what they leave.
    return text.encode(errors="backslashreplace")


# --- the file ---------------------------------------------------------------------------------------------------------


def put_together(lease: Lease, copy: AccessCopy, scope: SubjectScope, allowed: frozenset[UUID]) -> None:
    """Writes the ZIP file, puts it in place and says so in one chunk."""
    # Locked since its parts were written, or by an earlier version.
    for record_id in (left_out := left_out_of(scope, allowed)):
        for form in FORMS:
            part_of(copy, record_id, form).unlink(missing_ok=True)
    included = [record_id for record_id in sorted(allowed) if part_of(copy, record_id, "json").exists()]
    missing = not_included(lease.run, copy, left_out)
    built = files.parts_of(copy) / "copy"
    with files.new_sealed_file(built, copy) as sealed:
        # Not as a context manager, which would hide an error behind one of its own.
        archive = ZipFile(cast(IO[bytes], sealed), "w", ZIP_DEFLATED)
        for name, size, parts in members(copy, scope, left_out, missing):
            info = ZipInfo(name, now().astimezone(UTC).timetuple()[:6])
            info.compress_type, info.external_attr, info.file_size = ZIP_DEFLATED, 0o600 << 16, size
            with archive.open(info, "w") as member:
                for part in parts:
                    member.write(part)
                    keep(lease)
        archive.close()
    name = f"{copy.pk.hex}-{lease.token}"
    with lease.chunk() as run:
        locked = AccessCopy.objects.select_for_update(of=("self",)).get(pk=copy.pk)
        if locked.state != AccessCopy.State.BUILDING:
            raise Interrupted
        files.put_in_place(built, copy, name)
        audit.record(
            audit_events.COPY_BUILT,
            target=copy.request,
            subject=copy.request.subject_id,
            counters={"sessions": run.counters.get("sessions", 0), "items": run.done},
        )
        copy.request.note(RequestNote.Code.COPY_BUILT)
        AccessCopy.objects.filter(pk=copy.pk).update(
            state=AccessCopy.State.READY,
            file_name=name,
            size=sealed.size,
            sha256=sealed.digest.hexdigest(),
            locked=included,
            ready_at=Now(),
            expires_at=now() + settings.ACCESS_COPY_LIFETIME,
        )
        run.exceptions = [[code, place, count] for code, place, count in missing if code not in NEVER_INCLUDED]
    files.delete_parts(copy)


Member = tuple[str, int, Iterator[bytes]]
"""Name in the ZIP file, its size or a little more if that is known, and the content."""


Missing = Sequence[tuple[NotIncluded, str, int]]
"""Reasons for what is missing, with place and count."""


def members(copy: AccessCopy, scope: SubjectScope, left_out: Mapping[UUID, str], missing: Missing) -> Iterator[Member]:
    """All files of the copy, the overview first."""
    about = {
        "request": str(copy.request),
        "made_at": now(),
        "legal_basis": "GDPR article 15",
        "processing": processing_facts(),
        "not_included": [{"reason": code.label, "place": place, "count": count} for code, place, count in missing],
    }
    # Read once, so that numbers mean the same everywhere.
    keys = list(sessions(scope).values_list("pk", flat=True))
    session_ids = SessionRecord.objects.filter(pk__in=left_out).values_list("session_id", flat=True)
    context = CopyContext({*left_out, *session_ids})
    yield text_member("index.html", overview(copy, scope, keys, about, left_out))
    yield text_member("about.json", [writing.json_text(about)])
    yield text_member("data.json", data(copy, scope, keys))
    for listing in LISTINGS:
        yield text_member(f"{listing.name}.json", writing.json_rows(listing.rows(scope, context)))
        rows = writing.row_parts(listing.rows(scope, context))
        yield text_member(f"{listing.name}.html", writing.page(listing.title, rows, "index.html", listing.intro))
    file_key = unwrapped(copy.key)
    for number, record in numbered(scope, keys):
        as_json, as_page = part_of(copy, record.pk, "json"), part_of(copy, record.pk, "html")
        if as_page.exists():
            yield f"sessions/{number}.json", as_json.stat().st_size, unsealed(as_json, file_key)
            head, foot = map(encoded, writing.page(f"Session {number}", (), "../index.html"))
            parts = chain([head], unsealed(as_page, file_key), [foot])
            yield f"sessions/{number}.html", as_page.stat().st_size + len(head + foot), parts


def processing_facts() -> dict[str, str]:
    """Facts from the record of processing that GDPR article 15 (1) asks for besides the data. One query."""
    record = ProcessingRecord.objects.only(*PROCESSING_FACTS).first()
    return {name: getattr(record, name) for name in PROCESSING_FACTS} if record else {}


def text_member(name: str, parts: Iterable[str]) -> Member:
    return name, 0, map(encoded, parts)


def numbered(scope: SubjectScope, keys: Sequence[UUID]) -> Iterator[tuple[int, SessionRecord]]:
    """Sessions with their numbers, in batches: no cursor stays open."""
    for some in batched(enumerate(keys, start=1), SESSIONS_AT_ONCE):
        batch = sessions(scope).in_bulk([key for _, key in some])
        for number, key in some:
            if key in batch:
                yield number, batch[key]


def data(copy: AccessCopy, scope: SubjectScope, keys: Sequence[UUID]) -> Iterator[str]:
    """The ids of the person and all sessions with the names of their files."""
    rows = (
        {
            "number": number,
            "file": f"sessions/{number}.json" if part_of(copy, record.pk, "json").exists() else None,
            **session_row(record),
        }
        for number, record in numbered(scope, keys)
    )
    yield '{"person": ' + writing.json_text(person(scope)) + ',\n"sessions": '
    yield from writing.json_rows(rows)
    yield "}\n"


def overview(
    copy: AccessCopy, scope: SubjectScope, keys: Sequence[UUID], about: dict[str, Any], left_out: Container[UUID]
) -> Iterator[str]:
    context = {
        "about": about,
        "facts": writing.shown(about["processing"]),
        "person": writing.shown(person(scope)),
        "listings": LISTINGS,
    }
    beginning = render_to_string("erasure/copy/_overview.html", context)
    shown = (shown_session(number, record, copy, left_out) for number, record in numbered(scope, keys))
    yield from writing.page("A copy of your data", chain([beginning], writing.in_parts("_sessions", shown)))


def shown_session(number: int, record: SessionRecord, copy: AccessCopy, left_out: Container[UUID]) -> dict[str, Any]:
    is_there = part_of(copy, record.pk, "html").exists()
    why = ""
    if record.erased_at:
        why = "erased; nothing of it is stored"
    elif record.store.name in copy.left_out:
        why = NotIncluded.STORE_LEFT_OUT.label
    elif record.pk in left_out:
        why = NotIncluded.LOCKED.label
    elif not is_there:
        why = "could not be read, was locked, or began after this copy"
    return {
        "number": number,
        "page": f"sessions/{number}.html" if is_there else "",
        "why": why,
        "values": writing.shown(session_row(record)),
    }


def not_included(run: Run, copy: AccessCopy, left_out: Mapping[UUID, str]) -> Missing:
    unreadable, closed, sealed = (run.counters.get(name, 0) for name in ("unreadable", "closed", "sealed"))
    return [
        *((NotIncluded.LOCKED, name, count) for name, count in sorted(Counter(left_out.values()).items())),
        *([(NotIncluded.STAY_ENCRYPTED, "", sealed)] if sealed else []),
        *((NotIncluded.STORE_LEFT_OUT, name, 0) for name in copy.left_out),
        *([(NotIncluded.UNREADABLE, "", unreadable)] if unreadable else []),
        *([(NotIncluded.NO_KEY, "", closed)] if closed else []),
        *((code, "", 0) for code in NEVER_INCLUDED),
    ]
