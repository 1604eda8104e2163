"""What agents add under their own role is theirs in the log. Nobody else passes for one, nor one for anybody else."""

from __future__ import annotations

import uuid

import pytest
from django.db import Error, transaction

from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.deploy.roles import Roles
from memadmin.migrating import sql_text
from sessions_app.models import Subject, SubjectKind
from sessions_app.services.subjects import subject_for_key
from tests.agents import run_sql, value_of
from tests.builders import make_store
from tests.deploy.connecting import connected_as, in_a_command, refusal
from tests.memories.conftest import agents_role  # noqa: F401
from tests.people import person

pytestmark = pytest.mark.django_db

SIGNAL = "INSERT INTO memories_app_signal (subject_id, kind, agent) VALUES ('{}', 'correction', '{}')"
ADD_SESSION = "INSERT INTO sessions_app_sessionrecord (store_id, session_id)"
REGISTER = "SELECT memadmin_register_session('support', 'chat-1', 'user', 'new one', '4711', 'triage')"


@pytest.fixture
def ada(db: None) -> Subject:
    return subject_for_key(SubjectKind.USER, "ada")


@pytest.fixture
def names(agents_role: Roles, ada: Subject) -> Roles:  # noqa: F811
    """The roles, of which the agents' is that of a store."""
    make_store("support", agent_roles=[agents_role["agents"]])
    return agents_role


@pytest.fixture
def stranger(names: Roles) -> str:
    """Somebody with a login of their own, who may do with our tables what agents may, and more."""
    role = f"stranger_to_{names['web']}"
    run_sql(f'CREATE ROLE "{role}" LOGIN')
    run_sql(
        f'GRANT SELECT, INSERT ON memories_app_signal, sessions_app_sessionrecord, sessions_app_subject TO "{role}"'
    )
    run_sql(f'CREATE POLICY stranger ON memories_app_signal TO "{role}" USING (true) WITH CHECK (true)')
    return role


def again(name: str) -> str:
    """A file of the log's functions, to be run where they are already."""
    return sql_text("audit", name).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")


def in_run_of(subject: Subject) -> str:
    return f"SELECT set_config('memadmin.subject', '{subject.pk}', true), set_config('memadmin.agent', 'refunds', true)"


def latest(noun: str = "") -> AuditEvent:
    return AuditEvent.objects.filter(type__startswith=noun, type__contains=".row_").latest("number")


def who(event: AuditEvent) -> tuple[str, str]:
    return event.actor_kind, AuditActor.objects.get(ref=event.actor_ref).label


def role_of(event: AuditEvent) -> str:
    return AuditActor.objects.get(ref=event.role_ref).label


def count() -> int:
    return AuditEvent.objects.count()


