"""What is special about databases elsewhere: tables made by hand, rights, locks, and passwords that nobody is told."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from sqlalchemy import URL, Connection, NullPool, create_engine, text

from memadmin.retention.models import SweepResult
from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.attaching import attach_store
from sessions_app.services.discovery import discover
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import SessionBusy, StoreTooSlow, StoreUnavailable
from sessions_app.stores.remote_sql import backend as remote_sql
from sessions_app.stores.remote_sql import database as remote_database
from sessions_app.stores.remote_sql import dialects
from sessions_app.stores.remote_sql.dialects import MySql
from tests.agents import user
from tests.retention.policies import in_force, swept
from tests.stores.contract import SECRET, contents, enumerated, said
from tests.stores.mariadb import MariaDb
from tests.stores.remote_agents import VARIABLE, MariaDbAgent, PostgresAgent, RemoteAgent

pytestmark = pytest.mark.slow


@pytest.fixture
def postgres(db: None, second_database: URL) -> Iterator[PostgresAgent]:
    agent = PostgresAgent(second_database)
    yield agent
    agent.close()


@pytest.fixture
def in_mariadb(db: None, mariadb: MariaDb) -> Iterator[Callable[..., MariaDbAgent]]:
    agents: list[MariaDbAgent] = []

    def opened(agent_class: type[MariaDbAgent] = MariaDbAgent, **declared: Any) -> MariaDbAgent:
        agents.append(agent_class(mariadb, **declared))
        return agents[-1]

    yield opened
    for agent in agents:
        agent.close()


def problems_of(store: SessionStore) -> dict[str, str]:
    return {problem.code: problem.sentence for problem in registry.health(store).problems}


# --- tables made by hand ----------------------------------------------------------------------------------------------


class CaseBlind(MariaDbAgent):
    database = "case_blind"
    collation = "utf8mb4_general_ci"


class ShortTexts(MariaDbAgent):
    database = "short_texts"
    text_type = "TEXT"


class LocalTimes(MariaDbAgent):
    """A DATETIME is as the clock of the server shows it, which is two hours ahead."""

    database = "local_times"
    time_type = "DATETIME"


class Json(MariaDbAgent):
    database = "json_texts"
    text_type = "JSON"


class TestCaseBlindTables:
    """For MariaDB `M1` is `m1` there, and for the SDK, too; here they are two."""

    @pytest.fixture
    def agent(self, in_mariadb: Callable[..., MariaDbAgent]) -> MariaDbAgent:
        agent = in_mariadb(CaseBlind)
        agent.add("M1", user(f"upper {SECRET}"))
        agent.add("m1", user("lower"))
        return agent

    def test_each_reads_its_own_items_and_the_page_warns(self, agent: MariaDbAgent) -> None:
        backend = backend_for(agent.store)
        assert agent.read("m1") == [user(f"upper {SECRET}"), user("lower")]
        assert contents(backend.first_page("m1", 5).items) == ["lower"]
        assert (backend.count("M1"), backend.previews(["m1"])["m1"].first_user_text) == (1, "lower")
        assert {session.session_id for session in enumerated(backend)} == {"M1", "m1"}
        assert "M1 and m1 as one session id" in problems_of(agent.store)["ids-not-exact"]

    def test_erasing_one_leaves_the_other(self, agent: MariaDbAgent) -> None:
        """Their items hang on one row, whose deletion would take those of both."""
        backend = backend_for(agent.store)
        assert backend.erase_session("M1") == 1
        assert agent.leftovers("M1") == agent.leftovers(SECRET) == []
        assert contents(backend.first_page("m1", 5).items) == ["lower"]
        assert backend.erase_session("m1") == 1
        assert agent.leftovers("m1") == []

    def test_compared_as_the_database_does_one_reads_the_other(
        self, agent: MariaDbAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(MySql, "of_session", "session_id = :session_id")
        assert len(backend_for(agent.store).first_page("m1", 5).items) == 2


class TestTablesMadeByHand:
    def test_a_text_that_ends_at_64_kb_is_told(self, in_mariadb: Callable[..., MariaDbAgent]) -> None:
        agent = in_mariadb(ShortTexts)
        assert "MEDIUMTEXT" in problems_of(agent.store)["texts-too-short"]
        agent.add("talk", said(0))
        backend = backend_for(agent.store)
        (item,) = backend.first_page("talk", 1).items
        with pytest.raises(StoreUnavailable, match="rejects this text; nothing was changed"):
            backend.replace_item("talk", item.id, "x" * 70_000, expected=item.raw)
        assert agent.read("talk") == [said(0)]

    def test_a_time_without_a_zone_is_in_that_of_the_store(self, in_mariadb: Callable[..., MariaDbAgent]) -> None:
        agent = in_mariadb(LocalTimes, timezone="Etc/GMT-2")
        agent.add("talk", said(0))
        (item,) = backend_for(agent.store).first_page("talk", 1).items
        assert item.written_at
        assert abs(item.written_at - datetime.now(UTC)) < timedelta(minutes=5)
        assert problems_of(agent.store) == {}
        agent.store.writer_timezone = "UTC"
        assert "--timezone with the agents' zone" in problems_of(agent.store)["wrong-zone"]

    @pytest.mark.parametrize(("zone", "hours"), [("Etc/GMT-7", "5.0 hours"), ("Etc/GMT-2", ""), ("UTC", "the future")])
    def test_times_in_another_zone_are_found_and_nothing_expires(
        self, in_mariadb: Callable[..., MariaDbAgent], zone: str, hours: str
    ) -> None:
        """What was written since the last discovery has a time from before it, or one to come."""
        agent = in_mariadb(LocalTimes, timezone=zone)
        agent.add("talk", said(0))
        agent.ask("UPDATE agent_sessions SET updated_at = updated_at - INTERVAL 1 MINUTE")
        discover(agent.store)
        agent.add("talk", said(1))
        in_force("Talks", days=30, store=agent.store.name)
        run = swept()
        agent.store.refresh_from_db()
        found = problems_of(agent.store).get("wrong-zone", "")
        assert hours in found
        assert bool(found) == bool(hours)
        result = SweepResult.objects.get(run=run)
        assert result.state == ("skipped" if hours else "done")
        assert ("its times are not certain" in result.reason) == bool(hours)

    def test_what_was_brought_in_or_taken_back_says_nothing_about_the_zone(
        self, in_mariadb: Callable[..., MariaDbAgent]
    ) -> None:
        agent = in_mariadb(LocalTimes, timezone="Etc/GMT-2")
        for name in ("restored", "popped"):
            agent.add(name, said(0), said(1))
        agent.ask("UPDATE agent_sessions SET updated_at = updated_at - INTERVAL 90 DAY WHERE session_id = 'restored'")
        agent.ask("UPDATE agent_sessions SET updated_at = updated_at - INTERVAL 3 HOUR WHERE session_id = 'popped'")
        discover(agent.store)
        agent.ask("UPDATE agent_sessions SET updated_at = updated_at + INTERVAL 50 DAY WHERE session_id = 'restored'")
        agent.pop("popped")
        assert discover(agent.store).written == 2
        assert problems_of(agent.store) == {}

    def test_another_zone_and_later_writes_end_the_problem(self, in_mariadb: Callable[..., MariaDbAgent]) -> None:
        agent = in_mariadb(LocalTimes, timezone="Etc/GMT-2")
        check = {"zone": "Etc/GMT-2", "off_seconds": 18_000}
        agent.store.discovery = {**agent.store.discovery, "zone_check": check}
        agent.store.save()
        assert "5.0 hours too early when read as Etc/GMT-2" in problems_of(agent.store)["wrong-zone"]
        agent.store.writer_timezone = "Etc/GMT-3"
        assert problems_of(agent.store) == {}
        agent.store.writer_timezone = "Etc/GMT-2"
        agent.add("talk", said(0))
        agent.ask("UPDATE agent_sessions SET updated_at = updated_at - INTERVAL 1 MINUTE")
        discover(agent.store)
        assert "wrong-zone" in problems_of(agent.store)
        agent.add("talk", said(1))
        discover(agent.store)
        assert problems_of(agent.store) == {}

    def test_json_is_read_and_replaced(self, in_mariadb: Callable[..., MariaDbAgent]) -> None:
        agent = in_mariadb(Json)
        agent.add("talk", said(0))
        backend = backend_for(agent.store)
        (item,) = backend.first_page("talk", 1).items
        assert item.raw == agent.stored("talk")[0]
        backend.replace_item("talk", item.id, '{"content":"b","role":"user"}', expected=item.raw)
        assert agent.read("talk") == [user("b")]
        with pytest.raises(StoreUnavailable, match="rejects this text"):
            backend.replace_item("talk", item.id, "no json", expected='{"content":"b","role":"user"}')

    def test_other_names_schema_and_types_in_postgresql(self, postgres: PostgresAgent) -> None:
        """Nothing but the names of the columns is the SDK's; without a foreign key an item may have no session row."""
        postgres.ask('DROP SCHEMA IF EXISTS "Bots" CASCADE')
        postgres.ask('CREATE SCHEMA "Bots"')
        postgres.ask(
            """CREATE TABLE "Bots"."who: ever" (session_id text PRIMARY KEY,
               created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now())""".replace(
                ": ", "\\: "
            )
        )
        postgres.ask(
            """CREATE TABLE "Bots"."100% said" (id bigint PRIMARY KEY, session_id text NOT NULL,
               message_data jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now())"""
        )
        postgres.ask(
            'INSERT INTO "Bots"."100% said" VALUES (5000000000, \'lone\', \'{"content": "a", "role": "user"}\')'
        )
        store = declare_store(
            "hand-made",
            kind="remote_sql",
            options={"url_env": VARIABLE},
            sessions_table="Bots.who: ever",
            messages_table="Bots.100% said",
            timezone="Asia/Tokyo",
        )
        attach_store(store)
        assert list(problems_of(store)) == ["index-missing"]
        backend = backend_for(store)
        assert [session.session_id for session in enumerated(backend)] == ["lone"]
        (item,) = backend.first_page("lone", 1).items
        assert item.id == "5000000000"
        assert item.written_at
        assert abs(item.written_at - datetime.now(UTC)) < timedelta(minutes=5)
        backend.replace_item("lone", item.id, '{"content": "b"}', expected=item.raw)
        assert backend.item("lone", item.id).raw == '{"content": "b"}'
        assert backend.erase_session("lone") == 1
        assert postgres.ask('SELECT FROM "Bots"."100% said"') == []


