"""Changing the agents' own rows by hand: under their locks, as valid JSON, and with a warning for broken pairs.

A model provider rejects an output without its call, and the SDK leaves out a call without its output. So a user who
removes one half has to confirm it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.db import Error, connection, transaction

from memadmin import audit
from memadmin.json_files import LONG_NUMBER, is_long_number
from sessions_app import audit_events
from sessions_app.items import Position, StoredItem
from sessions_app.models import AgentMessage, AgentSession, SessionRecord
from sessions_app.registry import MAIN_STORE
from sessions_app.services.deletion_guards import check_deletion
from sessions_app.timeline.decode import DecodedItem, decode
from sessions_app.timeline.pairing import call_key, output_key

LOCK_TIMEOUT = "5s"
"""Time that an edit waits for an agent that holds the session."""

EDITABLE_CHARACTERS = 500_000
"""Characters of the longest item that a form can return."""


class NotAnItem(ValueError):
    """The text cannot be stored in place of an item; the message is a sentence for the user who wrote it."""


def state_of(message: AgentMessage) -> str:
    """A value that changes with the stored text. A form that was opened with another one is outdated."""
    return hashlib.blake2b(str(message.message_data).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def lock_message(message_id: int) -> AgentMessage | None:
    """The row, locked until the end of the transaction the way the SDK locks: its session first. None if it is gone."""
    session_id = AgentMessage.objects.filter(pk=message_id).values_list("session_id", flat=True).first()
    if session_id is None:
        return None
    lock_session(session_id)
    return AgentMessage.objects.select_for_update().filter(pk=message_id, session_id=session_id).first()


def lock_session(session_id: str) -> AgentSession | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    return AgentSession.objects.select_for_update().filter(pk=session_id).first()


def show_message(message: AgentMessage, *, purpose: str = "") -> None:
    """Records in the log that this item is about to be shown; within the transaction of Django's admin, which commits
    before the page is written. Raises audit.AuditUnavailable.
    """
    try:
        with transaction.atomic():
            record = record_of(message.session_id)
            audit.record(
                audit_events.ITEM_VIEWED, target=record, subject=record and record.subject_id, reason_code=purpose
            )
    except Error as problem:
        raise audit.AuditUnavailable from problem


@transaction.atomic
def save_text(message: AgentMessage, text: str, *, by: User, why: audit.Why) -> None:
    """Saves this column only: an agent may have changed others of the session. Raises DeletionRefused."""
    record_edit(audit_events.ITEM_EDITED, message.session_id, by, why)
    AgentMessage.objects.filter(pk=message.pk).update(message_data=text)


@transaction.atomic
def delete_message(message: AgentMessage, *, by: User, why: audit.Why) -> None:
    """Raises DeletionRefused."""
    record_edit(audit_events.ITEM_DELETED, message.session_id, by, why)
    AgentMessage.objects.filter(pk=message.pk).delete()


@transaction.atomic
def delete_session(session: AgentSession, *, by: User, why: audit.Why) -> None:
    """Deletes a session with its items, in the SDK's order; hand-made tables may not cascade.

    Raises DeletionRefused.
    """
    record_edit(audit_events.STORED_SESSION_DELETED, session.pk, by, why)
    AgentMessage.objects.filter(session_id=session.pk).delete()
    AgentSession.objects.filter(pk=session.pk).delete()


def record_of(session_id: str) -> SessionRecord | None:
    return SessionRecord.objects.filter(store__name=MAIN_STORE, session_id=session_id).first()


def record_of_message(message_id: int) -> SessionRecord | None:
    """The record of the session that has this item; None if there is no such item, or its session is not registered."""
    session_id = AgentMessage.objects.filter(pk=message_id).values_list("session_id", flat=True).first()
    return None if session_id is None else record_of(session_id)


def record_edit(event_type: audit.EventType, session_id: str, by: User, why: audit.Why) -> None:
    """Records the change of an item or a session before it is made. Raises DeletionRefused."""
    record = record_of(session_id)
    check_deletion(records=[record.pk] if record else ())
    audit.record(
        event_type,
        by=by,
        target=record,
        subject=record and record.subject_id,
        reason_code=why.code,
        details=why.details,
    )


def is_sealed(message: AgentMessage) -> bool:
    """True for an encrypted envelope: a valid one cannot be written by hand."""
    return entry_of(message).is_envelope


def check_text(message: AgentMessage, text: str) -> None:
    """Raises NotAnItem unless the text is JSON, and an item if the replaced text is one."""
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except RecursionError:
        raise NotAnItem("This JSON is nested too deeply for an agent to read.") from None
    except json.JSONDecodeError as problem:
        raise NotAnItem(
            f"This is not valid JSON: {problem.msg}, in line {problem.lineno}, column {problem.colno}."
        ) from None
    except ValueError as problem:
        why = LONG_NUMBER if is_long_number(problem) else problem
        raise NotAnItem(f"This is not valid JSON: {why}.") from None
    if is_item(entry_of(message).value) and not is_item(value):
        raise NotAnItem("An item is a JSON object with a type or a role; agents fail on anything else.")


def refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def is_item(value: object) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(name), str) for name in ("type", "role"))


def what_breaks(message: AgentMessage, text: str | None) -> list[str]:
    """Effects on calls and outputs of replacing an item by a text, or deleting it with None, as sentences.

    They include what it does not do: text from before a compaction may be inside its block.
    """
    before = entry_of(message)
    after = entry_of(message, text) if text is not None else None
    broken = []
    key = call_key(before)
    if key and (after is None or call_key(after) != key):
        calls, outputs = others_with(message, key)
        if len(outputs) > len(calls):
            broken.append(
                f"Output {outputs[-1]} would remain without its call; the model provider rejects such a session."
            )
    key = output_key(before)
    if key and (after is None or output_key(after) != key):
        calls, outputs = others_with(message, key)
        if len(calls) > len(outputs):
            broken.append(f"Call {calls[-1]} would remain without its output; the agent would lose the call.")
    if after is not None and (key := output_key(after)) and key != output_key(before):
        calls, outputs = others_with(message, key)
        if len(outputs) >= len(calls):
            broken.append("No open call has the ID of this output; the model provider rejects such a session.")
    if block := block_behind(message):
        broken.append(f"Its text may also be contained in the compaction block {block}, which cannot be inspected.")
    return broken


def block_behind(message: AgentMessage) -> int | None:
    """The id of the first compaction block behind an item, which may contain its text."""
    place = (message.created_at, message.pk)
    for other in others_naming(message, "compaction"):
        if (other.created_at, other.pk) > place and entry_of(other).type == "compaction":
            return other.pk
    return None


def others_with(message: AgentMessage, key: tuple[str, str]) -> tuple[list[int], list[int]]:
    """Ids of the other calls and outputs of a session that have a pairing key, in stored order."""
    calls, outputs = [], []
    for other in others_naming(message, key[1]):
        entry = entry_of(other)
        if call_key(entry) == key:
            calls.append(other.pk)
        elif output_key(entry) == key:
            outputs.append(other.pk)
    return calls, outputs


def others_naming(message: AgentMessage, text: str) -> Iterator[AgentMessage]:
    escaped = json.dumps(text)[1:-1]
    others = AgentMessage.objects.filter(session_id=message.session_id).exclude(pk=message.pk)
    return others.filter(message_data__contains=escaped).order_by("created_at", "pk").iterator(chunk_size=100)


def entry_of(message: AgentMessage, text: Any = None) -> DecodedItem:
    raw = str(message.message_data if text is None else text)
    position = Position(("", message.pk))
    return decode(StoredItem(id=str(message.pk), position=position, raw=raw, byte_count=len(raw), written_at=None))
