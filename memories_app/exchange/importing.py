"""Import of memories from other systems: each becomes a proposal, which agents recall only after approval.

The source is not changed, so refused entries are not lost: they are reported with position and reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader

from django.db import DataError, connection, transaction

from memadmin import audit, json_files
from memadmin.client.proposal_results import is_storable
from memories_app import audit_events
from memories_app.exchange.entries import ImportedMemory, ImportedQuote, UnreadableEntry
from memories_app.exchange.formats import entries_of
from memories_app.exchange.rows import entry_of_row
from memories_app.learning.proposing import ProposedQuote, check_proposal, propose_memory
from memories_app.models import Memory
from memories_app.services.refusals import MemoryActionRefused
from sessions_app.models import SessionRecord, SessionStore, Subject, SubjectKind, SubjectSource
from sessions_app.services.subjects import SubjectError, is_key, merge_target, subject_for_key
from sessions_app.stores import backend_for
from sessions_app.stores.documents.backend import DocumentBackend

USERS_A_PAGE = 200

LONGEST_AGENT = 200

SHARED_LOCK = 0x6D656D62
"""PostgreSQL advisory lock that serialises imports of shared memories, so that each sees those of the others."""


@dataclass(slots=True)
class Imported:
    proposed: int = 0
    known: int = 0
    refused: list[UnreadableEntry] = field(default_factory=list)


class NotMemories(Exception):
    """The table of the store does not contain memories."""

    def __init__(self, store: SessionStore) -> None:
        super().__init__(
            f"The store {store} does not contain memories. Connect the table of agno's or phidata's user memories as a"
            " separate store, and import from that one."
        )


def import_file(file: BufferedReader, *, of: str = "", after_each: Callable[[], object] = lambda: None) -> Imported:
    """Proposes the memories in a file: JSON or JSON Lines, gzipped or not; see `import_entries`."""
    return import_entries(_in_file(file, of), after_each=after_each)


def import_store(store: SessionStore) -> Imported:
    """Proposes the memories in a table of agno or phidata. Raises NotMemories and StoreUnavailable."""
    backend = backend_for(store)
    if not isinstance(backend, DocumentBackend) or not backend.holds_memories():
        raise NotMemories(store)
    return import_entries(_in_store(store, backend), store=store)


def import_entries(
    entries: Iterable[ImportedMemory | UnreadableEntry],
    *,
    store: SessionStore | None = None,
    after_each: Callable[[], object] = lambda: None,
) -> Imported:
    """Proposes each entry in a transaction of its own, except those already known for the subject, with any decision.
    So it can be interrupted, repeated, or run twice at once. The event has the counts, also after an interruption.
    """
    imported = Imported()
    try:
        for entry in entries:
            if isinstance(entry, UnreadableEntry):
                imported.refused.append(entry)
                continue
            try:
                is_new = _imported(entry, store)
            except (MemoryActionRefused, SubjectError) as problem:
                imported.refused.append(UnreadableEntry(entry.place, str(problem)))
            except (DataError, RecursionError):
                # JSON allows values that PostgreSQL does not, such as numbers of any length.
                imported.refused.append(UnreadableEntry(entry.place, "it has a value that the database cannot store"))
            else:
                imported.proposed += is_new
                imported.known += not is_new
            after_each()
    finally:
        counters = {"proposed": imported.proposed, "known": imported.known, "refused": len(imported.refused)}
        # Of an import that was refused at once there is nothing to tell.
        if any(counters.values()):
            audit.record_alone(audit_events.MEMORIES_IMPORTED, counters=counters)
    return imported


def _in_file(file: BufferedReader, of: str) -> Iterator[ImportedMemory | UnreadableEntry]:
    for found in json_files.values(file):
        place = f"line {found.line}"
        if isinstance(found, json_files.UnreadableValue):
            yield UnreadableEntry(place, found.reason)
        else:
            yield from entries_of(found.value, place, of=of)


def _in_store(store: SessionStore, backend: DocumentBackend) -> Iterator[ImportedMemory | UnreadableEntry]:
    cursor, number = "", 0
    while True:
        page = backend.enumerate_sessions(cursor, limit=USERS_A_PAGE)
        users = [found.session_id for found in page.sessions]
        erased = SessionRecord.objects.erased(store, users)
        for user in users:
            for item in backend.every_item(user) if user not in erased else ():
                number += 1
                # The row's own id may contain personal data; a running number does not.
                yield entry_of_row(item, user, library=store.kind, place=f"memory {number}")
        cursor = page.next_cursor
        if not cursor:
            return


@transaction.atomic
def _imported(entry: ImportedMemory, store: SessionStore | None) -> bool:
    """Whether it was proposed; False if it is already known."""
    statement = entry.statement.strip()
    quotes = [_quote(said, store) for said in entry.said]
    source = Memory.Source.IMPORT
    check_proposal(statement, entry.kind, entry.key, source, entry.provenance, entry.confidence, entry.data, quotes)
    for name in entry.agents:
        if not 0 < len(name) <= LONGEST_AGENT or not is_storable(name):
            raise MemoryActionRefused(None, f"The name of an agent has 1 to {LONGEST_AGENT} characters.")
    subject = _subject(entry)
    agents = sorted(set(entry.agents))
    same = Memory.objects.about(subject) if subject else Memory.objects.filter(subject__isnull=True)
    # All states are listed so that the index is used.
    same = same.filter(status__in=Memory.Status.values, kind=entry.kind, key=entry.key)
    if same.filter(statement=statement, agents__contains=agents, agents__contained_by=agents).exists():
        return False
    propose_memory(
        statement,
        kind=entry.kind,
        key=entry.key,
        subject=subject,
        data=entry.data,
        agents=agents,
        provenance=entry.provenance,
        source=source,
        confidence=entry.confidence,
        valid_from=entry.valid_from,
        valid_until=entry.valid_until,
        revalidate_on=entry.revalidate_on,
        extractor=entry.extractor,
        evidence=quotes,
    )
    return True


def _subject(entry: ImportedMemory) -> Subject | None:
    """The subject, locked until the transaction ends; without one, all shared memories. Other imports wait."""
    if entry.subject is None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SHARED_LOCK])
        return None
    kind, key = entry.subject
    if kind not in SubjectKind.values:
        raise MemoryActionRefused(
            None, f"Unknown kind of subject “{kind[:40]}”. Use {', '.join(SubjectKind.values)}, or no subject."
        )
    if not is_key(key) or not is_storable(key):
        raise MemoryActionRefused(
            None, "The id of its subject is empty, too long, or contains characters that are not text."
        )
    subject = merge_target(subject_for_key(SubjectKind(kind), key, SubjectSource.IMPORT))
    return Subject.objects.select_for_update(no_key=True).get(pk=subject.pk)


def _quote(said: ImportedQuote, store: SessionStore | None) -> ProposedQuote:
    """The quote with its item in a connected store, so that a redaction there finds it."""
    record = (
        SessionRecord.objects.on_record().filter(store=store, session_id=said.session_id).first() if store else None
    )
    return ProposedQuote(
        said.quote,
        record_id=record.pk if record else None,
        session_id=said.session_id,
        item_id=said.item_id,
        speaker=said.speaker,
        said_at=said.said_at,
    )
