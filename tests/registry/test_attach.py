"""`attach_store`: what it puts on the agents' tables, finds there, refuses, repairs and takes away again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from memadmin import audit
from memadmin.audit.models import AuditEvent
from memadmin.embedded.cluster import _program
from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.registry import attach_plan
from sessions_app.services import attaching
from sessions_app.services.attaching import attach_store, detach_store
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.sqlalchemy.postgres import LOCK_TIMEOUT
from tests.agents import (
    add_items,
    attach_main_store,
    attached_store,
    database_role,
    in_sdk,
    make_agent_tables,
    run_sql,
    second_connection,
    value_of,
)


def attach_command(*arguments: str) -> str:
    out = StringIO()
    call_command("attach_store", *arguments, stdout=out)
    return out.getvalue()


def grant_all_to(role: str) -> None:
    run_sql(
        f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role};"
        f" GRANT ALL ON SCHEMA public TO {role}; GRANT ALL ON ALL FUNCTIONS IN SCHEMA public TO {role}"
    )


def objects_of_ours() -> set[str]:
    """Everything of ours that is on the agents' tables or stands for them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgname ~ %(name)s"
            " UNION SELECT 'function ' || proname FROM pg_proc WHERE proname ~ %(name)s"
            " UNION SELECT 'index ' || relname FROM pg_class WHERE relkind = 'i' AND relname ~ %(name)s",
            {"name": "^memadmin_.*_[0-9]+$"},  # at the end stands the number of the store
        )
        return {name for (name,) in cursor.fetchall()}


