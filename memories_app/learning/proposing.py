"""Proposals of memories by people, distillers and imports.

Agents propose through `memadmin.client`, under a role of their own and without this module; the database enforces the
same rules for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from memadmin import audit
from memadmin.client.proposal_results import is_storable
from memories_app import audit_events
from memories_app.models import Evidence, Memory
from memories_app.models.memories import LONGEST_QUOTE, LONGEST_STATEMENT
from memories_app.services.refusals import Overtaken, Unproposable, gate_explained
from sessions_app.models import Subject
from sessions_app.services.subjects import merge_target

LONGEST_KEY = 80
LONGEST_DATA = 20_000
"""Maximum of characters of `str`; PostgreSQL's text form of it has at most LONGEST_STORED_DATA."""

MOST_LEVELS = 100
"""Levels of data within each other; the decoders of some programs take no more than a few hundred."""

MOST_QUOTES = 50


@dataclass(frozen=True, slots=True)
class ProposedQuote:
    """Evidence of a proposal: an item of a session, and a quote from it."""

    text: str
    record_id: UUID | None = None
    session_id: str = ""
    item_id: str = ""
    speaker: str = ""
    said_at: datetime | None = None
    signal_id: UUID | None = None
    tools: Sequence[str] | None = None
    """Tools that may have influenced it; None if not determined."""
    said_by_user: bool | None = None
    """Whether it was read in a user's item; None if the caller did not read it."""


class ChangesNothing(Unproposable):
    sentence = "The memory already has this text."


@transaction.atomic
def propose_memory(
    statement: str,
    *,
    kind: str,
    subject: Subject | None = None,
    by: User | None = None,
    key: str = "",
    data: Mapping[str, Any] | None = None,
    agents: Sequence[str] = (),
    provenance: str = Memory.Provenance.INFERRED,
    source: str = Memory.Source.USER,
    confidence: float = 0.5,
    valid_from: datetime | None = None,
    valid_until: datetime | None = None,
    revalidate_on: date | None = None,
    extractor: str = "",
    replaces: Memory | None = None,
    evidence: Sequence[ProposedQuote] = (),
) -> Memory:
    """Creates a proposal with its evidence; `by` is the proposer, who may not decide about it.

    With `replaces` it is a change of that memory, with the same subject. Raises Unproposable with the reason,
    NothingLearnedHere if learning is stopped for the subject, and Overtaken if agents no longer use the other memory.
    """
    statement = statement.strip()
    check_proposal(statement, kind, key, source, provenance, confidence, data, evidence)
    if valid_from and valid_until and valid_from >= valid_until:
        raise Unproposable(None, "The validity would end before it begins.")
    replaces = locked_base(replaces) if replaces else None
    owner = replaces.subject if replaces else merge_target(subject) if subject else None
    memory = Memory(
        statement=statement,
        kind=kind,
        subject=owner,
        key=key,
        data=dict(data or {}),
        agents=sorted(set(agents)),
        provenance=provenance,
        source=source,
        confidence=confidence,
        valid_from=valid_from,
        valid_until=valid_until,
        revalidate_on=revalidate_on,
        extractor=extractor,
        replaces=replaces,
        base_version=replaces.version if replaces else None,
        proposed_by=by,
    )
    with gate_explained(memory), audit.recording(audit_events.MEMORY_PROPOSED, by=by) as event:
        memory.save(force_insert=True)
        event.target, event.subject = memory, memory.subject
    memory.refresh_from_db()
    if replaces and replaces.content_hash == memory.content_hash and replaces.valid_until == memory.valid_until:
        raise ChangesNothing(replaces)
    add_evidence(memory, evidence)
    return memory


def locked_base(memory: Memory) -> Memory:
    """The memory that a proposal would change, locked. Raises Overtaken if agents no longer use it."""
    memory = Memory.objects.select_for_update(of=("self",), no_key=True).get(pk=memory.pk)
    if memory.status not in Memory.IN_USE:
        raise Overtaken(memory, f"Agents no longer use that memory: its status is {memory.get_status_display()}.")
    return memory