# --- rights, locks and time -------------------------------------------------------------------------------------------


class TestRights:
    def test_who_may_only_read_reads_and_is_told(
        self, in_mariadb: Callable[..., MariaDbAgent], mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = in_mariadb()
        agent.add("talk", said(0))
        mariadb.run("CREATE OR REPLACE USER reader@localhost", "GRANT SELECT ON agents.* TO reader@localhost")
        url = mariadb.url(database="agents", user="reader")
        monkeypatch.setenv(VARIABLE, url.render_as_string(hide_password=False))
        self.reads_only(agent)

    def test_in_postgresql_too(self, postgres: PostgresAgent, monkeypatch: pytest.MonkeyPatch) -> None:
        role = f"reader_of_{postgres.url.database}"
        postgres.add("talk", said(0))
        postgres.ask(f"DROP ROLE IF EXISTS {role}")
        postgres.ask(f"CREATE ROLE {role} LOGIN")
        try:
            monkeypatch.setenv(VARIABLE, postgres.changed(username=role))
            assert "lacks a right" in problems_of(postgres.store)["unavailable"]
            postgres.ask(f"GRANT SELECT ON agent_sessions, agent_messages TO {role}")
            self.reads_only(postgres)
        finally:
            postgres.ask(f"DROP OWNED BY {role}")
            postgres.ask(f"DROP ROLE {role}")

    def reads_only(self, agent: RemoteAgent) -> None:
        backend = backend_for(agent.store)
        (item,) = backend.first_page("talk", 1).items
        assert registry.health(agent.store).state == "degraded"
        assert "Nothing can be erased or changed" in problems_of(agent.store)["read-only"]
        with pytest.raises(StoreUnavailable, match="lacks a right"):
            backend.erase_session("talk")
        with pytest.raises(StoreUnavailable, match="lacks a right"):
            backend.delete_items("talk", [item])
        assert not SessionRecord.objects.filter(store=agent.store, session_id="talk").exclude(erased_at=None)
        assert agent.read("talk") == [said(0)]


@contextmanager
def agent_in_the_middle(agent: RemoteAgent, session_id: str) -> Iterator[Connection]:
    """Has begun as the SDK begins a write, and has not committed."""
    engine = create_engine(agent.url, poolclass=NullPool)
    with engine.connect() as connection:
        lock = f"SELECT session_id FROM {agent.sessions_table} WHERE session_id = :id FOR UPDATE"
        connection.execute(text(lock), {"id": session_id})
        insert = f"INSERT INTO {agent.messages_table} (session_id, message_data) VALUES (:id, :text)"
        connection.execute(text(insert), {"id": session_id, "text": f'{{"content": "{SECRET}"}}'})
        yield connection


class LocksContract:
    @pytest.fixture
    def agent(self) -> RemoteAgent:
        raise NotImplementedError

    def test_a_change_waits_for_the_agent_and_then_finds_what_it_wrote(
        self, agent: RemoteAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # For as long as it takes the database to say once that somebody holds the session.
        monkeypatch.setattr(remote_database, "PATIENCE_SECONDS", 60)
        # MariaDB says it at once, and not after a second.
        monkeypatch.setattr(dialects, "TURN_SECONDS", 0)
        agent.add("talk", said(0))
        with agent_in_the_middle(agent, "talk") as writer:
            monkeypatch.setattr(remote_database, "sleep", lambda seconds: writer.commit())
            assert backend_for(agent.store).erase_session("talk") == 2
        assert agent.leftovers("talk") == []

    def test_who_holds_a_session_for_long_is_named_and_readers_do_not_wait(
        self, agent: RemoteAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(remote_database, "PATIENCE_SECONDS", 0)
        monkeypatch.setattr(dialects, "TURN_SECONDS", 0)
        agent.add("talk", said(0))
        backend = backend_for(agent.store)
        with agent_in_the_middle(agent, "talk"):
            (item,) = backend.first_page("talk", 5).items
            with pytest.raises(SessionBusy, match=r"nothing was changed\. Try again"):
                backend.erase_session("talk")
            with pytest.raises(SessionBusy):
                backend.replace_item("talk", item.id, "{}", expected=item.raw)
        assert not SessionRecord.objects.filter(store=agent.store).exclude(erased_at=None)
        assert agent.read("talk") == [said(0)]

    @pytest.mark.parametrize("locks", [True, False])
    def test_without_the_lock_of_the_sdk_an_item_would_slip_in(
        self, agent: RemoteAgent, monkeypatch: pytest.MonkeyPatch, locks: bool
    ) -> None:
        """Between the deletion of the items and that of the session, where no foreign key takes them along."""
        self.drop_foreign_key(agent)
        agent.add("talk", said(0))
        if not locks:
            monkeypatch.setattr(remote_sql, "LOCK_SESSION", "SELECT 1")
        delete_row = remote_sql.RemoteSqlBackend._delete_row
        came: list[bool] = []

        def after_an_agent(self: Any, *given: Any) -> None:
            came.append(write_at_once(agent))
            delete_row(self, *given)

        monkeypatch.setattr(remote_sql.RemoteSqlBackend, "_delete_row", after_an_agent)
        backend_for(agent.store).erase_session("talk")
        assert came == [not locks]
        assert agent.leftovers(SECRET) == ([] if locks else [agent.messages_table])

    def drop_foreign_key(self, agent: RemoteAgent) -> None:
        raise NotImplementedError


def write_at_once(agent: RemoteAgent) -> bool:
    """Whether an agent that waits for nobody can write."""
    engine = create_engine(agent.url, poolclass=NullPool)
    is_postgres = engine.dialect.name == "postgresql"
    with engine.connect() as connection:
        wait = "SET lock_timeout = '50ms'" if is_postgres else "SET innodb_lock_wait_timeout = 0"
        connection.execute(text(wait))
        lock = f"SELECT session_id FROM {agent.sessions_table} WHERE session_id = 'talk' FOR UPDATE"
        insert = f"INSERT INTO {agent.messages_table} (session_id, message_data) VALUES ('talk', '\"{SECRET}\"')"
        try:
            connection.execute(text(lock))
            connection.execute(text(insert))
        except Exception:
            return False
        connection.commit()
        return True


class TestLocksOfPostgres(LocksContract):
    @pytest.fixture
    def agent(self, postgres: PostgresAgent) -> Iterator[PostgresAgent]:
        yield postgres
        postgres.ask("DROP TABLE agent_sessions, agent_messages CASCADE")

    def drop_foreign_key(self, agent: RemoteAgent) -> None:
        agent.ask("ALTER TABLE agent_messages DROP CONSTRAINT agent_messages_session_id_fkey")


class Unbound(MariaDbAgent):
    database = "unbound"


class TestLocksOfMariaDb(LocksContract):
    @pytest.fixture
    def agent(self, in_mariadb: Callable[..., MariaDbAgent], mariadb: MariaDb) -> MariaDbAgent:
        mariadb.made.discard(Unbound.database)
        return in_mariadb(Unbound)

    def drop_foreign_key(self, agent: RemoteAgent) -> None:
        agent.ask("ALTER TABLE agent_messages DROP FOREIGN KEY agent_messages_ibfk_1")


def test_a_question_ends_in_time(postgres: PostgresAgent) -> None:
    database = remote_database.RemoteDatabase(postgres.store)
    with pytest.raises(StoreTooSlow, match="did not respond in time"), database.reading(seconds=0.1) as connection:
        connection.execute(text("SELECT pg_sleep(30)"))


def test_a_question_to_mariadb_ends_in_time(in_mariadb: Callable[..., MariaDbAgent]) -> None:
    database = remote_database.RemoteDatabase(in_mariadb().store)
    with pytest.raises(StoreTooSlow, match="did not respond in time"), database.reading(seconds=0.1) as connection:
        connection.execute(text("SELECT count(*) FROM seq_1_to_1000000000 WHERE sha2(seq, 512) = ''"))


def test_reading_changes_nothing(postgres: PostgresAgent, in_mariadb: Callable[..., MariaDbAgent]) -> None:
    for agent in (postgres, in_mariadb()):
        database = remote_database.RemoteDatabase(agent.store)
        with pytest.raises(StoreUnavailable, match="is read-only"), database.reading() as connection:
            connection.execute(text("DELETE FROM agent_messages"))


# --- addresses and secrets --------------------------------------------------------------------------------------------


def test_a_missing_driver_is_told(in_mariadb: Callable[..., MariaDbAgent], monkeypatch: pytest.MonkeyPatch) -> None:
    agent = in_mariadb()
    monkeypatch.setattr(remote_database, "_engines", {})
    monkeypatch.setitem(sys.modules, "pymysql", None)
    assert "pip install 'memadmin[mysql]'" in problems_of(agent.store)["unavailable"]


def test_a_password_is_in_no_message_log_or_page(
    postgres: PostgresAgent, administrator: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where it was not quoted, and stands in the place of a host or a port."""
    caplog.set_level(logging.DEBUG)
    password = "Watzmann-2713"
    addresses = [
        f"postgresql://me:{password}@nowhere.invalid/d",
        f"postgresql://me:x@{password}@127.0.0.1:1/d",
        f"postgresql://me:x@{password}/d",
        f"postgresql://me:x@127.0.0.1:{password}/d",
        f"postgresql://me@127.0.0.1:1/{password}",
        f"postgresql://me@127.0.0.1:1/d?password={password}&colour={password}",
        f"mysql://me:{password}@nowhere.invalid/d",
        f"mysql://me:x@{password}@127.0.0.1:1/d",
        f"mysql://me@127.0.0.1:1/d?colour={password}",
        f"{password}://me:x@127.0.0.1/d",
        f"me:{password}@127.0.0.1",
        f"sqlite:////{password}/{password}",
    ]
    for address in addresses:
        with postgres.elsewhere(address, ""):
            said_out = StringIO()
            call_command("check_stores", stdout=said_out)
            page = administrator.get(f"/stores/{postgres.store.name}/")
            with pytest.raises(StoreUnavailable) as refused:
                backend_for(postgres.store).first_page("talk", 1)
            sentences = f"{said_out.getvalue()} {page.content.decode()} {caplog.text} {refused.value}"
            if not address.startswith("sqlite"):  # which has no passwords, and whose files are named
                assert password not in sentences, address
            if address.startswith(("postgresql://me:x@127", password, "me:")):
                assert password not in "".join(traceback.format_exception(refused.value)), address


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "url_env: This field is required"),
        ({"url_env": "postgresql://me:secret@host/d"}, "Give the name of an environment variable"),
    ],
)
def test_a_store_that_makes_no_sense_is_refused(db: None, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(registry.AttachRefused, match=sentence) as refused:
        declare_store("elsewhere", kind="remote_sql", options=options)
    assert "secret@" not in str(refused.value)
