"""An item of 1.5 MB in a file of SQLite, in Redis and in a folder of JSON: its page, its file, and its redaction."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from sessions_app.audit_events import RedactReason
from sessions_app.models import SessionRecord
from sessions_app.redaction import services
from sessions_app.redaction.services import RedactionRequest
from sessions_app.services.discovery import discover
from sessions_app.stores import backend_for
from sessions_app.stores.base import WHOLE_ITEM_BYTES
from tests.agents import user
from tests.runs.working import work_off
from tests.stores.contract import SdkAgent
from tests.stores.servers import RedisServer
from tests.stores.sqlite_files import SqliteAgent
from tests.stores.test_json_file import LinesAgent
from tests.stores.test_redis import RedisAgent

pytestmark = pytest.mark.slow

MEGABYTE = 1_000_000
SIZE = 1_500_000
"""Above all that a page, and the memory for it, may take: an item that is read whole is noticed."""
WORDS = "the bank account of the neighbour"
FILLING = "All work and no play makes it a long letter. "
HUGE = f"{WORDS} {FILLING * (SIZE // len(FILLING))} {WORDS}"

KINDS = ("sqlite", "redis", "json_file")
WHOLE = {"json_file"}
"""What reads a session whole for each page, as docs/stores.md says."""


@pytest.fixture
def agent(
    request: pytest.FixtureRequest, db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SdkAgent]:
    if request.param == "sqlite":
        files = SqliteAgent(tmp_path)
        yield files
        files.close()
    elif request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        yield RedisAgent(server, monkeypatch)
    else:
        yield LinesAgent(tmp_path / "chats")


@pytest.mark.parametrize(
    "agent",
    ["sqlite", *(pytest.param(kind, marks=pytest.mark.release) for kind in KINDS if kind != "sqlite")],
    indirect=True,
)
def test_it_is_shown_taken_away_and_redacted(agent: SdkAgent, operator: Client) -> None:
    agent.add("talk", user("hello"), user(HUGE), user("bye"))
    discover(agent.store)
    backend = backend_for(agent.store)
    tracemalloc.start()
    try:
        shown = backend.first_page("talk", 10).items
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    huge = shown[1]
    assert huge.byte_count > SIZE
    assert len(huge.raw) + len(huge.raw_tail) <= WHOLE_ITEM_BYTES
    assert peak < (4 * SIZE if agent.store.kind in WHOLE else MEGABYTE)

    record = SessionRecord.objects.get(store=agent.store, session_id="talk")
    assert operator.get(record.get_absolute_url()).status_code == 200
    page = operator.get(reverse("sessions:item", args=[record.pk, huge.id]))
    assert (page.status_code, len(page.content) < MEGABYTE) == (200, True)
    # What would take too long to be masked is covered as a whole, which depends on how busy the machine is.
    download = operator.get(reverse("sessions:export-jsonl", args=[record.pk]))
    assert len(download.getvalue().splitlines()) == 3
    assert [stored.byte_count > SIZE for stored in backend.every_item("talk") if stored.is_whole] == [
        False,
        True,
        False,
    ]

    officer = User.objects.create(username="officer")
    wanted = RedactionRequest(WORDS, reason=RedactReason.LEAKED_SECRET, by=officer)
    services.redact_in_session(record, wanted)
    work_off()
    (_, stored, _) = agent.stored("talk")
    assert WORDS not in stored
    assert len(stored) > SIZE - 1_000
    assert not agent.leftovers(WORDS)
