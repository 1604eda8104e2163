"""Two stores in one place, whatever their settings call it: refused where one is attached, told where it became so."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from agents import SQLiteSession
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from sqlalchemy import URL

from memadmin.audit.models import AuditEvent
from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.registry import duplicate_locations
from sessions_app.services.attaching import attach_store, detach_store
from sessions_app.services.connecting import connect_store
from sessions_app.services.health_checks import check_stores
from sessions_app.stores.base import Place
from sessions_app.stores.documents.database import own_address
from sessions_app.stores.hosts import THIS_MACHINE, endpoint
from sessions_app.stores.kinds import kinds
from sessions_app.stores.redis.backend import RedisBackend
from sessions_app.stores.remote_sql import database as remote_database
from tests.agents import attach_main_store, attached_store, make_agent_tables, user
from tests.meanwhile import somebody_else
from tests.stores.contract import in_agent
from tests.stores.conversations_api import KEY, ConversationsServer
from tests.stores.dapr_sidecar import STATE_STORE, Sidecar
from tests.stores.document_agents import InFile, InOwnPostgres, InPostgres
from tests.stores.mariadb import MariaDb
from tests.stores.mongo_stand_in import MongoStandIn
from tests.stores.postgres import PostgresServer
from tests.stores.remote_agents import MariaDbAgent
from tests.stores.servers import RedisServer
from tests.stores.test_agno import AgnoAgent

S = TypeVar("S", MongoStandIn, Sidecar, ConversationsServer)

ONE, ANOTHER = "ONE_URL", "ANOTHER_URL"

Reach = Callable[..., dict[str, str]]
"""Puts an address into a variable, and gives the settings that name it."""


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> Reach:
    def put(variable: str, address: str, **others: str) -> dict[str, str]:
        monkeypatch.setenv(variable, address)
        return {"url_env": variable, **others}

    return put


def connected(name: str, kind: str, options: Mapping[str, str], **tables: str) -> SessionStore:
    return connect_store(name, kinds()[kind], options=options, **tables)


def refuses(name: str, kind: str, options: Mapping[str, str], *, because_of: str, **tables: str) -> None:
    """By the verb of the page and by the command; nothing is kept."""
    before = SessionStore.objects.count()
    sentence = rf"The store {because_of} already uses this location .* attach_store {because_of} --remove"
    with pytest.raises(registry.AttachRefused, match=sentence):
        connected(name, kind, options, **tables)
    given = {**options, **tables}.items()
    flags = [part for setting, value in given for part in (f"--{setting.replace('_', '-')}", value)]
    with pytest.raises(CommandError, match=sentence):
        call_command("attach_store", name, "--kind", kind, *flags)
    assert SessionStore.objects.count() == before


def shared(store: SessionStore) -> list[str]:
    return [problem.sentence for problem in registry.health(store).problems if problem.code == "same-place"]


def let_go(variable: str) -> None:
    """The connections that were kept: a database goes only when nobody is there any more."""
    if opened := remote_database._engines.pop(variable, None):
        opened[1].engine.dispose()


def talk(path: Path, **tables: str) -> None:
    with closing(SQLiteSession("talk", path, **cast(Any, tables))) as session:
        in_agent(session.add_items([user("Where is my kettle?")]))  # type: ignore[list-item]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "agents.db"
    talk(path)
    return path


class TestFiles:
    @pytest.fixture
    def twins(self, file: Path) -> list[Path]:
        """Other paths of the file."""
        folder, second_name = file.with_name("linked"), file.with_name("second.db")
        folder.symlink_to(file.parent, target_is_directory=True)
        second_name.hardlink_to(file)
        return [second_name, folder / file.name, Path(f"{file.parent}/../{file.parent.name}/{file.name}")]

    def test_a_file_is_one_place_by_every_path_and_by_url(
        self, db: None, file: Path, twins: list[Path], reach: Reach
    ) -> None:
        connected("files", "sqlite", {"path": str(file)})
        refuses("twin", "sqlite", {"path": str(twins[0])}, because_of="files")
        for twin in (file, *twins):
            refuses("twin", "remote_sql", reach(ONE, f"sqlite:///{twin}"), because_of="files")

    def test_in_the_other_order_too(self, db: None, file: Path, twins: list[Path], reach: Reach) -> None:
        connected("by-url", "remote_sql", reach(ONE, f"sqlite:///{twins[1]}"))
        refuses("files", "sqlite", {"path": str(file)}, because_of="by-url")

    def test_other_tables_of_a_file_are_another_place(self, db: None, file: Path) -> None:
        others = {"sessions_table": "talks", "messages_table": "said"}
        talk(file, **others)
        connected("files", "sqlite", {"path": str(file)})
        assert shared(connected("others", "sqlite", {"path": str(file)}, **others)) == []
        capitals = {"sessions_table": "Talks", "messages_table": "SAID"}
        refuses("again", "sqlite", {"path": str(file)}, because_of="others", **capitals)

    def test_a_table_of_agno_is_one_place_by_path_and_by_url(self, db: None, tmp_path: Path, reach: Reach) -> None:
        agent = AgnoAgent(InFile(tmp_path))
        url = reach(ONE, f"sqlite:///{agent.place.path}", table="agno_sessions")
        refuses("by-url", "agno", url, because_of="others")

    def test_a_folder_is_one_place_by_every_path_and_so_are_endings_that_end_alike(
        self, db: None, tmp_path: Path
    ) -> None:
        folder, linked = tmp_path / "chats", tmp_path / "linked"
        folder.mkdir()
        linked.symlink_to(folder)
        connected("chats", "json_file", {"path": str(folder), "ending": ".chat.json"})
        connected("lines", "json_file", {"path": str(linked), "ending": ".jsonl"})
        assert shared(connected("mails", "json_file", {"path": str(linked), "ending": ".mail.json"})) == []
        refuses("all", "json_file", {"path": str(folder), "ending": ".json"}, because_of="chats")
        refuses("quoted", "json_file", {"path": str(linked), "ending": ".jsonl", "names": "quoted"}, because_of="lines")


class TestOwnDatabase:
    @pytest.fixture
    def ways(self, agent_tables: None, tmp_path: Path) -> Iterator[list[str]]:
        """To the database of this console."""
        make_agent_tables()
        url = own_address()
        linked = tmp_path / "socket"
        linked.symlink_to(str(url.query["host"]))
        by_link = url.set(query={**url.query, "host": str(linked)})
        yield [each.render_as_string(hide_password=False) for each in (url, by_link)]
        let_go(ONE)

    def test_the_tables_of_main_are_not_connected_by_url(self, ways: list[str], reach: Reach) -> None:
        attach_main_store()
        for way in ways:
            refuses("elsewhere", "remote_sql", reach(ONE, way), because_of="main")
        with_schema = {"sessions_table": "public.agent_sessions", "messages_table": "public.agent_messages"}
        refuses("elsewhere", "remote_sql", reach(ONE, ways[0]), because_of="main", **with_schema)

    def test_nor_is_main_attached_after_them_until_they_are_detached(self, ways: list[str], reach: Reach) -> None:
        elsewhere = connected("elsewhere", "remote_sql", reach(ONE, ways[1]))
        with pytest.raises(CommandError, match="The store elsewhere already uses this location"):
            call_command("attach_store", "main")
        detach_store(elsewhere)
        assert shared(attached_store("main")) == []

    def test_tables_of_agno_are_one_place_with_and_without_a_url(self, db: None, own_schema: URL, reach: Reach) -> None:
        agent = AgnoAgent(InOwnPostgres())
        url = own_address().render_as_string(hide_password=False)
        refuses("by-url", "agno", reach(ONE, url, table="agno_sessions"), because_of="others")
        refuses("by-url", "agno", reach(ONE, url, table="ai.agno_sessions"), because_of="others")
        agent.close()
        let_go(ONE)


@pytest.mark.slow
class TestServers:
    def test_a_postgresql_is_one_place_by_each_of_its_hosts_and_users(
        self, db: None, postgres_on_tcp: PostgresServer, reach: Reach
    ) -> None:
        server = postgres_on_tcp
        for prefix in ("", "other_"):
            server.run(
                f"CREATE TABLE {prefix}agent_sessions (session_id text PRIMARY KEY, created_at timestamp, updated_at"
                " timestamp)",
                f"CREATE TABLE {prefix}agent_messages (id bigint PRIMARY KEY, session_id text, message_data text,"
                " created_at timestamp)",
                f"GRANT ALL ON {prefix}agent_sessions, {prefix}agent_messages TO agent",
            )
        connected("support", "remote_sql", reach(ONE, server.address("127.0.0.1")))
        for host in ("localhost", server.socket_dir):
            refuses("twin", "remote_sql", reach(ANOTHER, server.address(host)), because_of="support")
        others = {"sessions_table": "other_agent_sessions", "messages_table": "other_agent_messages"}
        assert shared(connected("others", "remote_sql", {"url_env": ANOTHER}, **others)) == []
        half = {**others, "messages_table": "agent_messages"}
        refuses("half", "remote_sql", {"url_env": ANOTHER}, because_of="(support|others)", **half)

    def test_tables_of_the_same_name_in_another_database_are_another_place(
        self, db: None, second_database: URL, schema_elsewhere: URL, own_schema: URL
    ) -> None:
        here = AgnoAgent(InOwnPostgres())
        detach_store(here.store)
        SessionStore.objects.filter(pk=here.store.pk).update(name="here")
        elsewhere = AgnoAgent(InPostgres(schema_elsewhere))
        attach_store(SessionStore.objects.get(name="here"))
        assert shared(elsewhere.store) == []
        for agent in (here, elsewhere):
            agent.close()

    @pytest.mark.release
    def test_a_mariadb_is_one_place_by_each_of_its_users_and_paths(
        self, db: None, mariadb: MariaDb, tmp_path: Path, reach: Reach
    ) -> None:
        agent = MariaDbAgent(mariadb)
        linked = tmp_path / "socket"
        linked.symlink_to(mariadb.socket)
        url = mariadb.url(driver="mariadb+aiomysql", database="agents").set(query={"unix_socket": str(linked)})
        refuses("twin", "remote_sql", reach(ANOTHER, url.render_as_string()), because_of="elsewhere")
        with_schema = {"sessions_table": "agents.agent_sessions", "messages_table": "agents.agent_messages"}
        refuses("twin", "remote_sql", {"url_env": ANOTHER}, because_of="elsewhere", **with_schema)
        agent.close()

    def test_a_redis_is_one_place_by_each_of_its_addresses(
        self, db: None, redis_server: RedisServer, reach: Reach
    ) -> None:
        port = redis_server.port
        connected("cache", "redis", reach(ONE, f"redis://127.0.0.1:{port}/0"))
        for address in (f"redis://localhost:{port}", f"unix://{redis_server.socket}?db=0", redis_server.address):
            refuses("twin", "redis", reach(ANOTHER, address), because_of="cache")
        assert shared(connected("beside", "redis", {"url_env": ANOTHER, "key_prefix": "beside"})) == []
        assert shared(connected("one", "redis", reach(ANOTHER, f"redis://localhost:{port}/1"))) == []

    def test_a_mongodb_is_one_place_by_each_of_its_hosts(self, db: None, reach: Reach) -> None:
        with running(MongoStandIn()) as server:
            port = server.port
            connected("documents", "mongodb", reach(ONE, f"mongodb://127.0.0.1:{port}"))
            for address in (f"mongodb://localhost:{port}/", f"mongodb://127.0.0.1:{port}/?appName=agents"):
                refuses("twin", "mongodb", reach(ANOTHER, address), because_of="documents")
            half = {"url_env": ANOTHER, "sessions_collection": "others"}
            refuses("half", "mongodb", half, because_of="documents")
            assert shared(connected("beside", "mongodb", {"url_env": ANOTHER, "database": "beside"})) == []

    def test_a_state_store_is_one_place_by_each_name_of_its_sidecar(self, db: None, reach: Reach) -> None:
        with running(Sidecar()) as sidecar:
            port = sidecar.address.rpartition(":")[2]
            component = {"state_store": STATE_STORE}
            connected("cluster", "dapr", reach(ONE, f"127.0.0.1:{port}", **component))
            for address in (f"localhost:{port}", f"http://127.0.0.1:{port}"):
                refuses("twin", "dapr", reach(ANOTHER, address, **component), because_of="cluster")

    def test_conversations_are_one_place_by_each_name_of_a_key(
        self, db: None, reach: Reach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with running(ConversationsServer()) as server:
            monkeypatch.setenv("ONE_KEY", KEY)
            monkeypatch.setenv("SAME_KEY", KEY)
            connected("helpdesk", "openai_conversations", reach(ONE, server.address, key_env="ONE_KEY"))
            twin = reach(ANOTHER, f"{server.address}/", key_env="SAME_KEY")
            refuses("twin", "openai_conversations", twin, because_of="helpdesk")

    def test_names_and_addresses_of_this_machine_are_one_host(self) -> None:
        ours = {endpoint(host, 27017) for host in ("localhost", "127.0.0.1", "::1")}
        assert ours == {f"{THIS_MACHINE} 27017"}
        assert endpoint("nowhere.invalid", 27017) not in ours
        assert endpoint("192.0.2.1", 27017) == "192.0.2.1 27017"


@contextmanager
def running(server: S) -> Iterator[S]:
    try:
        yield server
    finally:
        server.end()


class TestHealth:
    """A place can become that of another store after both were attached."""

    @pytest.fixture
    def two(self, db: None, redis_server: RedisServer, reach: Reach) -> list[SessionStore]:
        """The second was in another database of the server; since then somebody has changed its variable."""
        first = connected("cache", "redis", reach(ONE, redis_server.address))
        second = connected("late", "redis", reach(ANOTHER, f"redis://localhost:{redis_server.port}/1"))
        assert shared(first) == shared(second) == []
        reach(ANOTHER, f"redis://localhost:{redis_server.port}/0")
        return [first, second]

    def test_it_is_told_of_both_by_checks_and_pages(self, two: list[SessionStore], administrator: Client) -> None:
        said = StringIO()
        call_command("check_stores", "--json", stdout=said)
        check_stores()
        told = {each["name"]: each for each in json.loads(said.getvalue())["stores"]}
        for store, other in zip(two, reversed(two), strict=True):
            sentence = f"The store {other} uses the same location: each session is listed twice"
            assert [sentence in each for each in told[store.name]["problems"]] == [True]
            assert told[store.name]["state"] == "degraded"
            assert sentence in administrator.get(reverse("sessions:store", args=[store.name])).text
        assert administrator.get(reverse("sessions:stores")).text.count("uses the same location") == 2

    def test_it_is_over_when_one_is_detached(self, two: list[SessionStore]) -> None:
        detach_store(two[1])
        assert shared(two[0]) == []

    def test_each_store_is_asked_once_for_a_check_and_by_no_page(
        self, two: list[SessionStore], administrator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []
        places = RedisBackend.places

        def noted(backend: RedisBackend) -> frozenset[Place]:
            asked.append(str(backend.store))
            return places(backend)

        monkeypatch.setattr(RedisBackend, "places", noted)
        check_stores()
        assert sorted(asked) == ["cache", "late"]
        for page in (reverse("sessions:stores"), reverse("sessions:store", args=["cache"])):
            assert administrator.get(page).status_code == 200
        assert len(asked) == 2

    def test_one_that_is_away_is_in_nobodys_place_and_breaks_nothing(
        self, two: list[SessionStore], reach: Reach
    ) -> None:
        reach(ANOTHER, "redis://127.0.0.1:1/0")
        assert shared(two[0]) == []
        assert registry.health(two[0]).state == "ok"
        assert registry.health(two[1]).state == "down"

    def test_settings_alone_would_not_tell(self, two: list[SessionStore], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(duplicate_locations, "are_one", lambda some, others: False)
        assert shared(two[0]) == []


class TestPeople:
    def test_the_page_gives_the_form_back_and_records_nothing(
        self, administrator: Client, file: Path, reach: Reach
    ) -> None:
        connected("files", "sqlite", {"path": str(file)})
        declared = AuditEvent.objects.filter(type="store.declared").count()
        tables = {"sessions_table": "agent_sessions", "messages_table": "agent_messages", "timezone": "UTC"}
        typed = {"name": "twin", **reach(ONE, f"sqlite:///{file}"), **tables}
        page = administrator.post(reverse("sessions:connect-kind", args=["remote_sql"]), typed)
        assert page.status_code == 422
        assert "The store files already uses this location" in page.text
        assert 'value="twin"' in page.text
        assert AuditEvent.objects.filter(type="store.declared").count() == declared

    @pytest.mark.django_db(transaction=True)
    def test_of_two_people_at_once_not_both_get_the_place(
        self, file: Path, reach: Reach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both have looked before the other had a row, and look again before they attach."""
        options, plan = reach(ONE, f"sqlite:///{file}"), registry.plan_attachment
        both_planned = threading.Barrier(2, timeout=30)

        def together(store: SessionStore) -> Sequence[registry.AttachStep]:
            steps = plan(store)
            both_planned.wait()
            return steps

        monkeypatch.setattr(registry, "plan_attachment", together)
        with somebody_else() as start:
            second = start(lambda: connected("second", "remote_sql", options))
            with suppress(registry.AttachRefused):
                connected("first", "sqlite", {"path": str(file)})
            refused = isinstance(second.exception(), registry.AttachRefused)
        assert refused or not SessionStore.objects.filter(name="first").exists()
        assert SessionStore.objects.exclude(attached_at=None).count() <= 1

    def test_a_store_that_gave_its_place_up_keeps_what_is_on_record(self, db: None, file: Path, reach: Reach) -> None:
        before = connected("before", "sqlite", {"path": str(file)})
        detach_store(before)
        connected("after", "remote_sql", reach(ONE, f"sqlite:///{file}"))
        assert SessionRecord.objects.filter(store=before).exists()
        with pytest.raises(registry.AttachRefused, match="The store after already uses this location"):
            attach_store(before)
