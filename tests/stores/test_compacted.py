"""Sessions that the SDK's own class compacts, in several kinds of stores: runs of the SDK's Runner, with a scripted
model and a scripted client for the compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from agents import SQLiteSession
from agents.extensions.memory import RedisSession
from agents.memory import OpenAIResponsesCompactionSession, Session
from django.test import Client
from openai import AsyncOpenAI

from memadmin.demo.script import FakeCompaction
from sessions_app.audit_events import RedactReason
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.redaction.services import RedactionRequest, redact_in_session
from sessions_app.services.discovery import discover
from sessions_app.stores import backend_for
from tests.agents import attach_main_store, attached_store
from tests.client.agents import in_agent, in_postgres, talk
from tests.runs.working import report_of, work_off
from tests.stores.contract import SECRET
from tests.stores.servers import own_redis
from tests.stores.test_json_file import LinesSession

pytestmark = pytest.mark.slow

SESSION = "talk"

Kept = tuple[SessionStore, Callable[[], Session]]


def in_database(folder: Path) -> Iterator[Kept]:
    yield attach_main_store(), lambda: in_postgres(SESSION)


def in_sqlite_file(folder: Path) -> Iterator[Kept]:
    path = folder / "agents.db"
    SQLiteSession(SESSION, path).close()
    yield (
        attached_store("files", kind="sqlite", options={"path": str(path)}),
        lambda: SQLiteSession(SESSION, path),
    )


def in_json_lines(folder: Path) -> Iterator[Kept]:
    options = {"path": str(folder), "ending": ".jsonl", "names": "quoted"}
    yield attached_store("lines", kind="json_file", options=options), lambda: LinesSession(SESSION, folder)


def in_redis_with_password(folder: Path) -> Iterator[Kept]:
    with own_redis(password="sesame") as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("CACHE_URL", server.address)
        assert ":sesame@" in server.address
        yield (
            attached_store("cache", kind="redis", options={"url_env": "CACHE_URL"}),
            lambda: RedisSession.from_url(SESSION, url=server.address),
        )


@pytest.fixture(params=[in_database, in_sqlite_file, in_json_lines, in_redis_with_password])
def kept(request: pytest.FixtureRequest, agent_tables: None, tmp_path: Path) -> Iterator[Kept]:
    yield from request.param(tmp_path)


def say(make: Callable[[], Session], *texts: str) -> list[Any]:
    """Runs of the agent, one for each text; returns what the model of the last one was given."""

    async def runs() -> list[Any]:
        session = OpenAIResponsesCompactionSession(
            SESSION,
            make(),
            client=cast(AsyncOpenAI, FakeCompaction()),
            compaction_mode="input",
            should_trigger_compaction=lambda now: len(now["compaction_candidate_items"]) >= 3,
        )
        for text in texts:
            model = await talk(session, text)
        if close := getattr(session.underlying_session, "close", None):
            closed = close()
            if closed is not None:
                await closed
        assert model.last_call
        return list(model.last_call.input)

    return in_agent(runs)


def types_of(store: SessionStore) -> list[str]:
    return [
        "compaction" if '"compaction"' in item.raw else "message" for item in backend_for(store).every_item(SESSION)
    ]


def test_a_compacted_session_is_shown_redacted_and_continued(kept: Kept, operator: Client) -> None:
    store, make = kept
    say(make, f"My key is {SECRET}", "And now?", "Thank you")
    assert types_of(store) == ["message", "message", "message", "compaction"]
    if store.name != "main":
        discover(store)
    record = SessionRecord.objects.get(store=store, session_id=SESSION)
    page = operator.get(record.get_absolute_url())
    assert "History compacted here" in page.text
    assert "My key is" in operator.get("/sessions/").text

    request = RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, takes_compactions=True, by=None)
    asked = redact_in_session(record, request)
    work_off()
    report = report_of(asked)
    assert (report["items"], report["taken_out"], report["reasons"]) == (1, 1, [])
    assert types_of(store) == ["message", "message", "message"]

    given = say(make, "Still there?")
    assert SECRET not in str(given)
    assert "[redacted]" in str(given)
    backend_for(store).erase_session(SESSION)
    assert list(backend_for(store).every_item(SESSION)) == []
