"""What phidata keeps: the contract of stores, written through phidata's own classes, and what is special about it."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from phi.agent.session import AgentSession
from phi.memory.agent import AgentMemory, AgentRun
from phi.model.message import Message
from phi.run.response import RunResponse, RunResponseExtraData
from phi.storage.agent.postgres import PgAgentStorage
from phi.storage.agent.sqlite import SqlAgentStorage

from tests.stores.contract import Item
from tests.stores.document_agents import (
    USER,
    DocumentAgent,
    DocumentContract,
    as_item,
    as_message,
    engine_for,
    first_text,
    older,
)

pytestmark = pytest.mark.slow


class PhidataAgent(DocumentAgent):
    """Each `add` is a run, whose texts phidata keeps up to four times: in the messages, as what was asked, in the
    answer with its messages, and in the history that a later run was given."""

    kind = "phidata"
    table = "support_bots"
    brings_back = True

    def prepare(self) -> None:
        if self.place.schema:
            engine = engine_for(self.place.url)
            self.storage: Any = PgAgentStorage(self.table, schema=self.place.schema, db_engine=engine)
        else:
            self.storage = SqlAgentStorage(self.table, db_file=str(self.place.path))
        self.storage.create()

    def memory(self, session_id: str) -> AgentMemory:
        session = self.storage.read(session_id)
        kept = (session.memory if session else None) or {}
        return AgentMemory(
            runs=[AgentRun(**run) for run in kept.get("runs", [])],
            messages=[Message(**message) for message in kept.get("messages", [])],
        )

    def save(self, session_id: str, memory: AgentMemory) -> None:
        kept = memory.to_dict()
        # What it gives is what it reads afterwards: nothing, when the session was erased in between.
        self.storage.upsert(
            AgentSession(session_id=session_id, agent_id="support", user_id=USER, memory=kept, session_data={})
        )

    def add(self, session_id: str, *items: Item) -> None:
        created_at = int(time.time())
        memory = self.memory(session_id)
        history = memory.messages[-3:]
        messages = [Message(**as_message(item, created_at)) for item in items]
        asked = first_text(items, "user")
        response = RunResponse(
            run_id=str(uuid4()),
            session_id=session_id,
            content=first_text(items, "assistant"),
            messages=messages,
            created_at=created_at,
            extra_data=RunResponseExtraData(history=history),
        )
        memory.add_messages(messages)
        memory.add_run(
            AgentRun(message=Message(**as_message({"role": "user", "content": asked}, created_at)), response=response)
        )
        self.save(session_id, memory)

    def read(self, session_id: str) -> list[Item]:
        return [as_item(message.model_dump(exclude_none=True)) for message in self.memory(session_id).messages]

    def as_read(self, raw: str) -> Item:
        return as_item(json.loads(raw))

    def pop(self, session_id: str) -> None:
        memory = self.memory(session_id)
        memory.messages.pop()
        *before, last = memory.runs
        said = last.response.messages if last.response else None
        if said and len(said) > 1:
            said.pop()
        else:
            memory.runs = before
        self.save(session_id, memory)

    def forget(self, session_id: str) -> None:
        self.storage.delete_session(session_id)

    def stored(self, session_id: str) -> list[str]:
        if self.place.schema:
            query = (
                f"SELECT CAST(m.value AS text) FROM {self.name(self.table)},"
                " jsonb_array_elements(memory -> 'messages') WITH ORDINALITY AS m(value, n)"
                " WHERE session_id = :session_id ORDER BY m.n"
            )
            return [row[0] for row in self.ask(query, session_id=session_id)]
        query = f"SELECT memory FROM {self.name(self.table)} WHERE session_id = :session_id"
        ((document,),) = self.ask(query, session_id=session_id)
        return [json.dumps(message) for message in json.loads(document)["messages"]]

    def age(self, session_id: str, by: timedelta) -> None:
        query = f"UPDATE {self.name(self.table)} SET created_at = created_at - :by WHERE session_id = :session_id"
        self.ask(query, by=int(by.total_seconds()), session_id=session_id)
        self.changed_rows(self.table, "memory", "session_id", lambda document: older(document, by))


class TestPhidata(DocumentContract):
    agent_class = PhidataAgent