class TestAnAgent:
    def test_that_gives_a_signal_stands_under_the_name_that_it_gives_itself(self, names: Roles, ada: Subject) -> None:
        with connected_as(names["agents"]):
            run_sql(in_run_of(ada))
            run_sql(SIGNAL.format(ada.pk, "triage"))
        event = latest("signal")
        assert who(event) == ("agent", "“triage”")
        assert role_of(event) == names["agents"]
        assert (event.subject_ref, event.cause) == (ada.pk, None)
        assert event not in AuditEvent.objects.outside()

    def test_that_proposes_with_evidence_stands_under_the_name_of_its_run(self, names: Roles, ada: Subject) -> None:
        before = count()
        memory = uuid.uuid4()
        with connected_as(names["agents"]):
            run_sql(in_run_of(ada))
            run_sql(
                "INSERT INTO memories_app_memory (id, subject_id, kind, statement)"
                f" VALUES ('{memory}', '{ada.pk}', 'fact', 'Drinks tea.')"
            )
            run_sql(f"INSERT INTO memories_app_evidence (memory_id, quote) VALUES ('{memory}', 'tea, please')")
        new = AuditEvent.objects.order_by("number")[before:]
        assert [event.type for event in new] == ["memory.row_inserted", "evidence.row_inserted"]
        assert {who(event) for event in new} == {("agent", "“refunds”")}

    def test_that_registers_a_session_and_its_subject_does_so_as_an_agent(self, names: Roles) -> None:
        before = count()
        with connected_as(names["agents"]):
            run_sql(REGISTER)
            run_sql(REGISTER.replace("'triage'", "'refunds'"))
        new = AuditEvent.objects.order_by("number")[before:]
        assert [event.type for event in new] == [
            *("subject.row_inserted", "alias.row_inserted", "session.row_inserted", "session.row_updated")
        ]
        assert {event.actor_kind for event in new} == {"agent"}
        assert [who(event)[1] for event in new][2:] == ["“triage”", "“refunds”"]

    def test_that_gives_no_name_has_none(self, names: Roles, ada: Subject) -> None:
        with connected_as(names["agents"]):
            run_sql(in_run_of(ada).replace("refunds", ""))
            run_sql(SIGNAL.format(ada.pk, ""))
        assert who(latest("signal")) == ("agent", "an agent without a name")

    def test_that_takes_a_new_name_each_time_is_not_written_down_without_end(self, names: Roles, ada: Subject) -> None:
        with connected_as(names["agents"]):
            run_sql(in_run_of(ada))
            run_sql(
                f"DO $$ BEGIN FOR n IN 1..205 LOOP {SIGNAL.format(ada.pk, 'n')}; END LOOP; END $$".replace(
                    "'n'", "'n' || n"
                )
            )
        assert AuditActor.objects.filter(kind="agent").count() == 201
        assert who(latest("signal")) == ("agent", "an agent without a name")

    @pytest.mark.parametrize(
        "name",
        ["“support” person", "x” (person)", "a\nb\tc", "x" * 200, "  "],
        ids=["quoted", "unquoted", "lines", "long", "blank"],
    )
    def test_stays_in_quotes_whatever_it_calls_itself(self, names: Roles, ada: Subject, name: str) -> None:
        with connected_as(names["agents"]):
            run_sql(in_run_of(ada).replace("refunds", ""))
            run_sql(SIGNAL.format(ada.pk, name))
        kind, label = who(latest("signal"))
        assert kind == "agent"
        assert label == "an agent without a name" or (label[0], label[-1]) == ("“", "”")
        assert not {"“", "”", "\n", "\t"} & set(label[1:-1])
        assert len(label) <= 82


NAMING = {
    "a person": "SELECT set_config('memadmin.actor', 'person:{person}', true)",
    "a command": "SELECT set_config('memadmin.actor', 'command:{person}', true)",
    "the system, for the connection": "SELECT set_config('memadmin.actor', 'system:{person}', false)",
}