def add_evidence(memory: Memory, quotes: Iterable[ProposedQuote]) -> None:
    """Stores quotes as evidence of a memory."""
    Evidence.objects.bulk_create(
        Evidence(
            memory=memory,
            record_id=quote.record_id,
            session_id=quote.session_id,
            item_id=quote.item_id,
            speaker=quote.speaker,
            quote=quote.text,
            said_at=quote.said_at,
            signal_id=quote.signal_id,
            tools=None if quote.tools is None else list(quote.tools),
            said_by_user=quote.said_by_user,
        )
        for quote in quotes
    )


class ChangedSinceRead(Overtaken):
    sentence = "This memory changed since you opened it. Your change was not saved; read the current version."


@transaction.atomic
def propose_change(memory: Memory, *, by: User, statement: str, content_hash: str) -> Memory:
    """Proposes a new text for a memory; agents read the current one until another person approves the change.

    `content_hash` is that of the text read. Raises ChangedSinceRead, and what propose_memory raises.
    """
    memory = Memory.objects.select_for_update(of=("self",), no_key=True).get(pk=memory.pk)
    if memory.content_hash != content_hash:
        raise ChangedSinceRead(memory)
    return propose_memory(
        statement,
        by=by,
        replaces=memory,
        **memory.proposal_columns() | {"source": Memory.Source.OPERATOR},
    )


def check_proposal(
    statement: str,
    kind: str,
    key: str,
    source: str,
    provenance: str,
    confidence: float,
    data: Mapping[str, Any] | None,
    evidence: Sequence[ProposedQuote],
) -> None:
    """Raises Unproposable for values that the database would refuse, and for invalid memories."""
    if kind not in Memory.Kind.values or source not in Memory.Source.values:
        raise Unproposable(None, f"There is no memory of kind “{kind}” from source “{source}”.")
    if provenance not in Memory.Provenance.values:
        raise Unproposable(None, f"Provenance is explicit or inferred, not “{provenance}”.")
    if not 0.0 <= confidence <= 1.0:
        raise Unproposable(None, "Confidence must be between 0 and 1.")
    check_statement(statement)
    if len(key) > LONGEST_KEY or not is_storable(key):
        raise Unproposable(None, f"A key is a name of up to {LONGEST_KEY} characters.")
    check_data(data or {})
    if len(evidence) > MOST_QUOTES:
        raise Unproposable(None, f"A proposal comes with {MOST_QUOTES} quotes at most; this one has {len(evidence)}.")
    for quote in evidence:
        if len(quote.text) > LONGEST_QUOTE or not is_storable(quote.text + quote.item_id + quote.speaker):
            raise Unproposable(None, f"A quote is text of at most {LONGEST_QUOTE:,} characters.")


def check_data(data: Mapping[str, Any]) -> None:
    """Raises Unproposable for data that is too long or cannot be stored."""
    try:
        is_kept = len(str(data)) <= LONGEST_DATA and all(map(is_storable, _texts(data, MOST_LEVELS)))
    except RecursionError:
        raise Unproposable(None, "Its data is nested too deeply.") from None
    if not is_kept:
        raise Unproposable(
            None, f"Its data is longer than {LONGEST_DATA:,} characters, or contains characters that are not text."
        )


def _texts(value: Any, levels: int) -> Iterator[str]:
    """All strings in a JSON value, including names. Raises RecursionError beyond so many levels."""
    if not levels:
        raise RecursionError
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from (*_texts(name, levels), *_texts(inner, levels - 1))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, levels - 1)


def check_statement(statement: str) -> None:
    """Raises Unproposable for a text that is empty, too long or cannot be stored."""
    if not statement:
        raise Unproposable(None, "A memory cannot be empty.")
    if len(statement) > LONGEST_STATEMENT:
        raise Unproposable(
            None,
            f"A memory has at most {LONGEST_STATEMENT:,} characters; this one has {len(statement):,}. Memories go "
            "into prompts; longer texts are documents.",
        )
    if not is_storable(statement):
        raise Unproposable(None, "The text contains invalid characters: a NUL or half a surrogate pair.")
