"""A store is sealed anew while agents work, through kills, and without touching what it cannot read."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from agents import SQLiteSession, TResponseInputItem
from agents.extensions.memory import EncryptedSession
from django.conf import settings as project
from django.core.management import CommandError, call_command
from django.db import connection

from memadmin import audit
from memadmin.audit.models import AuditEvent
from sessions_app import registry
from sessions_app.encryption import sealing_of
from sessions_app.encryption.rotation import ItemKeyState, Rotation
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services import rotation
from sessions_app.services.attaching import attach_store
from sessions_app.services.encryption import declare_encryption
from sessions_app.services.rotation import RotationReport, rotate_key
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for, rewriting
from sessions_app.stores.base import Capability
from sessions_app.stores.rewriting import Changes, SqlRewriter
from sessions_app.stores.sqlite.backend import SqliteBackend
from tests.agents import add_items, attached_store, in_sdk, run_sql, second_connection
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.sealed import NEW_KEY, OLD_KEY, STRANGE_KEY, add_sealed, as_items, read_by_agent, secrets
from tests.sealed import keys as keys
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("keys")


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return declare_encryption(kept_main_store, key="old")


def rows() -> list[tuple[int, str, str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, session_id, message_data, created_at FROM agent_messages ORDER BY id")
        return list(cursor.fetchall())


def said(session_id: str, key: str, **options: Any) -> list[str]:
    return [item["content"] for item in read_by_agent(session_id, key=key, **options)]


def rotate(store: SessionStore, **options: Any) -> RotationReport:
    return rotate_key(store, old="old", new="new", **options)


def address_of(session_id: str) -> str:
    return SessionRecord.objects.get(session_id=session_id).get_absolute_url()


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("rotate_key", "main", "--from", "old", "--to", "new", *arguments, stdout=out)
    return out.getvalue()


def time_of(raw: str) -> str:
    return str(json.loads(raw)["payload"])[:12]


class TestSealingAnew:
    def test_agents_with_the_new_key_read_what_those_with_the_old_one_did(self, store: SessionStore) -> None:
        add_sealed("a", "one", "two", key=OLD_KEY)
        add_sealed("a", "three — 3️⃣", key=OLD_KEY)
        add_sealed("b", "other", key=OLD_KEY)
        before = rows()
        report = rotate(store)
        assert report.is_complete
        assert (report.resealed, report.sessions) == (4, 2)
        assert said("a", NEW_KEY) == ["one", "two", "three — 3️⃣"]
        assert said("b", NEW_KEY) == ["other"]
        assert said("a", OLD_KEY) == []
        after = rows()
        assert [row[:2] + row[3:] for row in after] == [row[:2] + row[3:] for row in before]
        assert [time_of(row[2]) for row in after] == [time_of(row[2]) for row in before]
        store.refresh_from_db()
        assert store.encryption_key == "new"
        assert registry.health(store).state == "ok"

    def test_what_agents_no_longer_read_stays_so(self, store: SessionStore) -> None:
        add_sealed("a", "long ago", key=OLD_KEY, age=timedelta(minutes=11))
        add_sealed("a", "now", key=OLD_KEY)
        rotate(store)
        assert said("a", NEW_KEY) == ["now"]
        assert said("a", NEW_KEY, ttl=86_400) == ["long ago", "now"]

    def test_what_neither_key_opens_and_plain_text_are_not_touched(self, store: SessionStore) -> None:
        add_sealed("a", "one", key=OLD_KEY)
        add_sealed("a", "strange", key=STRANGE_KEY)
        add_items("a", "in the clear")
        add_sealed("b", "two", key=OLD_KEY)
        run_sql(
            "UPDATE agent_messages SET message_data = overlay(message_data placing '!!' from 70) WHERE session_id = 'b'"
        )
        before = rows()
        report = rotate(store)
        assert report.is_complete
        assert report.unreadable == {address_of("a"): 1, address_of("b"): 1}
        assert report.items_by_key == {ItemKeyState.NEW: 1, ItemKeyState.UNREADABLE: 2, ItemKeyState.PLAIN: 1}
        changed = [old[0] for old, new in zip(before, rows(), strict=True) if old != new]
        assert changed == [before[0][0]]

    def test_long_sessions_go_chunk_by_chunk_and_whole_turns(
        self, store: SessionStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rewriting.SqlRewriter.change_items, "__kwdefaults__", {"limit": 10})
        turns = [4, 4, 4, 25, 1, 1]
        for number, length in enumerate(turns):
            add_sealed("a", *[f"{number}.{item}" for item in range(length)], key=OLD_KEY)
        rotate(store)
        chunks = AuditEvent.objects.filter(type="session.resealed").order_by("number")
        assert [event.counters["items"] for event in chunks] == [8, 4, 27]
        assert len(said("a", NEW_KEY)) == sum(turns)

    def test_the_wrappers_session_id(self, store: SessionStore) -> None:
        store = declare_encryption(store, session_ids="sealed:{id} -> {id}")
        add_sealed("sealed:a", "one", key=OLD_KEY, wrapper_id="a")
        assert rotate(store).resealed == 1
        assert said("sealed:a", NEW_KEY, wrapper_id="a") == ["one"]

    def test_hand_made_tables_with_jsonb(self, store: SessionStore) -> None:
        add_sealed("a", "one", key=OLD_KEY)
        run_sql("ALTER TABLE agent_messages ALTER message_data TYPE jsonb USING message_data::jsonb")
        assert rotate(store).is_complete
        run_sql("ALTER TABLE agent_messages ALTER message_data TYPE text")
        assert said("a", NEW_KEY) == ["one"]

    def test_each_session_is_inspected_again(self, store: SessionStore) -> None:
        add_sealed("a", "one", key=OLD_KEY)
        SessionRecord.objects.update(inspected_count=1)
        rotate(store)
        assert SessionRecord.objects.get().inspected_count == -1

    def test_it_is_all_in_the_log(self, store: SessionStore) -> None:
        attach_store(declare_store("main", agent_roles=["somebody_else"]))
        add_sealed("a", "one", "two", key=OLD_KEY)
        assert "remove it from the keyring once no agent has it." in command()
        told = AuditEvent.objects.filter(type__regex=r"rotation|resealed").order_by("number")
        assert [(event.type, event.counters) for event in told] == [
            ("store.rotation_begun", {}),
            ("session.resealed", {"items": 2}),
            ("store.rotation_ended", {"sessions": 1, "items": 2, "unreadable": 0, "left": 0, "busy": 0}),
        ]
        assert told[1].object_ref == SessionRecord.objects.get().pk
        assert AuditEvent.objects.get(type="stored_item.row_updated", cause=told[1].id).counters == {"rows": 2}
        assert AuditEvent.objects.filter(type="store.row_updated", cause=told[0].id).exists()


class TestTheCommand:
    def test_a_dry_run_counts_and_writes_nothing(self, store: SessionStore) -> None:
        add_sealed("a", "one", "two", key=OLD_KEY)
        add_sealed("b", "strange", key=STRANGE_KEY)
        before = rows()
        events = AuditEvent.objects.count()
        told = json.loads(command("--dry-run", "--json"))
        assert told == {
            "store": "main",
            "is_dry_run": True,
            "is_complete": False,
            "sessions": 2,
            "resealed": 2,
            "with_new_key": 0,
            "with_old_key": 2,
            "in_plain_text": 0,
            "with_key_of_subject": 0,
            "unreadable": 1,
            "busy": 0,
        }
        words = command("--dry-run")
        assert "2 items of 2 sessions would be re-encrypted." in words
        assert f"/sessions/{SessionRecord.objects.get(session_id='b').pk}/, items: 1" in words
        assert rows() == before
        assert AuditEvent.objects.count() == events

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["--from", "old", "--to", "lost"], "The session key lost is not in the keyring"),
            (["--from", "old", "--to", "same"], "old and same are the same key under two names"),
            (["--from", "other", "--to", "new"], "The store main uses the key old"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, arguments: list[str], sentence: str, store: SessionStore, keys: Any
    ) -> None:
        keys.SESSION_KEYS = secrets(old=OLD_KEY, new=NEW_KEY, same=OLD_KEY, other=STRANGE_KEY)
        with pytest.raises(CommandError, match=sentence):
            call_command("rotate_key", "main", *arguments)
        assert not AuditEvent.objects.filter(type__startswith="store.rotation").exists()

    def test_an_agent_that_still_has_the_old_key_is_told_and_keeps_it_needed(
        self, store: SessionStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It writes once after its session was encrypted, in each rotation."""
        add_sealed("a", "one", key=OLD_KEY)
        whole, late = rotation.rotate_session, ["late"]

        def rotate_and_write(*given: Any) -> None:
            whole(*given)
            if late:
                add_sealed("a", late.pop(), key=OLD_KEY)

        monkeypatch.setattr(rotation, "rotate_session", rotate_and_write)
        report = rotate(store)
        assert report.is_complete, "it is taken up again"
        monkeypatch.setattr(rotation, "ROUNDS", 1)
        late.append("later")
        report = rotate(store)
        assert report.left == {address_of("a"): 1}
        ended = AuditEvent.objects.filter(type="store.rotation_ended").latest("number")
        assert (ended.outcome, ended.reason_code) == ("failed", "old_key_in_use")

    def test_a_session_that_somebody_holds_is_named_and_done_the_next_time(
        self, store: SessionStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rewriting, "PATIENCE", timedelta())
        monkeypatch.setattr(rewriting, "ERASE_TURN", "10ms")
        add_sealed("a", "one", key=OLD_KEY)
        add_sealed("b", "two", key=OLD_KEY)
        with second_connection() as agent:
            agent.execute("SELECT FROM agent_sessions WHERE session_id = 'a' FOR UPDATE")
            with pytest.raises(CommandError, match="old is still needed"):
                command()
            assert said("b", NEW_KEY) == ["two"]
        assert "1 item of 2 sessions were re-encrypted." in command()
        assert said("a", NEW_KEY) == ["one"]