class TestAnAgentThatPassesForAnother:
    @pytest.mark.parametrize("naming", NAMING)
    def test_by_a_setting(self, names: Roles, ada: Subject, naming: str) -> None:
        """Neither who acts nor what caused it is an agent's word."""
        ref = AuditActor.objects.get(kind="person", user_id=person("support").pk).ref
        verb = AuditEvent.objects.latest("number").id
        with connected_as(names["agents"]):
            run_sql(in_run_of(ada))
            run_sql(NAMING[naming].format(person=ref))
            run_sql(f"SELECT set_config('memadmin.cause', '{verb}', true)")
            run_sql(SIGNAL.format(ada.pk, "triage"))
            run_sql(REGISTER)
        run_sql("RESET memadmin.actor")
        for event in (latest("signal"), latest("session"), latest("alias")):
            assert (who(event), event.cause) == (("agent", "“triage”" if event.type[0] == "s" else "“refunds”"), None)

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE memories_app_signal SET text = 'forged'",
            "DELETE FROM memories_app_signal",
            "INSERT INTO sessions_app_subject (id) VALUES (gen_random_uuid())",
            f"{ADD_SESSION} SELECT id, 'x' FROM sessions_app_sessionstore",
            "UPDATE sessions_app_sessionrecord SET ticket = 'x'",
            "INSERT INTO sessions_app_subjectalias (subject_id, kind, key, is_primary)"
            " SELECT id, 'user', 'x', false FROM sessions_app_subject LIMIT 1",
        ],
    )
    def test_what_no_client_does_stands_as_the_role(self, names: Roles, ada: Subject, change: str) -> None:
        """Somebody gave the role more than it should have, and something uses that."""
        role = names["agents"]
        run_sql(SIGNAL.format(ada.pk, "triage"))
        run_sql(f"{ADD_SESSION} SELECT id, 'y' FROM sessions_app_sessionstore")
        for table in (
            "memories_app_signal",
            "sessions_app_subject",
            "sessions_app_sessionrecord",
            "sessions_app_subjectalias",
        ):
            run_sql(f'GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO "{role}"')
        run_sql(f'GRANT SELECT ON sessions_app_sessionstore TO "{role}"')
        run_sql(f'GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO "{role}"')
        run_sql(f'CREATE POLICY wide ON memories_app_signal TO "{role}" USING (true) WITH CHECK (true)')
        before = count()
        with connected_as(role):
            run_sql(change)
        (event,) = AuditEvent.objects.order_by("number")[before:]
        assert who(event) == ("database", role)
        assert event in AuditEvent.objects.outside()

    def test_by_a_role_that_it_may_take(self, names: Roles, stranger: str, ada: Subject) -> None:
        """It is no longer as the agents' role that it writes then."""
        run_sql(f'GRANT "{stranger}" TO "{names["agents"]}"')
        with connected_as(names["agents"]):
            run_sql(f'SET LOCAL ROLE "{stranger}"')
            run_sql(SIGNAL.format(ada.pk, "triage"))
            run_sql("RESET ROLE")
        event = latest("signal")
        assert who(event) == ("database", names["agents"])

    def test_by_a_function_of_a_stranger(self, names: Roles, stranger: str, ada: Subject) -> None:
        """With somebody else's rights it writes what it may not, past its own policies."""
        self.let_in(stranger, ada)
        with connected_as(names["agents"]):
            run_sql("SELECT of_a_stranger()")
        assert who(latest("signal")) == ("database", names["agents"])
        assert who(latest("session")) == ("database", names["agents"])

    def test_broken_variant_without_asking_with_whose_rights(self, names: Roles, stranger: str, ada: Subject) -> None:
        self.let_in(stranger, ada)
        run_sql("ALTER TABLE memories_app_signal DISABLE TRIGGER USER")
        run_sql(
            "CREATE TRIGGER broken AFTER INSERT ON memories_app_signal REFERENCING NEW TABLE AS new_rows"
            " FOR EACH STATEMENT EXECUTE FUNCTION"
            " memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'kind', '', 'agents')"
        )
        with connected_as(names["agents"]):
            run_sql("SELECT of_a_stranger()")
        assert who(latest("signal"))[0] == "agent"

    @staticmethod
    def let_in(stranger: str, ada: Subject) -> None:
        run_sql(
            "CREATE FUNCTION of_a_stranger() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
            f" {SIGNAL.format(ada.pk, 'triage')};"
            " INSERT INTO sessions_app_sessionrecord (store_id, session_id) VALUES"
            f" ({value_of('SELECT min(id) FROM sessions_app_sessionstore')}, 'x'); END $$"
        )
        run_sql(f'ALTER FUNCTION of_a_stranger() OWNER TO "{stranger}"')