class TestAttaching:
    def test_sessions_that_are_there_and_sessions_to_come_are_registered(self, agent_tables: None) -> None:
        add_items("before", "hello")
        store = attach_main_store()
        add_items("after", "hello")

        records = SessionRecord.objects.filter(store=store).order_by("registered_at")
        assert [record.session_id for record in records] == ["before", "after"]
        for record in records:
            written = value_of(f"SELECT updated_at FROM agent_sessions WHERE session_id = '{record.session_id}'")
            assert record.last_activity_at.replace(tzinfo=None) == written
        assert store.attached_at is not None

    def test_the_log_knows_who_did_it_of_each_row_that_it_wrote(self, agent_tables: None) -> None:
        """Its statements are put together of pieces, and must not look as if somebody had come past the console."""
        add_items("before", "hello")
        before = AuditEvent.objects.order_by("number").last()
        with audit.acting(audit.Actor("command", "attach_store")):
            attach_main_store()
        written = AuditEvent.objects.filter(number__gt=before.number if before else 0)
        assert {"store.row_inserted", "store.row_updated", "store.attached"} <= set(
            written.values_list("type", flat=True)
        )
        assert set(written.values_list("actor_kind", flat=True)) == {"command"}

    def test_many_sessions_are_registered_in_batches(self, agent_tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(attach_plan, "BACKFILL_ROWS", 7)
        make_agent_tables()
        run_sql("INSERT INTO agent_sessions (session_id) SELECT 's' || n FROM generate_series(1, 70) AS n")
        run_sql("INSERT INTO agent_sessions (session_id) VALUES (''), (' '), ('S1'), ('é'), ('😀')")
        store = attached_store("main")
        assert SessionRecord.objects.filter(store=store).count() == 75
        assert registry.check(store).problems == ()

    def test_idle_sessions_of_agents_in_another_zone_have_the_right_time(
        self, agent_tables: None, settings: Settings
    ) -> None:
        before = value_of("SELECT clock_timestamp()")
        add_items("idle", "hello", timezone="Asia/Tokyo")
        settings.AGENT_TIMEZONE = "Asia/Tokyo"
        attached_store("main")
        record = SessionRecord.objects.get(session_id="idle")
        assert before <= record.last_activity_at <= value_of("SELECT clock_timestamp()")

    def test_attaching_twice_says_so_and_runs_nothing(self, agent_tables: None) -> None:
        make_agent_tables()
        assert "main is attached, with 0 registered sessions." in attach_command("main")
        before = objects_of_ours()
        assert attach_command("main") == "main is already attached; nothing was missing.\n"
        assert objects_of_ours() == before

    def test_agents_write_on_while_a_store_is_attached(
        self, agent_tables: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No write fails, and no session is missing in the end, whenever it was written."""
        monkeypatch.setattr(attach_plan, "BACKFILL_ROWS", 50)
        make_agent_tables()
        run_sql("INSERT INTO agent_sessions (session_id) SELECT 'old ' || n FROM generate_series(1, 2000) AS n")
        attached, written = Event(), []

        async def write(tables: Any) -> None:
            number = 0
            while not attached.is_set():
                number += 1
                await tables.session(f"new {number}").add_items([{"role": "user", "content": "hello"}])
                await tables.session(f"old {number}").add_items([{"role": "user", "content": "hello"}])
                written.append(number)

        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(in_sdk, write)
            while not written:
                attached.wait(0.01)
            try:
                store = attached_store("main")
            finally:
                attached.set()
            writing.result()
        assert registry.check(store).problems == ()
        assert SessionRecord.objects.filter(store=store).count() == 2000 + len(written)

    def test_a_trigger_waits_for_a_writer_only_shortly_and_tries_again(
        self, agent_tables: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(attach_plan, "LOCK_TIMEOUT", "10ms")
        make_agent_tables()
        pauses: list[float] = []
        with second_connection() as writer:
            writer.execute("INSERT INTO agent_sessions (session_id) VALUES ('slow')")

            def pause(seconds: float) -> None:
                pauses.append(seconds)
                if len(pauses) == 3:
                    writer.commit()

            # Its own clock, for other threads sleep as well.
            monkeypatch.setattr(attaching, "time", SimpleNamespace(sleep=pause))
            store = attached_store("main")
        assert len(pauses) == 3
        assert registry.check(store).problems == ()

    def test_a_writer_that_never_ends_is_named_and_nothing_is_broken(
        self, agent_tables: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(attach_plan, "LOCK_TIMEOUT", "10ms")
        monkeypatch.setattr(attaching, "ATTEMPTS", 2)
        monkeypatch.setattr(attaching, "PAUSE_SECONDS", 0)
        make_agent_tables()
        with second_connection() as writer:
            writer.execute("INSERT INTO agent_sessions (session_id) VALUES ('slow')")
            with pytest.raises(
                CommandError,
                match="the tables of main were in use by agents, or by upkeep such as VACUUM, in 2 attempts",
            ):
                attach_command("main")
            writer.commit()
        assert "with 1 registered session." in attach_command("main")

    @pytest.mark.parametrize("steps_before_the_crash", [0, 1, 2, 3])
    def test_an_attach_that_died_goes_on_where_it_was(
        self, agent_tables: None, monkeypatch: pytest.MonkeyPatch, steps_before_the_crash: int
    ) -> None:
        add_items("before", "hello")
        survived: list[attach_plan.AttachStep] = []
        run_once = attaching._run_once

        def die_later(step: attach_plan.AttachStep) -> None:
            if len(survived) == steps_before_the_crash:
                raise KeyboardInterrupt
            run_once(step)
            survived.append(step)

        with monkeypatch.context() as crash:
            crash.setattr(attaching, "_run_once", die_later)
            with pytest.raises(KeyboardInterrupt):
                attached_store("main")
        store = SessionStore.objects.get(name="main")
        assert store.attached_at is None
        assert registry.check(store).problems

        attach_store(store)
        assert registry.check(store).problems == ()
        assert SessionRecord.objects.filter(store=store).count() == 1

    def test_a_session_written_while_detached_is_brought_up_to_date(self, agent_tables: None) -> None:
        store = attach_main_store()
        add_items("talk", "one")
        before = SessionRecord.objects.get(session_id="talk")
        detach_store(store)
        add_items("talk", "two")
        add_items("other", "one")
        attach_store(store)
        after = SessionRecord.objects.get(session_id="talk")
        assert after.last_activity_at.replace(tzinfo=None) == value_of(
            "SELECT updated_at FROM agent_sessions WHERE session_id = 'talk'"
        )
        assert after.activity_count > before.activity_count
        assert SessionRecord.objects.filter(session_id="other").exists()


class TestDryRun:
    def statements_that_run(self, *arguments: str) -> list[str]:
        """Every statement of the command that changes something, as the database receives it."""
        ran: list[str] = []

        def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
            text = sql if isinstance(sql, str) else sql.as_string(None)
            read = ("\n", "SELECT", f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; \nSELECT")
            if params is None and not text.startswith((*read, "SAVEPOINT", "RELEASE")):
                ran.append(text)
            return execute(sql, params, many, context)

        with connection.execute_wrapper(note):
            attach_command(*arguments)
        return ran

    def printed_statements(self, *arguments: str) -> list[str]:
        script = attach_command(*arguments, "--dry-run")
        return [step.split("\n", 1)[1] for step in script.strip().split("\n\n-- ")]

    @pytest.mark.parametrize("mode", SessionStore.FenceMode.values)
    def test_it_prints_what_runs(self, agent_tables: None, mode: str) -> None:
        make_agent_tables()
        run_sql("DROP INDEX idx_agent_messages_session_time")
        declare_store("main", mode=mode)

        printed = self.printed_statements("main")
        ran = self.statements_that_run("main")
        assert len(printed) == (8 if mode == "drop" else 7)
        assert unframed(printed) == [f"{statement};" for statement in ran]

        printed = self.printed_statements("main", "--remove")
        ran = self.statements_that_run("main", "--remove")
        assert unframed(printed) == [f"{statement};" for statement in ran]

    def test_it_leaves_nothing_behind(self, agent_tables: None) -> None:
        add_items("before", "hello")
        attach_command("main", "--dry-run", "--mode", "drop")
        assert not SessionStore.objects.exists()
        assert not SessionRecord.objects.exists()
        assert objects_of_ours() == set()

    def test_psql_can_run_it_for_a_store_that_is_not_named_yet(self, agent_tables: None, tmp_path: Path) -> None:
        """A database administrator may prefer to run the script."""
        add_items("before", "it's 100% {sure}")
        psql(attach_command("main", "--dry-run", "--mode", "drop"), tmp_path)

        store = SessionStore.objects.get(name="main")
        assert store.fence_mode == "drop"
        assert registry.check(store).problems == ()
        assert attach_command("main", "--dry-run") == "-- main is attached; nothing is missing.\n"

        psql(attach_command("main", "--dry-run", "--remove"), tmp_path)
        assert objects_of_ours() == set()
        assert attach_command("main", "--dry-run", "--remove").startswith("-- main is not attached")


class TestJson:
    def test_has_the_keys_that_scripts_rely_on(self, agent_tables: None) -> None:
        add_items("before", "hello")
        planned = json.loads(attach_command("main", "--dry-run", "--json"))
        attached = json.loads(attach_command("main", "--json"))
        assert [planned["is_dry_run"], planned["is_attached"], planned["sessions"]] == [True, False, 0]
        assert [attached["is_dry_run"], attached["is_attached"], attached["sessions"]] == [False, True, 1]
        assert planned["steps"][0]["purpose"] == "Record the tables of the store"
        purposes = [step["purpose"] for step in planned["steps"][1:]]
        assert purposes == [step["purpose"] for step in attached["steps"]] != []
        assert all(step["statements"] for step in planned["steps"])
        assert json.loads(attach_command("main", "--json")) == {
            "store": "main",
            "is_attached": True,
            "layouts": ["openai-agents 0.2 and later"],
            "sessions": 1,
            "is_dry_run": False,
            "steps": [],
        }

    def test_of_a_store_that_is_taken_off(self, agent_tables: None) -> None:
        attach_main_store()
        planned = json.loads(attach_command("main", "--remove", "--dry-run", "--json"))
        assert planned["is_attached"]
        removed = json.loads(attach_command("main", "--remove", "--json"))
        assert removed["steps"] == planned["steps"]
        assert not removed["is_attached"]


def unframed(steps: list[str]) -> list[str]:
    """The statements of printed steps without what makes them transactions, which the driver sends by itself."""
    return [
        statement
        for step in steps
        for statement in statements_in(step.removeprefix("BEGIN;\n").removesuffix("\nCOMMIT;"))
    ]


def statements_in(script: str) -> Iterator[str]:
    """Splits at the semicolons that end a line outside of function bodies."""
    statement, inside = "", False
    for line in script.split("\n"):
        statement += line
        inside ^= line.count("$memadmin$") % 2 == 1
        if line.endswith(";") and not inside:
            yield statement
            statement = ""
        else:
            statement += "\n"
    assert not statement.strip()


def psql(script: str, folder: Path) -> None:
    file = folder / "script.sql"
    file.write_text(script)
    given = connection.get_connection_params()
    subprocess.run(
        [str(_program("psql")), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", given["host"], "-U", given["user"], "-d",
         given["dbname"], "-f", str(file)],
        check=True,
        timeout=60,
    )  # fmt: skip


class TestRemoving:
    def test_everything_goes_and_the_registry_stays(self, agent_tables: None) -> None:
        make_agent_tables()
        run_sql("DROP INDEX idx_agent_messages_session_time")
        store = attach_main_store(mode="drop")
        assert len(objects_of_ours()) == 23
        add_items("talk", "hello")
        backend_for(store).erase_session("gone")

        told = attach_command("main", "--remove")

        assert objects_of_ours() == set()
        assert "Its 2 session records are kept" in told
        assert SessionRecord.objects.filter(erased_at__isnull=False).count() == 1
        store.refresh_from_db()
        assert store.attached_at is None
        assert [problem.code for problem in registry.check(store).problems] == ["not-attached", "index-missing"]
        assert "was not attached" in attach_command("main", "--remove")

    def test_a_store_whose_tables_were_dropped_can_be_detached(self, agent_tables: None) -> None:
        attach_main_store()
        run_sql("DROP TABLE agent_messages, agent_sessions")
        assert "main is detached" in attach_command("main", "--remove")
        assert objects_of_ours() == set()

    def test_an_unknown_store_is_named(self, agent_tables: None) -> None:
        with pytest.raises(CommandError, match="There is no store elsewhere"):
            attach_command("elsewhere", "--remove")

    def test_the_main_store_is_known_before_it_was_ever_attached(self, agent_tables: None) -> None:
        assert "main was not attached" in attach_command("main", "--remove")


class TestModes:
    def test_the_mode_can_be_changed_both_ways(self, agent_tables: None) -> None:
        store = attach_main_store()
        attach_command("main", "--mode", "drop")
        store.refresh_from_db()
        assert registry.check(store).problems == ()
        assert f"trigger memadmin_keep_out_{store.pk}" in objects_of_ours()
        attach_command("main", "--mode", "reject")
        store.refresh_from_db()
        assert registry.check(store).problems == ()
        assert f"trigger memadmin_keep_out_{store.pk}" not in objects_of_ours()


BY_HAND = """
CREATE SCHEMA "Agents";
CREATE TABLE "Agents"."Sessions" (
    session_id varchar(200) {collation} PRIMARY KEY, created_at timestamptz, updated_at timestamptz
);
CREATE TABLE "Agents"."It's $memadmin$ 100%" (
    id bigserial PRIMARY KEY, session_id text {collation} REFERENCES "Agents"."Sessions",
    message_data jsonb, created_at timestamptz NOT NULL DEFAULT now()
)
"""
BY_HAND_NAMES = {"sessions_table": "Agents.Sessions", "messages_table": "Agents.It's $memadmin$ 100%"}


class TestTablesMadeByHand:
    @pytest.mark.parametrize("collation", ["default", "C", "pg_unicode_fast", "de-x-icu"])
    @pytest.mark.parametrize("mode", SessionStore.FenceMode.values)
    def test_they_are_attached_like_the_sdks(self, agent_tables: None, collation: str, mode: str) -> None:
        if value_of(f"SELECT count(*) FROM pg_collation WHERE collname = '{collation}'") == 0:
            pytest.skip(f"this server has no collation {collation}")
        run_sql(BY_HAND.format(collation=f'COLLATE "{collation}"'))
        ids = ["a/b", "100%", "😀", "Case", "case", "x" * 200, "straße", "STRASSE"]
        for session_id in ids[:4]:
            write_by_hand(session_id)
        store = attached_store("hand", mode=mode, **BY_HAND_NAMES)
        for session_id in ids:
            write_by_hand(session_id)

        assert sorted(SessionRecord.objects.values_list("session_id", flat=True)) == sorted(ids)
        assert registry.check(store).problems == ()
        assert registry.check(store).items == 12
        assert f"index memadmin_items_{store.pk}" in objects_of_ours()
        assert backend_for(store).erase_session("Case") == 2
        assert backend_for(store).count("case") == 1
        assert registry.plan_attachment(store) == []

    @pytest.mark.parametrize("mode", SessionStore.FenceMode.values)
    def test_partitioned_tables_are_attached_too(self, agent_tables: None, mode: str) -> None:
        run_sql(PARTITIONED)
        store = attached_store("parts", mode=mode, sessions_table="Agents.s", messages_table="Agents.m")
        for number in range(20):
            run_sql(f"""INSERT INTO "Agents".s (session_id) VALUES ('s{number}')""")
            run_sql(f"""INSERT INTO "Agents".m (session_id, message_data) VALUES ('s{number}', '[]')""")
        assert registry.check(store).problems == ()
        assert registry.check(store).items == 20
        assert registry.plan_attachment(store) == []
        assert SessionRecord.objects.filter(store=store).count() == 20
        assert backend_for(store).erase_session("s7") == 1
        assert len(backend_for(store).first_page("s8", 5).items) == 1
        detach_store(store)
        assert objects_of_ours() == set()

    def test_the_trigger_finds_the_registry_by_its_index(self, agent_tables: None) -> None:
        """A comparison in the agents' collation could not use it, and each write would read the whole registry."""
        run_sql(BY_HAND.format(collation='COLLATE "C"'))
        store = attached_store("hand", **BY_HAND_NAMES)
        SessionRecord.objects.bulk_create([SessionRecord(store=store, session_id=f"s{n}") for n in range(2000)])
        run_sql("VACUUM ANALYZE sessions_app_sessionrecord")
        scans = "SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'sessions_app_sessionrecord'"
        with second_connection() as writer:
            writer.execute("""INSERT INTO "Agents"."Sessions" (session_id) VALUES ('s77')""")
            writer.execute("""UPDATE "Agents"."Sessions" SET updated_at = now()""")
            assert writer.execute(scans).fetchone() == (0,)


PARTITIONED = """
CREATE SCHEMA "Agents";
CREATE TABLE "Agents".s (
    session_id varchar PRIMARY KEY, created_at timestamp NOT NULL DEFAULT now(), updated_at timestamp DEFAULT now()
) PARTITION BY HASH (session_id);
CREATE TABLE "Agents".s0 PARTITION OF "Agents".s FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE "Agents".s1 PARTITION OF "Agents".s FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE "Agents".m (
    id bigserial, session_id varchar NOT NULL REFERENCES "Agents".s, message_data text,
    created_at timestamp NOT NULL DEFAULT now(), PRIMARY KEY (session_id, id)
) PARTITION BY HASH (session_id);
CREATE TABLE "Agents".m0 PARTITION OF "Agents".m FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE "Agents".m1 PARTITION OF "Agents".m FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX ON "Agents".m (session_id, created_at)
"""


def write_by_hand(session_id: str) -> None:
    run_sql(f"""INSERT INTO "Agents"."Sessions" (session_id) VALUES ('{session_id}') ON CONFLICT DO NOTHING""")
    run_sql(f"""INSERT INTO "Agents"."It's $memadmin$ 100%" (session_id, message_data) VALUES ('{session_id}', '[]')""")


class TestRefusals:
    def test_tables_that_are_not_there(self, agent_tables: None) -> None:
        with pytest.raises(CommandError, match="no table agent_sessions and no table agent_messages"):
            attach_command("main")

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (
                "ALTER TABLE agent_messages DROP CONSTRAINT agent_messages_session_id_fkey",
                r'no foreign key .* ALTER TABLE "public"."agent_messages" ADD FOREIGN KEY',
            ),
            ("ALTER TABLE agent_messages DISABLE TRIGGER ALL", "is not enforced"),
            ("ALTER TABLE agent_messages ALTER id TYPE numeric", "column id of public.agent_messages is numeric"),
            ("ALTER TABLE agent_messages DROP created_at", "public.agent_messages has no column created_at"),
            ("ALTER TABLE agent_messages ALTER message_data TYPE bytea USING ''", "message_data .* is bytea"),
            (
                "ALTER TABLE agent_sessions ALTER updated_at DROP DEFAULT, ALTER updated_at TYPE text",
                "updated_at .* text",
            ),
        ],
    )
    def test_tables_that_cannot_carry_a_fence(self, agent_tables: None, change: str, sentence: str) -> None:
        make_agent_tables()
        run_sql(change)
        with pytest.raises(CommandError, match=sentence):
            attach_command("main")
        assert objects_of_ours() == set()

    def test_session_ids_that_are_no_text(self, agent_tables: None) -> None:
        run_sql(
            BY_HAND.format(collation="").replace("varchar(200)", "uuid").replace("session_id text", "session_id uuid")
        )
        with pytest.raises(registry.AttachRefused, match=r"session_id of Agents\.Sessions is uuid; it must be text"):
            attached_store("hand", **BY_HAND_NAMES)

    def test_a_collation_that_takes_different_ids_for_the_same(self, agent_tables: None) -> None:
        run_sql(
            BY_HAND.format(collation='COLLATE "Agents".blind').replace(
                ";", ';CREATE COLLATION "Agents".blind FROM "C";', 1
            )
        )
        # The embedded server has no ICU, which alone has such collations; this is how the catalog shows one.
        run_sql("UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'blind'")
        with pytest.raises(registry.AttachRefused, match="takes different ids for the same session"):
            attached_store("hand", **BY_HAND_NAMES)

    def test_tables_that_another_store_has(self, agent_tables: None) -> None:
        attach_main_store()
        with pytest.raises(CommandError, match="The store main already uses this location"):
            attach_command(
                "again", "--sessions-table", "public.agent_sessions", "--messages-table", "public.agent_messages"
            )
        assert not SessionStore.objects.filter(name="again").exists()

    def test_an_attached_store_does_not_move(self, agent_tables: None, settings: Settings) -> None:
        attach_main_store()
        settings.AGENT_SESSIONS_TABLE = "other_sessions"
        with pytest.raises(CommandError, match=r"main is attached to agent_sessions .* --remove before it moves"):
            attach_command("main")

    def test_a_role_without_rights(self, agent_tables: None) -> None:
        make_agent_tables()
        with database_role("console") as console:
            grant_all_to(console)
            run_sql(f"REVOKE TRIGGER, DELETE ON agent_messages FROM {console}")
            run_sql(f"SET ROLE {console}")
            with pytest.raises(CommandError, match=r"agent_messages: its owner has to GRANT DELETE, TRIGGER"):
                attach_command("main")
            run_sql("RESET ROLE")
            run_sql(f"GRANT TRIGGER, DELETE ON agent_messages TO {console}")
            run_sql(f"SET ROLE {console}")
            assert "main is attached" in attach_command("main", "--mode", "drop")
            assert "main is detached" in attach_command("main", "--remove")
            assert objects_of_ours() == set()

    def test_rows_that_policies_hide(self, agent_tables: None) -> None:
        """Who erases would not see them either."""
        make_agent_tables()
        with database_role("console") as console:
            grant_all_to(console)
            run_sql("ALTER TABLE agent_messages ENABLE ROW LEVEL SECURITY")
            run_sql(f"SET ROLE {console}")
            with pytest.raises(CommandError, match=r"Policies of public\.agent_messages decide which of its rows"):
                attach_command("main")
            run_sql("RESET ROLE; ALTER TABLE agent_messages DISABLE ROW LEVEL SECURITY")
            run_sql(f"SET ROLE {console}")
            assert "main is attached" in attach_command("main")
            run_sql("RESET ROLE; ALTER TABLE agent_messages ENABLE ROW LEVEL SECURITY")
            run_sql(f"SET ROLE {console}")
            health = registry.check(SessionStore.objects.get(name="main"))
            assert ([problem.code for problem in health.problems], health.fence) == (["row-policies"], "on")
            run_sql("RESET ROLE")
            assert registry.check(SessionStore.objects.get(name="main")).problems == ()
            attach_command("main", "--remove")

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["new"], "give its tables with --sessions-table"),
            (["new", "--sessions-table", "a.b.c", "--messages-table", "m"], "'a.b.c' is not a table name"),
            (["new", "--sessions-table", "s", "--messages-table", "."], "'.' is not a table name"),
            (
                ["new", "--sessions-table", "s", "--messages-table", "m", "--timezone", "Mars"],
                "'Mars' is not a time zone",
            ),
            (["no name", "--sessions-table", "s", "--messages-table", "m"], "slug"),
            (["main", "--timezone", "Asia/Tokyo"], "come from the environment"),
        ],
    )
    def test_nonsense_on_the_command_line(self, agent_tables: None, arguments: list[str], sentence: str) -> None:
        with pytest.raises(CommandError, match=sentence):
            attach_command(*arguments)
        assert not SessionStore.objects.exists()

    def test_a_database_that_is_away(self, agent_tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
        connection.close()
        with monkeypatch.context() as away:
            away.setattr(connection, "get_connection_params", lambda: {"host": "/nowhere", "dbname": "none"})
            with pytest.raises(CommandError, match="is not responding"):
                attach_command("main")


def test_migrations_never_touch_the_agents_tables(agent_tables: None) -> None:
    """The test database was migrated, and has none; migrating beside them leaves them as they are."""
    assert value_of("SELECT to_regclass('agent_sessions')") is None
    make_agent_tables()
    call_command("migrate", verbosity=0)
    assert objects_of_ours() == set()
    with pytest.raises(StoreUnavailable):
        registry.plan_attachment(SessionStore(name="x", sessions_table="nowhere", messages_table="agent_messages"))