class TestAgentsMeanwhile:
    def test_nothing_that_agents_write_with_the_new_key_is_lost(self, store: SessionStore) -> None:
        sessions = [f"s{number}" for number in range(4)]
        for session_id in sessions:
            for turn in range(3):
                add_sealed(session_id, *[f"old {turn}.{item}" for item in range(40)], key=OLD_KEY)
        begun = threading.Event()

        async def talk(tables: Any) -> None:
            talking = [EncryptedSession(each, tables.session(each), encryption_key=NEW_KEY) for each in sessions]
            for turn in range(12):
                for session in talking:
                    await session.add_items(as_items([f"new {turn}"]))
                begun.set()

        with ThreadPoolExecutor(1) as agents:
            talking = agents.submit(in_sdk, talk)
            assert begun.wait(30)
            report = rotate(store)
            talking.result()
        assert report.is_complete
        expected = [f"old {turn}.{item}" for turn in range(3) for item in range(40)]
        expected += [f"new {turn}" for turn in range(12)]
        for session_id in sessions:
            assert said(session_id, NEW_KEY) == expected

    def test_an_item_added_meanwhile_waits_and_is_there(self, store: SessionStore) -> None:
        assert added_meanwhile(SqlRewriter(store)) == ["one", "meanwhile"]

    def test_writing_the_session_back_as_it_was_read_would_lose_it(self, store: SessionStore) -> None:
        assert added_meanwhile(WritesTheSessionBack(store)) == ["one"]

    def test_a_text_that_is_taken_out_meanwhile_stays_out(self, store: SessionStore) -> None:
        assert redacted_meanwhile(SqlRewriter(store)) == ["[taken out]"]

    def test_reading_before_locking_would_bring_it_back(self, store: SessionStore) -> None:
        assert redacted_meanwhile(ReadsBeforeLocking(store)) == ["one"]