class TestSomebodyElseThatPassesForAnAgent:
    def assert_seen(self, role: str) -> None:
        event = latest("signal")
        assert who(event) == ("database", role)
        assert event in AuditEvent.objects.outside()

    def test_by_settings(self, stranger: str, ada: Subject) -> None:
        ref = value_of("SELECT memadmin_agent('triage')")
        with connected_as(stranger):
            run_sql(in_run_of(ada))
            run_sql(f"SELECT set_config('memadmin.actor', 'agent:{ref}', true)")
            run_sql(SIGNAL.format(ada.pk, "triage"))
        self.assert_seen(stranger)

    def test_by_taking_the_agents_role(self, names: Roles, stranger: str, ada: Subject) -> None:
        run_sql(f'GRANT "{names["agents"]}" TO "{stranger}"')
        with connected_as(stranger):
            run_sql(f'SET LOCAL ROLE "{names["agents"]}"')
            run_sql(in_run_of(ada))
            run_sql(SIGNAL.format(ada.pk, "triage"))
            run_sql(REGISTER)
            run_sql("RESET ROLE")
        self.assert_seen(stranger)
        assert who(latest("session")) == who(latest("alias")) == ("database", stranger)

    def test_by_being_a_member_of_it(self, names: Roles, stranger: str, ada: Subject) -> None:
        run_sql(f'GRANT "{names["agents"]}" TO "{stranger}"')
        with connected_as(stranger):
            run_sql(in_run_of(ada))
            run_sql(SIGNAL.format(ada.pk, "triage"))
            run_sql(REGISTER)
        self.assert_seen(stranger)
        assert who(latest("session")) == ("database", stranger)

    def test_by_a_function_with_the_agents_rights(self, names: Roles, stranger: str, ada: Subject) -> None:
        run_sql(
            "CREATE FUNCTION as_an_agent() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
            f" {in_run_of(ada).replace('SELECT', 'PERFORM')}; {SIGNAL.format(ada.pk, 'triage')}; END $$"
        )
        run_sql(f'ALTER FUNCTION as_an_agent() OWNER TO "{names["agents"]}"')
        with connected_as(stranger):
            run_sql("SELECT as_an_agent()")
        self.assert_seen(stranger)

    def test_broken_variant_that_asks_who_the_statement_runs_as(
        self, names: Roles, stranger: str, ada: Subject
    ) -> None:
        """What tells who came in, and not whose rights were taken since, is what the function goes by."""
        run_sql(f'GRANT "{names["agents"]}" TO "{stranger}"')
        trusting = (
            again("note_rows.sql")
            .replace("current_setting('role') = 'none'", "true")
            .replace(
                "memadmin_is_agents_role(session_user)",
                "memadmin_is_agents_role(coalesce(nullif(current_setting('role'), 'none'), session_user)::name)",
            )
        )
        run_sql(trusting)
        run_sql("ALTER TABLE memories_app_signal DISABLE TRIGGER USER")
        run_sql(
            "CREATE TRIGGER broken AFTER INSERT ON memories_app_signal REFERENCING NEW TABLE AS new_rows"
            " FOR EACH STATEMENT EXECUTE FUNCTION"
            " memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'kind', '', 'agents')"
        )
        with connected_as(stranger):
            run_sql(f'SET LOCAL ROLE "{names["agents"]}"')
            run_sql(in_run_of(ada))
            run_sql(SIGNAL.format(ada.pk, "triage"))
            run_sql("RESET ROLE")
        assert who(latest("signal"))[0] == "agent"

    def test_by_declaring_a_role_that_may_more_than_agents(self, names: Roles, stranger: str, ada: Subject) -> None:
        """Whoever can change rows could hide what they change; that the role was declared is on record besides."""
        run_sql(f'GRANT UPDATE (text) ON memories_app_signal TO "{stranger}"')
        make_store("second", agent_roles=[stranger])
        with connected_as(stranger):
            run_sql(SIGNAL.format(ada.pk, "triage"))
        self.assert_seen(stranger)
        assert "agent_roles" in latest("store").detail.details

    def test_the_application_is_never_an_agent(self, names: Roles, ada: Subject) -> None:
        make_store("second", agent_roles=[names["web"], names["worker"]])
        for kind in ("web", "worker"):
            with connected_as(names[kind]):
                assert "the actor is not proven" in refusal(SIGNAL.format(ada.pk, "triage"))
                with in_a_command():
                    run_sql(SIGNAL.format(ada.pk, "triage"))
            assert who(latest("signal")) == ("command", "test")

    def test_as_long_as_nobody_named_the_agents_roles_nobody_is_one(self, agents_role: Roles, ada: Subject) -> None:  # noqa: F811
        with connected_as(agents_role["agents"]):
            run_sql(in_run_of(ada))
            run_sql(SIGNAL.format(ada.pk, "triage"))
        self.assert_seen(agents_role["agents"])


