"""Expired envelopes go without a key, by whole turns, and nothing that an agent still reads goes with them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from agents import SQLiteSession
from agents.extensions.memory import EncryptedSession
from django.core.management import CommandError, call_command
from django.db import connection

from memadmin import audit
from memadmin.audit.models import AuditEvent
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from sessions_app.encryption.purging import Purge, turns
from sessions_app.items import Seal, SealState
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.attaching import attach_store
from sessions_app.services.encryption import declare_encryption
from sessions_app.services.purging import PurgeRefused, PurgeReport, preview_purge, purge_expired, request_purge
from sessions_app.services.store_config import declare_store
from sessions_app.stores import rewriting
from tests.agents import add_items, run_sql, second_connection
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.sealed import NEW_KEY, OLD_KEY, STRANGE_KEY, add_sealed, as_items, read_by_agent, written_ago
from tests.sealed import keys as keys
from tests.sealed import stored as envelope

pytestmark = pytest.mark.usefixtures("keys")

DAY = timedelta(days=1)
TTL = timedelta(minutes=10)


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return declare_encryption(kept_main_store, key="old", ttl=TTL)


def purged(store: SessionStore, **limits: Any) -> PurgeReport:
    return purge_expired(preview_purge(store, **limits))


def stored(session_id: str = "a") -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM agent_messages WHERE session_id = %s", [session_id])
        return int(cursor.fetchone()[0])


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("purge_expired", "main", "--yes", *arguments, stdout=out)
    return out.getvalue()


def call(number: int) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"}


def output(number: int) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": "18"}


def test_nothing_goes_where_the_ttl_of_the_agents_is_not_declared(store: SessionStore) -> None:
    """The SDK's default is ten minutes. These agents read their items for a month."""
    store = declare_encryption(store, forgets_ttl=True)
    add_sealed("a", "last week", key=OLD_KEY, age=7 * DAY, ttl=30 * 86_400)
    for arguments in (["--dry-run"], [], ["--older-than", "1d"]):
        with pytest.raises(CommandError, match=r"The ttl of the agents of main is not declared"):
            command(*arguments)
    with pytest.raises(PurgeRefused):
        preview_purge(store)
    assert stored() == 1
    assert not Run.objects.exists()


def test_a_store_begins_without_a_ttl(kept_main_store: SessionStore) -> None:
    assert kept_main_store.encryption_ttl_seconds is None


@pytest.mark.parametrize("change", [{"forgets_ttl": True}, {"ttl": timedelta(days=30)}])
def test_a_run_waits_when_agents_read_for_longer_than_at_its_preview(store: SessionStore, change: Any) -> None:
    add_sealed("a", "long ago", key=OLD_KEY, age=DAY)
    run = request_purge(preview_purge(store))
    declare_encryption(store, **change)
    carry_on(run)
    assert (run.state, stored()) == (Run.State.WAITING, 1)
    assert "Agents of main read items for longer" in run.reason or "no longer declared" in run.reason
    declare_encryption(store, ttl=TTL)
    Run.objects.update(retry_at=None)
    assert carry_on(run).state == Run.State.COMPLETE
    assert stored() == 0