class ReadsBeforeLocking(SqlRewriter):
    """Broken: what it writes is what it read before it held anything."""

    def change_items(
        self,
        session_id: str,
        after: Position | None,
        *,
        decide: Callable[[Sequence[StoredItem]], Changes],
        before_writing: Callable[[Changes], None],
        limit: int = 100,
    ) -> Position | None:
        changes = decide(list(backend_for(self.store).every_item(session_id)))
        return super().change_items(
            session_id, after, decide=lambda items: changes, before_writing=before_writing, limit=limit
        )


class WritesTheSessionBack(SqlRewriter):
    """Broken: as one would do it with the SDK alone, it reads the items, clears the session and adds them again."""

    def change_items(
        self,
        session_id: str,
        after: Position | None,
        *,
        decide: Callable[[Sequence[StoredItem]], Changes],
        before_writing: Callable[[Changes], None],
        limit: int = 100,
    ) -> Position | None:
        items = list(backend_for(self.store).every_item(session_id))
        texts = {**{item.id: item.raw for item in items}, **decide(items).texts}

        async def write_back(tables: Any) -> None:
            session = tables.session(session_id)
            await session.clear_session()
            written: list[TResponseInputItem] = [json.loads(text) for text in texts.values()]
            await session.add_items(written)

        in_sdk(write_back)
        return None