def test_no_agent_calls_what_writes_events(names: Roles) -> None:
    calls = (
        "memadmin_agent('support')",
        "memadmin_write_rows('a.b', 'c.d', '{}', '{}', 1, NULL, 'person', NULL, NULL)",
    )
    with connected_as(names["agents"]):
        answers = [refusal(f"SELECT {call}") for call in calls]
    assert all("permission denied for function" in answer for answer in answers), answers


class TestATriggerOfAStranger:
    """On a table of their own, where they may make any: what it writes does not follow from what ours recorded."""

    WRITE = "UPDATE sessions_app_sessionrecord SET ticket = 'x'"

    @pytest.fixture
    def room(self, names: Roles, stranger: str) -> str:
        """A schema of the stranger's, who may change the registry."""
        store = value_of("SELECT min(id) FROM sessions_app_sessionstore")
        run_sql(f"{ADD_SESSION} VALUES ({store}, 'y')")
        run_sql(f'GRANT UPDATE ON sessions_app_sessionrecord TO "{stranger}"')
        run_sql(f'CREATE SCHEMA room AUTHORIZATION "{stranger}"')
        return stranger

    def write_by_a_trigger(self, statement: str) -> None:
        run_sql(
            "CREATE TABLE room.own (); CREATE FUNCTION room.write() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN {statement}; RETURN NULL; END $$;"
            "CREATE TRIGGER own AFTER INSERT ON room.own EXECUTE FUNCTION room.write();"
            "INSERT INTO room.own DEFAULT VALUES"
        )

    def test_is_on_record(self, room: str) -> None:
        before = count()
        with connected_as(room):
            self.write_by_a_trigger(self.WRITE)
        (event,) = AuditEvent.objects.order_by("number")[before:]
        assert (event.type, who(event)) == ("session.row_updated", ("database", room))
        assert event in AuditEvent.objects.outside()

    def test_is_refused_to_those_who_may_write_to_every_table(self, room: str) -> None:
        """They may add events, as the application may, but not ask whether an actor is proven."""
        run_sql(f'GRANT pg_write_all_data TO "{room}"')
        with connected_as(room), pytest.raises(Error, match="memadmin_has_actor"), transaction.atomic():
            self.write_by_a_trigger(self.WRITE)

    def test_broken_variant_that_only_asks_whether_it_is_a_trigger(self, room: str) -> None:
        run_sql(
            "CREATE OR REPLACE FUNCTION memadmin_by_our_trigger() RETURNS boolean LANGUAGE sql AS"
            " 'SELECT pg_trigger_depth() > 0'"
        )
        before = count()
        with connected_as(room):
            self.write_by_a_trigger(self.WRITE)
        assert count() == before

    def test_registers_no_session_where_nobody_would_see_it(self, names: Roles) -> None:
        run_sql(f'CREATE SCHEMA room AUTHORIZATION "{names["agents"]}"')
        with connected_as(names["agents"]):
            answer = refusal(
                "CREATE TABLE room.own (); CREATE FUNCTION room.write() RETURNS trigger LANGUAGE plpgsql AS"
                f" $$ BEGIN {REGISTER.replace('SELECT', 'PERFORM')}; RETURN NULL; END $$;"
                "CREATE TRIGGER own AFTER INSERT ON room.own EXECUTE FUNCTION room.write();"
                "INSERT INTO room.own DEFAULT VALUES"
            )
        assert "A session is not registered by a trigger." in answer


