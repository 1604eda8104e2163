"""`check_stores` says precisely what is wrong, and `attach_store` repairs what it can."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store
from sessions_app.stores.base import StoreHealth
from tests.agents import add_items, attach_main_store, database_role, make_agent_tables, run_sql


@pytest.fixture
def store(agent_tables: None) -> SessionStore:
    return attach_main_store()


def check_command(*arguments: str) -> str:
    out = StringIO()
    call_command("check_stores", *arguments, stdout=out)
    return out.getvalue()


def only_problem(health: StoreHealth) -> tuple[str, str]:
    (problem,) = health.problems
    return problem.code, problem.sentence


class TestWhatAttachRepairs:
    @pytest.mark.parametrize(
        ("damage", "code", "sentence"),
        [
            (
                "DROP TRIGGER {register} ON agent_sessions",
                "trigger-missing",
                "{register} on public.agent_sessions is missing",
            ),
            (
                "DROP TRIGGER {follow} ON agent_sessions",
                "trigger-missing",
                "{follow} on public.agent_sessions is missing",
            ),
            ("ALTER TABLE agent_sessions DISABLE TRIGGER {register}", "trigger-disabled", "{register} .* is disabled"),
            (
                "ALTER TABLE agent_sessions ENABLE REPLICA TRIGGER {register}",
                "trigger-disabled",
                "{register} .* is disabled",
            ),
            (
                "CREATE OR REPLACE TRIGGER {register} BEFORE INSERT ON agent_sessions"
                " FOR EACH ROW EXECUTE FUNCTION {register}()",
                "trigger-changed",
                "trigger {register} on public.agent_sessions is not the one of this version",
            ),
            (
                "CREATE OR REPLACE TRIGGER {register} BEFORE INSERT OR UPDATE OF session_id ON agent_sessions"
                " FOR EACH ROW WHEN (NEW.session_id <> 'x') EXECUTE FUNCTION {register}()",
                "trigger-changed",
                "trigger {register} on public.agent_sessions is not the one of this version",
            ),
            (
                "CREATE OR REPLACE FUNCTION {register}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
                "function-changed",
                "function {register} is not the one of this version: it was changed, or is older",
            ),
            ("ALTER FUNCTION {register}() SECURITY INVOKER", "function-changed", "function {register} is not"),
            ("ALTER FUNCTION {follow}() RESET search_path", "function-changed", "function {follow} is not"),
        ],
    )
    def test_a_damaged_fence(self, store: SessionStore, damage: str, code: str, sentence: str) -> None:
        names = {"register": f"memadmin_register_{store.pk}", "follow": f"memadmin_follow_{store.pk}"}
        run_sql(damage.format(**names))

        health = registry.check(store)
        assert only_problem(health)[0] == code
        assert_says(health, sentence.format(**names))
        assert_says(health, r"Run attach_store main\.")
        assert (health.state, health.fence) == ("degraded", "off")

        attach_store(store)
        assert registry.check(store).problems == ()

    def test_functions_that_are_gone(self, store: SessionStore) -> None:
        run_sql(f"DROP FUNCTION memadmin_register_{store.pk} CASCADE")
        assert [problem.code for problem in registry.check(store).problems] == ["function-missing", "trigger-missing"]
        attach_store(store)
        assert registry.check(store).problems == ()

    def test_tables_that_were_dropped_and_created_again(self, store: SessionStore) -> None:
        run_sql("DROP TABLE agent_messages, agent_sessions")
        make_agent_tables()
        add_items("unseen", "hello")
        assert [problem.code for problem in registry.check(store).problems] == [
            "trigger-missing",
            "trigger-missing",
            "unrecorded",
            "unregistered",
        ]
        attach_store(store)
        assert registry.check(store).problems == ()

    @pytest.mark.parametrize(
        "when",
        [
            "",
            "WHEN (false)",
            "WHEN (session_user <> 'agents')",
            "WHEN (current_setting('memadmin.actor', true) = '')",
            "WHEN (current_setting('memadmin.another', true) <> '')",
        ],
    )
    def test_another_condition_for_what_is_recorded(self, store: SessionStore, when: str) -> None:
        name = f"memadmin_note_delete_of_items_{store.pk}"
        run_sql(
            f"CREATE OR REPLACE TRIGGER {name} AFTER DELETE ON agent_messages"
            f" REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT {when} EXECUTE FUNCTION {name}()"
        )
        assert [problem.code for problem in registry.check(store).problems] == ["unrecorded"]
        attach_store(store)
        assert registry.check(store).problems == ()

    @pytest.mark.parametrize(
        "roles", [["agents"], ["support's agents", 'the "other" agents', "DOMAIN\\agents", "100%"]]
    )
    def test_another_role_of_the_agents(self, store: SessionStore, roles: list[str]) -> None:
        """What PostgreSQL gives back of the condition is what was asked for, however the roles are called."""
        store.agent_roles = roles
        assert [problem.code for problem in registry.check(store).problems] == ["unrecorded"]
        attach_store(store)
        assert registry.check(store).problems == ()

    def test_a_role_whose_name_would_be_cut(self, store: SessionStore) -> None:
        with pytest.raises(registry.AttachRefused, match="63 bytes at most"):
            declare_store(registry.MAIN_STORE, agent_roles=["é" * 32])
        store.refresh_from_db()
        assert store.agent_roles == []

    def test_a_mode_that_differs(self, store: SessionStore) -> None:
        store.fence_mode = SessionStore.FenceMode.DROP
        health = registry.check(store)
        assert only_problem(health) == (
            "mode-differs",
            "Its fence is in reject mode and should be in drop mode. Run attach_store main.",
        )
        assert (health.state, health.fence) == ("degraded", "on")
        attach_store(store)
        assert registry.check(store).problems == ()

    def test_sessions_without_a_registry_row(self, store: SessionStore) -> None:
        for session_id in ("one", "two", "three"):
            add_items(session_id, "hello")
        SessionRecord.objects.filter(session_id__in=["one", "two"]).delete()
        assert only_problem(registry.check(store)) == (
            "unregistered",
            "2 of its sessions are not registered, and so not listed. Run attach_store main.",
        )
        attach_store(store)
        assert registry.check(store).problems == ()
        assert SessionRecord.objects.count() == 3

    def test_an_index_that_is_missing_or_invalid(self, store: SessionStore) -> None:
        run_sql("DROP INDEX idx_agent_messages_session_time")
        health = registry.check(store)
        assert only_problem(health)[0] == "index-missing"
        assert health.fence == "on"

        run_sql(f"CREATE INDEX memadmin_items_{store.pk} ON agent_messages (session_id, created_at)")
        run_sql(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'memadmin_items_{store.pk}'::regclass")
        assert_says(
            registry.check(store), "memadmin_items_.* of public.agent_messages is invalid: its build was interrupted"
        )

        attach_store(store)
        assert registry.check(store).problems == ()


class TestWhatAPersonRepairs:
    def test_a_foreign_key_that_is_gone(self, store: SessionStore) -> None:
        run_sql("ALTER TABLE agent_messages DROP CONSTRAINT agent_messages_session_id_fkey")
        health = registry.check(store)
        assert only_problem(health)[0] == "foreign-key-missing"
        assert health.fence == "off"
        remedy = health.problems[0].sentence.rsplit("with: ", 1)[1]
        run_sql(remedy)
        assert registry.check(store).problems == ()

    def test_ids_that_run_out(self, store: SessionStore) -> None:
        run_sql("SELECT setval('agent_messages_id_seq', 2000000000)")
        assert_says(registry.check(store), "has used 2,000,000,000 of 2,147,483,647 ids; .* Change the column id")
        run_sql("ALTER TABLE agent_messages ALTER id TYPE bigint; ALTER SEQUENCE agent_messages_id_seq AS bigint")
        assert registry.check(store).problems == ()

    def test_tables_that_are_gone(self, store: SessionStore) -> None:
        run_sql("DROP TABLE agent_messages")
        health = registry.check(store)
        assert (health.state, health.fence, health.sessions) == ("down", "off", None)
        assert_says(health, "This database has no table agent_messages")

    def test_columns_that_are_gone(self, store: SessionStore) -> None:
        run_sql("ALTER TABLE agent_messages RENAME message_data TO data")
        health = registry.check(store)
        assert (health.state, health.fence) == ("down", "off")
        assert_says(health, "public.agent_messages has no column message_data")

    def test_times_that_may_be_empty(self, store: SessionStore) -> None:
        run_sql("ALTER TABLE agent_messages ALTER created_at DROP NOT NULL")
        assert only_problem(registry.check(store))[0] == "times-may-be-empty"


class TestZones:
    def test_what_agents_wrote_shows_a_wrong_zone(self, store: SessionStore, settings: Settings) -> None:
        add_items("tokyo", "hello", timezone="Asia/Tokyo")
        assert only_problem(registry.check(store)) == (
            "wrong-zone",
            "1 of the 1 sessions written last have times that are not in UTC: they are off by +9 hours."
            " Set AGENT_TIMEZONE to the agents' zone and run attach_store main.",
        )
        settings.AGENT_TIMEZONE = "Asia/Tokyo"
        call_command("attach_store", "main", stdout=StringIO())
        store.refresh_from_db()
        assert registry.check(store).problems == ()

    def test_agents_in_two_zones_are_found_out(self, store: SessionStore) -> None:
        add_items("utc", "hello")
        add_items("caracas", "hello", timezone="America/Caracas")
        assert_says(registry.check(store), "1 of the 2 sessions .* off by -4 hours")

    def test_times_of_one_agent_are_no_zone_of_the_others(self, store: SessionStore) -> None:
        """Nothing of the store would expire any more."""
        for name in ("one", "two", "odd"):
            add_items(name, "hello")
        for time in ("now() - interval '5 hours'", "'200000-01-01'", "'infinity'", "'4000-01-01 BC'", "'2200-01-01'"):
            run_sql(f"UPDATE agent_sessions SET updated_at = {time} WHERE session_id = 'odd'")
            assert "wrong-zone" not in {problem.code for problem in registry.check(store).problems}, time
        for name in ("one", "two"):
            add_items(name, "hello", timezone="Asia/Tokyo")
        assert "wrong-zone" in {problem.code for problem in registry.check(store).problems}

    def test_before_anything_is_written_the_configuration_tells(self, store: SessionStore) -> None:
        database = connection.settings_dict["NAME"]
        with database_role("agent") as agent, database_role("stranger") as stranger:
            run_sql(f"GRANT INSERT ON agent_messages TO {agent}")
            run_sql(f"ALTER ROLE {agent} IN DATABASE {database} SET timezone TO 'Asia/Tokyo'")
            run_sql(f"ALTER ROLE {stranger} SET timezone TO 'Asia/Kolkata'")
            run_sql(f"ALTER DATABASE {database} SET timezone TO 'Etc/UTC'")
            try:
                assert_says(
                    registry.check(store), rf"Agents write in the zone Asia/Tokyo \(setting of the role {agent}\)"
                )
                assert len(registry.check(store).problems) == 1
                store.writer_timezone = "Asia/Tokyo"
                assert agent not in registry.check(store).problems[0].sentence
            finally:
                run_sql(f"ALTER DATABASE {database} RESET timezone")

    def test_times_with_a_zone_need_no_setting(self, agent_tables: None) -> None:
        make_agent_tables()
        run_sql("ALTER TABLE agent_sessions ALTER updated_at TYPE timestamptz, ALTER created_at TYPE timestamptz")
        store = attach_main_store()
        add_items("tokyo", "hello", timezone="Asia/Tokyo")
        assert registry.check(store).problems == ()


class TestHealth:
    def test_small_stores_are_counted_exactly(self, store: SessionStore) -> None:
        add_items("one", "hello", "again")
        health = registry.health(store)
        assert (health.sessions, health.items, health.fence, health.state) == (1, 2, "on", "ok")
        assert health.answered_in_ms is not None

    def test_large_stores_are_counted_by_statistics(self, store: SessionStore) -> None:
        # Without our triggers: a registry that has no statistics yet takes long for so many sessions at once.
        run_sql("ALTER TABLE agent_sessions DISABLE TRIGGER USER")
        run_sql("INSERT INTO agent_sessions (session_id) SELECT 's' || n FROM generate_series(1, 12000) AS n")
        run_sql("ALTER TABLE agent_sessions ENABLE TRIGGER USER")
        run_sql("ANALYZE agent_sessions")
        assert registry.health(store).sessions == 12000

    def test_its_cost_does_not_grow_with_the_store(self, store: SessionStore) -> None:
        def queries() -> int:
            with CaptureQueriesContext(connection) as captured:
                registry.health(store)
            return len(captured)

        add_items("one", "hello")
        few = queries()
        run_sql("INSERT INTO agent_sessions (session_id) SELECT 's' || n FROM generate_series(1, 500) AS n")
        assert queries() <= few


class TestCommand:
    def test_json_has_the_keys_that_scripts_rely_on(self, store: SessionStore) -> None:
        attach_store(declare_store(registry.MAIN_STORE, agent_roles=["agents"]))
        add_items("one", "hello")
        assert json.loads(check_command("--json")) == {
            "stores": [
                {
                    "name": "main",
                    "kind": "sqlalchemy",
                    "state": "ok",
                    "problems": [],
                    "hints": [],
                    "layout": "Read as written by openai-agents 0.2 and later.",
                    "sessions": 1,
                    "fence": "on",
                    "unreadable": [],
                }
            ],
            "unconnected": [],
            "watched_paths": [],
            "subject_keys": [],
        }

    def test_people_read_sentences(self, store: SessionStore) -> None:
        layout = "  Read as written by openai-agents 0.2 and later.\n"
        note = (
            "  note: The agents' database roles are not set, so SQL writes to their tables by others are not recorded."
            " Run attach_store main --agent-role with each of them.\n"
        )
        assert check_command() == f"main: ok, sessions 0, fence on\n{layout}{note}"
        run_sql(f"ALTER TABLE agent_sessions DISABLE TRIGGER memadmin_follow_{store.pk}")
        assert check_command() == (
            f"main: degraded, sessions 0, fence off\n{layout}"
            f"  - The trigger memadmin_follow_{store.pk} on public.agent_sessions is disabled. Run attach_store main.\n"
            f"{note}"
        )

    def test_the_main_store_is_listed_before_it_is_attached(self, agent_tables: None) -> None:
        assert the_only_store()["state"] == "down"
        make_agent_tables()
        found = the_only_store()
        assert (found["name"], found["state"], found["fence"]) == ("main", "degraded", "off")
        assert found["problems"] == [
            "It is not attached: its sessions are not listed, and erased sessions can return. Run attach_store main."
        ]
        assert not SessionStore.objects.exists()

    def test_a_database_that_is_away_is_said(self, agent_tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
        connection.close()
        with monkeypatch.context() as away:
            away.setattr(connection, "get_connection_params", lambda: {"host": "/nowhere", "dbname": "none"})
            found = the_only_store_without_the_database()
        assert (found["state"], found["sessions"]) == ("down", None)
        assert "is not responding" in found["problems"][0]
        assert "/nowhere" in found["problems"][0], "why it does not"

    def test_a_database_that_was_not_migrated_is_said(self, agent_tables: None) -> None:
        # Out of sight of this connection only: a table that is renamed is renamed for everybody, for as long as the
        # renaming back has to wait for somebody.
        run_sql("SET search_path TO pg_catalog")
        try:
            assert the_only_store_without_the_database()["problems"] == [
                "The console's own tables are not in this database yet. Run migrate."
            ]
        finally:
            run_sql("RESET search_path")


def the_only_store() -> dict[str, Any]:
    (found,) = json.loads(check_command("--json"))["stores"]
    return dict(found)


def the_only_store_without_the_database() -> dict[str, Any]:
    """What the command says of it before it ends with 1, since the console's database does not answer."""
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("check_stores", "--json", stdout=out)
    assert ended.value.code == 1
    (found,) = json.loads(out.getvalue())["stores"]
    return dict(found)


def assert_says(health: StoreHealth, pattern: str) -> None:
    sentences = [problem.sentence for problem in health.problems]
    assert any(re.search(pattern, sentence) for sentence in sentences), sentences