def resealing_with(rewriter: SqlRewriter, meanwhile: Callable[[], None]) -> None:
    """Seals session `a` anew, and lets something happen between reading and writing."""
    sealing = sealing_of(rewriter.store)
    old, new = sealing.keys.keys["old"], sealing.keys.keys["new"]
    turning = Rotation.of(old, new, sealing.of_session("a"))

    def decide(items: Sequence[StoredItem]) -> Changes:
        changes = Changes(
            {item.id: turning.resealed(item) for item in items if turning.key_state(item) == ItemKeyState.OLD}
        )
        meanwhile()
        return changes

    rewriter.change_items("a", None, decide=decide, before_writing=lambda changes: None)


def added_meanwhile(rewriter: SqlRewriter) -> list[str]:
    add_sealed("a", "one", key=OLD_KEY)
    is_broken = type(rewriter) is not SqlRewriter
    with somebody_else() as start:
        adding = []

        def meanwhile() -> None:
            adding.append(start(lambda: add_sealed("a", "meanwhile", key=NEW_KEY)))
            if is_broken:
                adding[0].result()
            else:
                wait_until_blocked(adding[0])

        resealing_with(rewriter, meanwhile)
        adding[0].result()
    return said("a", NEW_KEY)


def redacted_meanwhile(rewriter: SqlRewriter) -> list[str]:
    """Somebody takes a text out of the stored item, under the agents' lock, sealed with the new key."""
    add_sealed("a", "one", key=OLD_KEY)
    add_sealed("other", "[taken out]", key=NEW_KEY, wrapper_id="a")
    is_broken = type(rewriter) is not SqlRewriter
    take_out = (
        "UPDATE agent_messages SET message_data = (SELECT message_data FROM agent_messages WHERE session_id = 'other')"
        " WHERE session_id = 'a'"
    )

    def redact() -> None:
        with second_connection() as other:
            other.execute("SELECT FROM agent_sessions WHERE session_id = 'a' FOR UPDATE")
            other.execute(take_out)
            other.commit()

    with somebody_else() as start:
        redacting = []

        def meanwhile() -> None:
            redacting.append(start(redact))
            if is_broken:
                redacting[0].result()
            else:
                wait_until_blocked(redacting[0])

        resealing_with(rewriter, meanwhile)
        redacting[0].result()
    return said("a", NEW_KEY)


