"""Statements, with their parameters, by which agents send proposals with evidence, and signals."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memadmin.client import runs
from memadmin.client.connection import SUBJECT_ID, Connection
from memadmin.client.proposal_results import Kept, RefusalReason, unfit
from memadmin.client.runs import CurrentRun
from memadmin.client.secret_text import mask_text

LONGEST_STATEMENT = 2000
LONGEST_QUOTE = 4000
LONGEST_DATA = 20_000
"""In characters, as JSON."""

MOST_QUOTES = 50
MOST_AGENTS = 50

Kind = Literal["preference", "fact", "procedure", "note", "summary"]
SignalKind = Literal["correction", "preference", "outcome", "rating"]

FORGET = "To be forgotten: "
"""Beginning of the signal that asks for something to be forgotten."""

PROPOSE = f"""
INSERT INTO memories_app_memory (
    id, subject_id, kind, key, statement, data, agents, provenance, source, confidence, valid_from, valid_until,
    replaces_id, base_version, extractor
) VALUES (
    %(id)s, {SUBJECT_ID}, %(kind)s, %(key)s, %(statement)s, %(data)s, %(agents)s, %(provenance)s, %(source)s,
    %(confidence)s, %(valid_from)s, %(valid_until)s, %(replaces)s, %(base_version)s, %(extractor)s
)
"""

ADD_EVIDENCE = """
INSERT INTO memories_app_evidence (id, memory_id, record_id, session_id, item_id, speaker, quote, said_at)
VALUES (%(id)s, %(memory)s, %(record)s, %(session)s, %(item_id)s, %(speaker)s, %(quote)s, %(said_at)s)
"""

GIVE_SIGNAL = f"""
INSERT INTO memories_app_signal (
    id, subject_id, record_id, session_id, item_id, kind, value, text, agent, memory_id
) VALUES (
    %(id)s, {SUBJECT_ID}, %(record)s, %(session)s, %(item_id)s, %(kind)s, %(value)s, %(text)s, %(agent)s, %(memory)s
)
"""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The quote that a proposal comes from. Without a session it is of the run's session; another session must be
    registered and about the same subject, or the proposal is refused.
    """

    quote: str
    speaker: str = "user"
    item_id: str = ""
    session_id: str = ""
    record: UUID | None = None
    said_at: datetime | None = None


def reason_to_refuse(
    statement: str, data: Mapping[str, Any], evidence: Sequence[Evidence], agents: Sequence[str]
) -> RefusalReason | None:
    """Reason why the database would refuse a proposal, found before it is sent."""
    if reason := unfit(statement, LONGEST_STATEMENT):
        return reason
    if len(evidence) > MOST_QUOTES or len(agents) > MOST_AGENTS:
        return RefusalReason.TOO_MANY
    for one in evidence:
        if reason := unfit(one.quote, LONGEST_QUOTE):
            return reason
    try:
        size = len(json.dumps(data))
    except (TypeError, ValueError, RecursionError):
        return RefusalReason.UNREADABLE
    return RefusalReason.TOO_LONG if size > LONGEST_DATA else None


def signal_values(
    run: CurrentRun | None,
    kind: SignalKind,
    text: str,
    *,
    value: int | None,
    agent: str,
    memory: UUID | None = None,
    item_id: str = "",
) -> dict[str, Any]:
    """The parameters of GIVE_SIGNAL. The id is given here, so that a repeated request stores one signal."""
    said = {"kind": kind, "value": value, "text": mask_text(text)[0], "agent": agent[:200]}
    return {"id": uuid.uuid4(), **runs.values(run), **said, "memory": memory, "item_id": item_id[:200]}


async def give_signal(given: Mapping[str, Any], connection: Connection) -> Kept:
    await connection.execute(GIVE_SIGNAL, given)
    return Kept(given["id"])


def evidence_values(one: Evidence, run: CurrentRun | None) -> dict[str, Any]:
    place = {"record": one.record, "session": one.session_id} if one.session_id else runs.values(run)
    said = {"item_id": one.item_id[:200], "speaker": one.speaker[:40], "said_at": one.said_at}
    return {"id": uuid.uuid4(), **place, **said, "quote": mask_text(one.quote)[0]}
