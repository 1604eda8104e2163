"""Import of transcripts into a store, written as if an agent had held the conversations there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedReader
from typing import cast

from agents.extensions.memory import SQLAlchemySession
from agents.items import TResponseInputItem
from django.db import Error, connection
from sqlalchemy.exc import DBAPIError

from memadmin import audit
from memadmin.json_files import UnreadableValue, is_long_number
from sessions_app import audit_events
from sessions_app.models import SessionRecord, SessionStore, SubjectKind, SubjectSource
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.registry import MAIN_KIND
from sessions_app.services import subjects
from sessions_app.services.sessions import SessionChangeDetails, update_records
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.sqlalchemy.engine import AgentTables, open_agent_tables
from sessions_app.stores.sqlalchemy.postgres import in_plain_words
from sessions_app.transcripts.chat import Item, convert
from sessions_app.transcripts.parsing import Conversation, identifier, parse_conversations

IMPORT_LOCK = 0x6D656D61
"""First key of a PostgreSQL advisory lock; the second is the store's number."""


class ImportRunning(Exception):
    """Another import writes into this store; two at once could write the same conversation twice."""

    def __init__(self, store: SessionStore) -> None:
        super().__init__(f"Another import into the store {store} is running; wait until it has ended.")


@dataclass(frozen=True, slots=True)
class Skipped:
    line: int
    reason: str


@dataclass(slots=True)
class ImportReport:
    sessions: int = 0
    """Sessions with added items."""
    items: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    without_record: int = 0
    """Conversations whose subject could not be recorded, because the store is not attached."""


class _Refused(Exception):
    """Reason why a conversation, or the rest of one, is not in the store. Has the number of items that are."""

    def __init__(self, reason: object, added: int = 0) -> None:
        super().__init__(str(reason))
        self.added = added


def import_transcripts(
    file: BufferedReader,
    store: SessionStore,
    *,
    subject_field: str = "",
    after_each: Callable[[], object] = lambda: None,
) -> ImportReport:
    """Writes every conversation of a file into a store through the SDK; the report lists those that failed.

    Safe to repeat: a session that begins with the conversation is complete, one with only its beginning (of an
    interrupted import) gets the rest, one with other items is left alone and reported. So is an
    erased one. `subject_field` is the field beside the messages with the customer's id.

    Raises ImportRunning, StoreUnavailable when the database goes away, and OSError when the file does.
    """
    report = ImportReport()
    if store.kind != MAIN_KIND:
        raise StoreUnavailable(f"Imports need a store of SQLAlchemy tables; {store} is of the kind {store.kind}.")
    with in_plain_words(store), _alone_with(store), asyncio.Runner() as runner:
        tables = open_agent_tables(
            store.sessions_table,
            store.messages_table,
            timezone=store.writer_timezone,
            acting_as=audit.settings_for_triggers(),
        )
        try:
            for conversation in parse_conversations(file):
                if isinstance(conversation, UnreadableValue):
                    report.skipped.append(Skipped(conversation.line, conversation.reason))
                else:
                    is_there = _import(conversation, store, tables, runner, report)
                    if subject_field and is_there:
                        _note_subject(conversation, store, subject_field, report)
                after_each()
        finally:
            runner.run(tables.aclose())
            counters = {"sessions": report.sessions, "items": report.items, "skipped": len(report.skipped)}
            # Of an import that was refused at once there is nothing to tell.
            if any(counters.values()):
                audit.record_alone(audit_events.TRANSCRIPTS_IMPORTED, target=store, counters=counters)
    return report


def _import(
    conversation: Conversation, store: SessionStore, tables: AgentTables, runner: asyncio.Runner, report: ImportReport
) -> bool:
    """True if any item of the conversation is in the store now."""
    converted = convert(conversation.messages)
    report.skipped += [Skipped(conversation.line, problem) for problem in converted.problems]
    try:
        if _is_erased(conversation, store):
            raise _Refused("this session was erased; an import does not restore it")
        added = runner.run(_add_missing(tables.session(conversation.session_id), converted.turns))
        is_there = bool(converted.turns)
    except _Refused as refusal:
        report.skipped.append(Skipped(conversation.line, str(refusal)))
        added = refusal.added
        is_there = added > 0
    except (OSError, DBAPIError) as problem:
        raise StoreUnavailable(
            f"The database of the store {store} is no longer responding; run the same import again to continue."
        ) from problem
    report.items += added
    report.sessions += added > 0
    return is_there


async def _add_missing(session: SQLAlchemySession, turns: list[list[Item]]) -> int:
    """Adds the missing items of a conversation, and returns their number.

    Each turn is a transaction of its own, as when an agent writes it: only so does it get its own time.
    """
    added = 0
    try:
        held: list[object] = list(await session.get_items())
        wanted: list[object] = [item for turn in turns for item in turn]
        if held[: len(wanted)] != wanted[: len(held)]:
            raise _Refused("the session contains other items; nothing was added")
        position = 0
        for turn in turns:
            missing = turn[max(0, len(held) - position) :]
            position += len(turn)
            await session.add_items(cast("list[TResponseInputItem]", missing))
            added += len(missing)
    except RecursionError:
        raise _Refused("nested too deeply", added) from None
    except ValueError as problem:
        if not is_long_number(problem):
            raise
        raise _Refused("the session contains an item that cannot be read; nothing was added", added) from None
    except DBAPIError as refusal:
        if refusal.connection_invalidated:
            raise
        # The driver's own message; SQLAlchemy's would quote the statement and its content.
        driver = refusal.orig and refusal.orig.__cause__
        raise _Refused(f"the database refused it: {driver or type(refusal).__name__}", added) from refusal
    return added


def _note_subject(conversation: Conversation, store: SessionStore, subject_field: str, report: ImportReport) -> None:
    """Sets the subject unless one is set: what an operator has decided since the last import stays."""
    if not (record := _records(conversation, store).on_record().first()):
        report.without_record += 1
    elif record.subject_source in ("", SubjectSource.PATTERN):
        try:
            subject = subjects.subject_for_key(
                SubjectKind.USER, identifier(conversation.fields.get(subject_field)), SubjectSource.IMPORT
            )
            change = SessionChangeDetails(audit_events.SESSIONS_ATTACHED, None, subject=subject)
            update_records([record], change, subject=subject, subject_source=SubjectSource.IMPORT)
        except subjects.BadKey:
            report.skipped.append(Skipped(conversation.line, f"it has no usable subject in “{subject_field}”"))
        except subjects.SubjectWasErased as refusal:
            report.skipped.append(Skipped(conversation.line, str(refusal)))


def _is_erased(conversation: Conversation, store: SessionStore) -> bool:
    """For the message only; the fence keeps an erased session erased."""
    return bool(SessionRecord.objects.erased(store, [conversation.session_id]))


def _records(conversation: Conversation, store: SessionStore) -> SessionRecordQuerySet:
    return SessionRecord.objects.filter(store_id=store.pk, session_id=conversation.session_id)


@contextmanager
def _alone_with(store: SessionStore) -> Iterator[None]:
    lock = [IMPORT_LOCK, store.pk or 0]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", lock)
        if cursor.fetchone() != (True,):
            raise ImportRunning(store)
        try:
            yield
        finally:
            # After an interruption the connection may be unusable: the lock then goes with it, and an error of the
            # connection must not replace the interruption.
            with suppress(Error):
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", lock)