class TestKilled:
    @pytest.mark.parametrize("at", [1, 60, 101])
    def test_before_an_item_is_sealed(self, at: int, store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
        reseal = Rotation.resealed
        calls = iter(range(1, 10_000))

        def dying(self: Rotation, item: StoredItem) -> str:
            if next(calls) == at:
                raise Killed
            return reseal(self, item)

        self.is_finished_by_the_next(store, monkeypatch, lambda: monkeypatch.setattr(Rotation, "resealed", dying))

    @pytest.mark.parametrize("at", [1, 2, 3, 4])
    def test_while_it_is_recorded(self, at: int, store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
        record, calls = audit.record, iter(range(1, 10_000))

        def dying(*arguments: Any, **options: Any) -> Any:
            written = record(*arguments, **options)
            if next(calls) == at:
                raise Killed
            return written

        self.is_finished_by_the_next(store, monkeypatch, lambda: monkeypatch.setattr(audit, "record", dying))

    @pytest.mark.parametrize("at", [1, 2])
    def test_between_two_sessions(self, at: int, store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
        calls = iter(range(1, 10_000))

        whole = rotation.rotate_session

        def dying(*given: Any) -> None:
            whole(*given)
            if next(calls) == at:
                raise Killed

        self.is_finished_by_the_next(store, monkeypatch, lambda: monkeypatch.setattr(rotation, "rotate_session", dying))

    def is_finished_by_the_next(
        self, store: SessionStore, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[], None]
    ) -> None:
        add_sealed("a", *[f"a{number}" for number in range(60)], key=OLD_KEY)
        add_sealed("a", *[f"A{number}" for number in range(60)], key=OLD_KEY)
        add_sealed("b", "b", key=OLD_KEY)
        prepare()
        with pytest.raises(Killed):
            rotate(store)
        monkeypatch.undo()
        let_leases_expire()
        sealed_with = [item for key in (OLD_KEY, NEW_KEY) for item in said("a", key)]
        assert len(sealed_with) == 120, "each item opens with exactly one of the two"
        store.refresh_from_db()
        report = rotate(store)
        assert report.is_complete
        assert said("a", NEW_KEY) == [*(f"a{number}" for number in range(60)), *(f"A{number}" for number in range(60))]
        recorded = AuditEvent.objects.filter(type="session.resealed").values_list("counters", flat=True)
        assert sum(counters["items"] for counters in recorded) == 121, "each once, and none without its event"

    @pytest.mark.slow
    def test_by_the_system(self, store: SessionStore) -> None:
        """The command as a program of its own, SIGKILL as soon as something is done."""
        for number in range(8):
            add_sealed(f"s{number}", *["x" * 1_000] * 40, key=OLD_KEY)
        with second_connection() as agent:
            # The last one is held, so that the program is not done before it is killed.
            agent.execute("SELECT FROM agent_sessions WHERE session_id = 's7' FOR UPDATE")
            program = start_rotation()
            wait_for_events(5)
            os.kill(program.pid, signal.SIGKILL)
            program.wait()
        let_leases_expire()
        left = rotate(store, dry_run=True).items_by_key
        assert left[ItemKeyState.OLD] + left[ItemKeyState.NEW] == 8 * 40
        assert left[ItemKeyState.OLD], "it was killed before it was done"
        assert left[ItemKeyState.NEW], "it was killed before it did anything"
        assert rotate(store).is_complete
        assert {len(said(f"s{number}", NEW_KEY)) for number in range(8)} == {40}


def let_leases_expire() -> None:
    """As if the minute was over for which a killed process keeps its run."""
    run_sql("UPDATE runs_run SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")


def start_rotation() -> subprocess.Popen[bytes]:
    given = connection.get_connection_params()
    url = f"postgres://{given['user']}@/{given['dbname']}?host={given['host']}"
    program: subprocess.Popen[bytes] = subprocess.Popen(
        [sys.executable, "manage.py", "rotate_key", "main", "--from", "old", "--to", "new"],
        cwd=project.CHECKOUT_DIR,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "memadmin.settings",
            "DATABASE_URL": url,
            "MEMADMIN_KEYRING": "old, new",
            "MEMADMIN_SESSION_KEY_OLD": OLD_KEY,
            "MEMADMIN_SESSION_KEY_NEW": NEW_KEY,
        },
    )
    return program


def wait_for_events(count: int) -> None:
    events = AuditEvent.objects.filter(type="session.resealed")
    wait_until(lambda: events.count() >= count, "the program reseals")


class TestOtherKinds:
    def test_one_whose_items_nobody_can_change_says_so(
        self, files: SessionStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(SqliteBackend, "capabilities", frozenset({Capability.ENUMERATE}))
        with pytest.raises(rewriting.CannotRewrite, match="The text of an item cannot be replaced"):
            rotate(files)

    def test_a_file_of_the_sdks_own_class(self, files: SessionStore) -> None:
        talk(files, OLD_KEY, *[f"old {number}" for number in range(250)])
        report = rotate(files)
        assert report.is_complete
        assert report.resealed == 250
        assert talk(files, NEW_KEY, "new") == [*[f"old {number}" for number in range(250)], "new"]
        assert talk(files, OLD_KEY) == []

    def test_what_is_taken_out_of_a_file_meanwhile_stays_out(
        self, files: SessionStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        talk(files, OLD_KEY, "one", "two")
        reseal = Rotation.resealed

        def after_somebody_popped(self: Rotation, item: StoredItem) -> str:
            with closing(sqlite3.connect(files.options["path"])) as file, file:
                file.execute("DELETE FROM agent_messages WHERE id = 2")
                file.execute("UPDATE agent_messages SET message_data = '{}' WHERE id = 1")
            return reseal(self, item)

        monkeypatch.setattr(Rotation, "resealed", after_somebody_popped)
        assert rotate(files).is_complete
        assert talk(files, NEW_KEY) == []


@pytest.fixture
def files(agent_tables: None, tmp_path: Path) -> SessionStore:
    path = tmp_path / "agents.db"
    SQLiteSession("a", path).close()
    store = declare_store("files", kind="sqlite", options={"path": str(path)})
    attach_store(store)
    return declare_encryption(store, key="old")


def talk(files: SessionStore, key: str, *words: str) -> list[str]:
    """Says something, and gives back what is then said in the session."""

    async def speak() -> list[Any]:
        inner = SQLiteSession("a", files.options["path"])
        try:
            session = EncryptedSession("a", inner, encryption_key=key)
            await session.add_items(as_items(words))
            return list(await session.get_items())
        finally:
            inner.close()

    return [item["content"] for item in asyncio.run(speak())]


def test_another_store_is_left_alone(store: SessionStore) -> None:
    add_sealed("a", "one", key=OLD_KEY)
    run_sql('CREATE SCHEMA "Agents"')
    run_sql('CREATE TABLE "Agents".s (LIKE agent_sessions INCLUDING ALL)')
    run_sql('CREATE TABLE "Agents".m (LIKE agent_messages INCLUDING ALL)')
    run_sql('ALTER TABLE "Agents".m ADD FOREIGN KEY (session_id) REFERENCES "Agents".s ON DELETE CASCADE')
    other = attached_store("other", sessions_table="Agents.s", messages_table="Agents.m", timezone="UTC")
    run_sql('INSERT INTO "Agents".s SELECT * FROM agent_sessions')
    run_sql('INSERT INTO "Agents".m SELECT * FROM agent_messages')
    other = declare_encryption(other, key="old")
    assert rotate(other).resealed == 1
    assert said("a", OLD_KEY) == ["one"]