def test_it_is_previewed_and_asked_for(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    add_sealed("a", "long ago", key=OLD_KEY, age=DAY)
    answers = iter(["n", "", "y"])
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    out = StringIO()
    with pytest.raises(CommandError, match="run it with --yes"):
        call_command("purge_expired", "main", stdout=out)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for _ in range(2):
        with pytest.raises(CommandError, match=r"Nothing was deleted\."):
            call_command("purge_expired", "main", stdout=out)
    assert stored() == 1
    assert out.getvalue().count("1 expired item of 1 of 1 session would be deleted.") == 3
    call_command("purge_expired", "main", stdout=out)
    assert stored() == 0


@pytest.mark.parametrize("key_name", ["old", "", "new"])
def test_what_agents_no_longer_read_goes_with_and_without_a_key(key_name: str, store: SessionStore) -> None:
    declare_encryption(store, key=key_name)
    add_sealed("a", "long ago", "and its answer", key=OLD_KEY, age=DAY)
    add_sealed("a", "now", key=OLD_KEY)
    read_before = read_by_agent("a", key=OLD_KEY)
    told = command()
    assert stored() == 1
    assert read_by_agent("a", key=OLD_KEY) == read_before
    assert "2 expired items of 1 of 1 session were deleted." in told
    assert ("unverified" in told) == (key_name == "")


def test_a_wrong_key_proves_nothing(store: SessionStore) -> None:
    add_sealed("a", "long ago", key=STRANGE_KEY, age=DAY)
    assert "The times of 1 of them come from the envelope and are unverified: their key is not loaded." in command()
    assert stored() == 0


def test_plain_text_stays(store: SessionStore) -> None:
    add_items("a", "in the clear")
    add_sealed("a", "long ago", key=OLD_KEY, age=DAY)
    run_sql("UPDATE agent_messages SET created_at = created_at - interval '1 year'")
    assert purged(store).purged == 1
    assert stored() == 1


def test_the_ttl_of_the_store_decides_and_nothing_younger_can_be_asked_for(store: SessionStore) -> None:
    store = declare_encryption(store, ttl=timedelta(days=7))
    add_sealed("a", "yesterday", key=OLD_KEY, age=DAY)
    add_sealed("a", "last week", key=OLD_KEY, age=8 * DAY)
    add_sealed("a", "last month", key=OLD_KEY, age=31 * DAY)
    with pytest.raises(CommandError, match=r"still read items younger than 604,800 seconds"):
        command("--older-than", "12h")
    assert stored() == 3
    assert purged(store, older_than=30 * DAY).purged == 1
    assert purged(store).purged == 1
    assert [item["content"] for item in read_by_agent("a", key=OLD_KEY, ttl=10**9)] == ["yesterday"]


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1w", "1.5h", "100000d"])
def test_a_length_that_is_none_is_refused(text: str, store: SessionStore) -> None:
    with pytest.raises(CommandError, match="is not a duration such as 90d"):
        command(f"--older-than={text}")


class TestPairs:
    def test_a_turn_goes_as_a_whole(self, store: SessionStore) -> None:
        """Sealed at the very end of the time: of one turn a part is a second older than the rest."""
        add_sealed("a", "young", key=OLD_KEY)
        add_sealed("a", "old", key=OLD_KEY, age=DAY)
        run_sql("UPDATE agent_messages SET created_at = '2026-01-01'")
        report = purged(store)
        assert (report.purged, report.kept) == (0, 1)
        assert stored() == 2

    def test_a_call_stays_with_an_output_that_stays_where_the_key_tells(self, store: SessionStore) -> None:
        """As after an approval that came the next day."""
        self.approved_the_next_day()
        report = purged(store)
        assert (report.purged, report.kept) == (1, 4)
        assert [item.get("type", "message") for item in read_by_agent("a", key=OLD_KEY, ttl=10**9)] == [
            "function_call",
            "function_call",
            "function_call_output",
            "message",
            "function_call_output",
        ]

    def test_without_the_key_what_agents_read_stays_the_same(self, store: SessionStore) -> None:
        self.approved_the_next_day()
        store = declare_encryption(store, key="")
        before = read_by_agent("a", key=OLD_KEY)
        assert purged(store).purged == 5
        assert read_by_agent("a", key=OLD_KEY) == before == [output(2)]

    def approved_the_next_day(self) -> None:
        """The second call is answered late; the first one's turn holds an earlier output of a third."""
        add_sealed("a", "question", key=OLD_KEY, age=3 * DAY)
        add_sealed("a", call(1), call(2), key=OLD_KEY, age=2 * DAY)
        add_sealed("a", output(1), "by the way", key=OLD_KEY, age=DAY)
        add_sealed("a", output(2), key=OLD_KEY)

    def test_a_purge_that_forgets_pairs_would_leave_an_output_alone(
        self, store: SessionStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Purge, "learn", lambda self, items: None)
        self.approved_the_next_day()
        purged(store)
        assert read_by_agent("a", key=OLD_KEY, ttl=10**9) == [output(2)]


def test_where_a_store_keeps_no_times_what_was_sealed_together_is_a_turn() -> None:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    # The second of a turn may end within it.
    seals = [at, at + timedelta(seconds=1), at + timedelta(seconds=3), None, None]
    items = [
        replace(envelope(number, "{}"), written_at=None, seal=Seal(SealState.NO_KEY, moment))
        for number, moment in enumerate(seals)
    ]
    assert [[item.id for item in turn] for turn in turns(items)] == [["0", "1"], ["2"], ["3"], ["4"]]
    assert Purge(at + timedelta(hours=1)).goes(items) == {"0", "1", "2"}, "what tells no time stays"


class TestWhatIsTampered:
    def test_with_the_key_a_changed_time_proves_nothing(self, store: SessionStore) -> None:
        add_sealed("a", "now", "changed", key=OLD_KEY)
        self.make_the_last_look_old()
        assert purged(store).purged == 0
        assert stored() == 2

    def test_without_the_key_nobody_can_tell(self, store: SessionStore) -> None:
        """As the command says."""
        add_sealed("a", "changed", key=OLD_KEY)
        self.make_the_last_look_old()
        assert purged(declare_encryption(store, key="")).unproven == 1
        assert stored() == 0

    def make_the_last_look_old(self) -> None:
        add_sealed("other", "x", key=OLD_KEY, age=DAY)
        run_sql(
            "UPDATE agent_messages SET message_data = overlay(message_data placing"
            " (SELECT substr(message_data, strpos(message_data, 'gAAA'), 12) FROM agent_messages"
            "  WHERE session_id = 'other') from strpos(message_data, 'gAAA'))"
            " WHERE id = (SELECT max(id) FROM agent_messages WHERE session_id = 'a')"
        )
        run_sql("DELETE FROM agent_messages WHERE session_id = 'other'")


def test_a_dry_run_writes_nothing(store: SessionStore) -> None:
    add_sealed("a", "long ago", key=OLD_KEY, age=DAY)
    events = AuditEvent.objects.count()
    told = json.loads(command("--dry-run", "--json"))
    assert told == {
        "store": "main",
        "is_dry_run": True,
        "sessions": 1,
        "purged_sessions": 1,
        "purged": 1,
        "unproven": 0,
        "kept": 0,
        "busy": 0,
    }
    assert "1 expired item of 1 of 1 session would be deleted." in command("--dry-run")
    assert stored() == 1
    assert AuditEvent.objects.count() == events


def test_it_is_all_in_the_log(store: SessionStore) -> None:
    add_sealed("a", "long ago", "too", key=OLD_KEY, age=DAY)
    SessionRecord.objects.update(inspected_count=7)
    purged(store)
    told = AuditEvent.objects.filter(type__contains="purge").order_by("number")
    assert [(event.type, event.counters) for event in told] == [
        ("store.purge_begun", {}),
        ("session.purged", {"items": 2}),
        ("store.purge_ended", {"sessions": 1, "items": 2, "unproven": 0, "busy": 0}),
    ]
    assert told[1].object_ref == SessionRecord.objects.get().pk
    assert SessionRecord.objects.get().inspected_count == -1


def test_no_event_no_removal(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    add_sealed("a", "long ago", key=OLD_KEY, age=DAY)
    record = audit.record

    def fail(event_type: Any, **columns: Any) -> Any:
        if event_type.name == "session.purged":
            raise RuntimeError("the log cannot be written")
        return record(event_type, **columns)

    monkeypatch.setattr(audit, "record", fail)
    with pytest.raises(RuntimeError):
        purged(store)
    assert stored() == 1


def test_an_agent_that_writes_meanwhile_waits_and_keeps_its_item(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_sealed("a", "long ago", key=OLD_KEY, age=DAY)
    goes = Purge.goes
    writing: list[Future[None]] = []
    with somebody_else() as start:

        def goes_while_an_agent_writes(self: Purge, items: Any) -> set[str]:
            if not writing:
                writing.append(start(lambda: add_sealed("a", "now", key=NEW_KEY)))
                wait_until_blocked(writing[0])
            return goes(self, items)

        monkeypatch.setattr(Purge, "goes", goes_while_an_agent_writes)
        assert purged(store).purged == 1
        writing[0].result()
    assert [item["content"] for item in read_by_agent("a", key=NEW_KEY)] == ["now"]


def test_a_session_that_somebody_holds_is_left_for_the_next_time(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "PATIENCE", timedelta())
    monkeypatch.setattr(rewriting, "ERASE_TURN", "10ms")
    add_sealed("a", "long ago", key=OLD_KEY, age=DAY)
    with second_connection() as agent:
        agent.execute("SELECT FROM agent_sessions WHERE session_id = 'a' FOR UPDATE")
        assert "1 session was locked the whole time. Run it again." in command()
    assert "1 expired item" in command()


def test_a_file_of_the_sdks_own_class(agent_tables: None, tmp_path: Path) -> None:
    path = tmp_path / "agents.db"

    async def write(*words: str) -> int:
        inner = SQLiteSession("a", path)
        try:
            await EncryptedSession("a", inner, encryption_key=OLD_KEY).add_items(as_items(words))
            return len(await inner.get_items())
        finally:
            inner.close()

    with written_ago(DAY):
        asyncio.run(write("long ago", "too"))
    with closing(sqlite3.connect(path)) as file, file:
        # Its own clock was the database's: without this all of it would be one turn.
        file.execute("UPDATE agent_messages SET created_at = datetime(created_at, '-1 day')")
    asyncio.run(write("now"))
    files = declare_store("files", kind="sqlite", options={"path": str(path)})
    attach_store(files)
    files = declare_encryption(files, ttl=TTL)
    assert purged(files).purged == 2
    assert asyncio.run(write()) == 1