class TestWhatTheTriggersAsk:
    """They ask with the rights of whoever writes, who has a search_path of their own."""

    QUESTIONS = "SELECT memadmin_by_our_trigger() OR memadmin_through_us()"
    YES = "RETURNS boolean LANGUAGE sql AS 'SELECT true'"

    def plant(self, role: str) -> None:
        """What would be found before PostgreSQL's own functions and operators."""
        run_sql(
            f'CREATE SCHEMA planted AUTHORIZATION "{role}"; SET LOCAL search_path = planted, public;'
            f"CREATE FUNCTION has_table_privilege(name, regclass, text) {self.YES};"
            f"CREATE FUNCTION has_table_privilege(name, text, text) {self.YES};"
            f"CREATE FUNCTION has_table_privilege(name, oid, text) {self.YES};"
            "CREATE FUNCTION pg_trigger_depth() RETURNS integer LANGUAGE sql AS 'SELECT 1';"
            f"CREATE FUNCTION yes(name, name) {self.YES}; CREATE FUNCTION yes(integer, integer) {self.YES};"
            "CREATE OPERATOR <> (LEFTARG = name, RIGHTARG = name, FUNCTION = yes);"
            "CREATE OPERATOR > (LEFTARG = integer, RIGHTARG = integer, FUNCTION = yes);"
            f'GRANT USAGE ON SCHEMA planted TO "{role}"; SET LOCAL search_path = public'
        )

    def answer(self, role: str) -> bool:
        with connected_as(role):
            run_sql("SET LOCAL search_path = planted, pg_catalog, public")
            answer = bool(value_of(self.QUESTIONS))
            run_sql("SET LOCAL search_path = public")
        return answer

    def test_is_not_answered_by_what_a_stranger_planted(self, stranger: str) -> None:
        self.plant(stranger)
        assert self.answer(stranger) is False

    def test_broken_variant_that_looks_things_up_in_the_search_path(self, stranger: str) -> None:
        self.plant(stranger)
        loose = again("our_rights.sql")
        for operator in (">", "<>"):
            loose = loose.replace(f"OPERATOR(pg_catalog.{operator})", operator)
        run_sql(loose.replace("pg_catalog.", ""))
        assert self.answer(stranger) is True

    def test_is_answered_by_whose_rights_they_are(self, names: Roles) -> None:
        assert value_of(self.QUESTIONS) is False
        run_sql("CREATE FUNCTION ask() RETURNS boolean LANGUAGE sql SECURITY DEFINER AS 'SELECT memadmin_through_us()'")
        with connected_as(names["agents"]):
            assert value_of(self.QUESTIONS) is False
            assert value_of("SELECT ask()") is True

    def test_is_answered_alike_where_the_owner_may_not_update_the_log_either(self, names: Roles) -> None:
        """Somebody took that right from everybody."""
        run_sql(f'REVOKE UPDATE, DELETE, TRUNCATE ON audit_event FROM "{names["migrator"]}"')
        before = count()
        with connected_as(names["agents"]):
            run_sql(REGISTER)
        assert {event.actor_kind for event in AuditEvent.objects.order_by("number")[before:]} == {"agent"}


def test_nobody_has_versions_written_by_what_writes_ours(db: None) -> None:
    """Also before `db_roles` closed what is open to everybody."""
    run_sql("CREATE ROLE nobody_we_know; CREATE SCHEMA room AUTHORIZATION nobody_we_know")
    with connected_as("nobody_we_know"):
        answer = refusal(
            "CREATE TABLE room.own (id uuid, version int, statement text, data jsonb, content_hash text);"
            "CREATE TRIGGER own AFTER INSERT ON room.own FOR EACH ROW EXECUTE FUNCTION memadmin_keep_version()"
        )
    assert answer == "permission denied for function memadmin_keep_version"
