"""What agno keeps: the contract of stores, written through agno's own classes, and what is special about it."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from agno.db.base import SessionType
from agno.db.postgres import PostgresDb
from agno.db.sqlite import SqliteDb
from agno.models.message import Message
from agno.run.agent import RunInput, RunOutput
from agno.run.base import RunStatus
from agno.session import AgentSession
from sqlalchemy import URL
from sqlalchemy.exc import IntegrityError

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


class AgnoAgent(DocumentAgent):
    """Each `add` is a run, whose texts agno keeps three times: in the messages, as input, and as content."""

    kind = "agno"
    table = "agno_sessions"
    # A run of a session that went after the run had begun has nowhere to go.
    told_of_erasure = (IntegrityError,)

    in_postgres: ClassVar[dict[URL, PostgresDb]] = {}
    """By address. Making the tables, and looking at them once, takes agno longer than most tests do."""

    def prepare(self) -> None:
        url = self.place.url
        if self.place.schema and not self.place.is_new and url in self.in_postgres:
            self.db: Any = self.in_postgres[url]
            return
        self.db = self.opened()
        if self.place.schema:
            self.in_postgres[url] = self.db
        self.add("first", {"role": "user", "content": "makes the tables"})
        self.forget("first")

    def opened(self) -> PostgresDb | SqliteDb:
        """Has not looked at any table yet."""
        engine = engine_for(self.place.url)
        return PostgresDb(db_engine=engine, db_schema="ai") if self.place.schema else SqliteDb(db_engine=engine)

    def add(self, session_id: str, *items: Item) -> None:
        created_at = int(time.time())
        session = AgentSession(session_id, agent_id="support", user_id=USER, created_at=created_at)
        run = RunOutput(
            run_id=str(uuid4()),
            agent_id="support",
            session_id=session_id,
            user_id=USER,
            input=RunInput(input_content=first_text(items, "user")),
            content=first_text(items, "assistant"),
            messages=[Message(**as_message(item, created_at)) for item in items],
            status=RunStatus.completed,
            created_at=created_at,
        )
        self.db.upsert_session(session)
        self.db.upsert_run(run, session_id, user_id=USER)

    def runs(self, session_id: str) -> list[RunOutput]:
        session = self.db.get_session(session_id, SessionType.AGENT)
        return list(session.runs or []) if session else []

    def read(self, session_id: str) -> list[Item]:
        return [as_item(message.to_dict()) for run in self.runs(session_id) for message in run.messages or []]

    def as_read(self, raw: str) -> Item:
        return as_item(json.loads(raw))

    def pop(self, session_id: str) -> None:
        *_, last = self.runs(session_id)
        last.messages = (last.messages or [])[:-1]
        if last.messages:
            self.db.upsert_run(last, session_id, user_id=USER)
        else:
            self.db.delete_run(last.run_id)

    def forget(self, session_id: str) -> None:
        self.db.delete_session(session_id)

    def stored(self, session_id: str) -> list[str]:
        """jsonb is kept in a form of its own: what PostgreSQL writes for a message is taken for what is stored."""
        if self.place.schema:
            query = (
                f"SELECT CAST(m.value AS text) FROM {self.name('agno_runs')},"
                " jsonb_array_elements(run_data -> 'messages') WITH ORDINALITY AS m(value, n)"
                " WHERE session_id = :session_id ORDER BY run_index, m.n"
            )
            return [row[0] for row in self.ask(query, session_id=session_id)]
        query = f"SELECT run_data FROM {self.name('agno_runs')} WHERE session_id = :session_id ORDER BY run_index"
        documents = [json.loads(row[0]) for row in self.ask(query, session_id=session_id)]
        return [json.dumps(message) for document in documents for message in document.get("messages", [])]

    def age(self, session_id: str, by: timedelta) -> None:
        query = f"UPDATE {self.name('agno_runs')} SET created_at = created_at - :by WHERE session_id = :session_id"
        self.ask(query, by=int(by.total_seconds()), session_id=session_id)
        self.changed_rows("agno_runs", "run_data", "run_id", lambda document: older(document, by))


class TestAgno(DocumentContract):
    agent_class = AgnoAgent
