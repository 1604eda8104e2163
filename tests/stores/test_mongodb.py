"""Sessions of the SDK's MongoDBSession, on a simulated server, through its real drivers."""

from __future__ import annotations

import re
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, ClassVar, cast

import pymongo
import pytest
from agents.extensions.memory import MongoDBSession
from bson import ObjectId
from django.test import Client
from django.urls import reverse
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from memadmin.retention.models import UnfinishedExpiry
from sessions_app import registry
from sessions_app.models import SessionRecord
from sessions_app.services.attaching import attach_store
from sessions_app.services.discovery import discover, discover_changes
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import Backend, ItemChanged, StoreUnavailable
from sessions_app.stores.mongodb import server as asking
from tests.agents import user
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import in_force, swept
from tests.stores.contract import (
    CALL,
    OUTPUT,
    SECRET,
    SdkAgent,
    StoreContract,
    Trouble,
    contents,
    enumerated,
    in_agent,
    said,
    variable_unset,
)
from tests.stores.mongo_stand_in import MongoStandIn
from tests.stores.sealed_contract import SealedContract

pytestmark = pytest.mark.slow

VARIABLE = "SUPPORT_MONGO_URL"


_clients: dict[str, AsyncMongoClient[Any]] = {}
"""Of agents, by address: to find out about a server takes longer than most questions."""


async def client_of(address: str) -> AsyncMongoClient[Any]:
    if address not in _clients:
        _clients[address] = AsyncMongoClient(address)
    return _clients[address]


async def close_clients() -> None:
    while _clients:
        await _clients.popitem()[1].close()


class MongoAgent(SdkAgent):
    """Keeps its client, as an agent's process does."""

    names: ClassVar[dict[str, str]] = {}

    def __init__(self, server: MongoStandIn, environment: pytest.MonkeyPatch) -> None:
        self.server = server
        environment.setenv(VARIABLE, server.address)
        self.store = declare_store("documents", kind="mongodb", options={"url_env": VARIABLE, **self.names})
        attach_store(self.store)

    def in_session(self, session_id: str, name: str, *arguments: Any) -> Any:
        async def call() -> Any:
            client = await client_of(self.server.address)
            session = MongoDBSession(session_id, client=client, **cast(Any, self.names))
            return await getattr(self.worn(session), name)(*arguments)

        return in_agent(call())

    @property
    def batches(self) -> list[dict[str, Any]]:
        name = f"{self.names.get('database', 'agents')}.{self.names.get('messages_collection', 'agent_messages')}"
        return self.server.collections.setdefault(name, [])

    @property
    def rows(self) -> list[dict[str, Any]]:
        name = f"{self.names.get('database', 'agents')}.{self.names.get('sessions_collection', 'agent_sessions')}"
        return self.server.collections.setdefault(name, [])

    def row(self, session_id: str) -> dict[str, Any]:
        return next(row for row in self.rows if row["session_id"] == session_id)

    def stored(self, session_id: str) -> list[str]:
        generation = self.row(session_id)["_generation"]
        batches = [
            each for each in self.batches if (each["session_id"], each["generation"]) == (session_id, generation)
        ]
        return [text for batch in sorted(batches, key=lambda batch: batch["seq"]) for text in batch["message_data"]]

    def leftovers(self, words: str) -> list[str]:
        return self.server.leftovers(words)

    @contextmanager
    def text_reads(self) -> Iterator[list[str] | None]:
        """By the server's answers."""
        reads: list[str] = []
        reply = type(self.server).answer

        def noted(server: MongoStandIn, command: dict[str, Any]) -> dict[str, Any]:
            answer = reply(server, command)
            if "message_data" in str(answer):
                reads.append(next(iter(command)))
            return answer

        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(type(self.server), "answer", noted)
            yield reads

    def age(self, session_id: str, by: timedelta) -> None:
        for batch in self.batches:
            if batch["session_id"] == session_id:
                seconds = int(batch["_id"].generation_time.timestamp() - by.total_seconds())
                batch["_id"] = ObjectId(struct.pack(">I", seconds) + batch["_id"].binary[4:])

    @contextmanager
    def at(self, address: str, sentence: str, *, seconds: float = 0.5) -> Iterator[str]:
        """As if that were the server's address; `seconds` for one that lets others wait."""
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv(VARIABLE, address)
            environment.setattr(asking, "ANSWER_SECONDS", seconds)
            # For half a second the driver would wait in any case, before it asks a server again how it is.
            environment.setattr(pymongo.common, "MIN_HEARTBEAT_INTERVAL", 0.01)
            yield sentence

    @contextmanager
    def unreachable(self, address: str, sentence: str, *, seconds: float = 0.1) -> Iterator[str]:
        """As if that were the server's address, after the driver has found out that none can be reached there."""
        with self.at(address, sentence, seconds=seconds):
            client = asking.client_for(address, VARIABLE)
            while not any(server.error for server in client.topology_description.server_descriptions().values()):
                with suppress(PyMongoError):
                    client.admin.command("ping")
            yield sentence

    @contextmanager
    def frozen(self) -> Iterator[str]:
        sentence = "did not respond within 0.1 seconds"
        with self.at(self.server.address, sentence, seconds=0.1), self.server.frozen():
            yield sentence

    @contextmanager
    def refusing(self, code: int, sentence: str) -> Iterator[str]:
        with self.server.refusing(code):
            yield sentence

    def troubles(self) -> dict[str, Trouble]:
        port = self.server.port
        return {
            "nothing there": lambda: self.unreachable(
                "mongodb://127.0.0.1:1/", "cannot be reached: connection refused"
            ),
            "wrong password": lambda: self.at(
                f"mongodb://a:sesame@127.0.0.1:{port}/", "refuses the user or the password", seconds=5
            ),
            "no address": lambda: self.at("redis://cache:6379/0", f"{VARIABLE} is not the address"),
            "odd setting": lambda: self.at(f"mongodb://127.0.0.1:{port}/?colour=red", "is not the address"),
            "not set": lambda: variable_unset(VARIABLE),
            "wants a password": lambda: self.refusing(13, "or requires a user: it needs the role readWrite"),
            "something else": lambda: self.refusing(96, r"refuses \(error 96\)"),
            "frozen": self.frozen,
        }


class ElsewhereAgent(MongoAgent):
    names: ClassVar = {"database": "desk", "sessions_collection": "s.talks", "messages_collection": "s.items"}

    def troubles(self) -> dict[str, Trouble]:
        return {"not set": lambda: variable_unset(VARIABLE)}


@pytest.fixture(scope="module")
def shared_server() -> Iterator[MongoStandIn]:
    server = MongoStandIn()
    yield server
    in_agent(close_clients())
    server.end()


@pytest.fixture
def server(shared_server: MongoStandIn) -> MongoStandIn:
    shared_server.empty()
    return shared_server


@pytest.fixture
def agent(db: None, server: MongoStandIn, monkeypatch: pytest.MonkeyPatch) -> MongoAgent:
    return MongoAgent(server, monkeypatch)


@pytest.fixture
def backend(agent: MongoAgent) -> Backend:
    return backend_for(agent.store)


class ContractOfMongoDB(StoreContract):
    agent_class: type[MongoAgent] = MongoAgent

    @pytest.fixture
    def agent(self, db: None, server: MongoStandIn, monkeypatch: pytest.MonkeyPatch) -> MongoAgent:
        return self.agent_class(server, monkeypatch)


class TestMongoDB(ContractOfMongoDB, SealedContract):
    pass


@pytest.mark.release
class TestMongoDBElsewhere(ContractOfMongoDB):
    agent_class = ElsewhereAgent


class TestGenerations:
    def test_what_clear_session_left_behind_is_told_and_erased(
        self, agent: MongoAgent, backend: Backend, server: MongoStandIn
    ) -> None:
        agent.add("talk", user(SECRET), said(1))
        with server.refusing(13, "delete"):
            agent.forget("talk")  # which swallows that nothing was deleted
        assert agent.read("talk") == []
        agent.add("talk", said(2))
        assert contents(backend.first_page("talk", 5).items) == ["item 2"]
        (problem,) = [each for each in registry.health(agent.store).problems if each.code == "left-behind"]
        assert problem.sentence.startswith("2 items of histories that agents cleared")
        assert backend.erase_session("talk") == 3
        assert agent.leftovers(SECRET) == []
        assert not registry.health(agent.store).problems

    def test_items_that_lost_their_session_are_one(self, agent: MongoAgent, backend: Backend) -> None:
        agent.add("before", said(0))
        agent.add("orphan", said(0))
        agent.forget("orphan")
        agent.add("orphan", user(SECRET))
        agent.rows.remove(agent.row("orphan"))
        assert {session.session_id for session in enumerated(backend, limit=1)} == {"before", "orphan"}
        assert contents(backend.first_page("orphan", 5).items) == [SECRET]
        assert backend.previews(["orphan"])["orphan"].item_count == 1
        assert backend.erase_session("orphan") == 1
        assert agent.leftovers("orphan") == []

    def test_a_write_that_began_before_an_erasure_is_found_again(
        self, agent: MongoAgent, backend: Backend, server: MongoStandIn
    ) -> None:
        """The agent has its numbers, the session is erased, and then the items arrive."""
        agent.add("talk", said(0))
        discover(agent.store)

        def erase_first(name: str, command: dict[str, Any]) -> None:
            if name == "insert":
                server.before = lambda name, command: None
                erasing = threading.Thread(target=lambda: erase(backend))
                erasing.start()
                erasing.join()

        def erase(backend: Backend) -> None:
            # What an erasure does on the server, without the registry of the test's transaction.
            talks = {"session_id": "talk"}
            backend._sessions.find_one_and_update(talks, {"$inc": {"_generation": 1}})  # type: ignore[attr-defined]
            backend._messages.delete_many(talks)  # type: ignore[attr-defined]
            backend._sessions.delete_one(talks)  # type: ignore[attr-defined]

        server.before = erase_first
        agent.add("talk", user(SECRET))
        assert agent.rows == [], "nothing was erased in between"
        SessionRecord.objects.filter(session_id="talk").update(erased_at=SessionRecord.objects.get().registered_at)
        assert discover(agent.store).returned == 1
        assert backend.erase_session("talk") == 1
        assert agent.leftovers(SECRET) == []

    def test_a_session_that_an_agent_began_anew_meanwhile_stays_whole(
        self, agent: MongoAgent, backend: Backend, server: MongoStandIn
    ) -> None:
        """Between the deletion of the items and that of the session: without its document the new items would be of a
        generation that nobody sees."""
        agent.add("talk", user(SECRET))
        agent.forget("talk")
        agent.add("talk", user(SECRET))

        def write_first(name: str, command: dict[str, Any]) -> None:
            if name == "delete" and command["delete"] == "agent_sessions":
                server.before = lambda name, command: None
                agent.add("talk", said(1))

        server.before = write_first
        backend.erase_session("talk")
        assert agent.read("talk") == [said(1)]
        assert agent.leftovers(SECRET) == []

    def test_what_is_left_of_a_session_that_must_be_kept_is_seen_again(
        self, agent: MongoAgent, backend: Backend
    ) -> None:
        agent.add("talk", said(0), said(1))
        agent.add("talk", said(2))
        assert [backend.delete_some("talk", at_most=1).left for _ in range(2)] == [2, 1]
        assert (agent.read("talk"), backend.first_page("talk", 5).items) == ([], [])
        for _ in range(2):
            backend.show_rest("talk")
            assert agent.read("talk") == [said(0)]
            assert contents(backend.first_page("talk", 5).items) == [said(0)["content"]]
        agent.add("talk", said(3))
        assert agent.read("talk") == [said(0), said(3)]

    def test_a_session_that_was_begun_anew_since_does_not_go_back(self, agent: MongoAgent, backend: Backend) -> None:
        agent.add("talk", said(0), said(1))
        backend.delete_some("talk", at_most=1)
        agent.add("talk", said(2))
        backend.show_rest("talk")
        assert agent.read("talk") == [said(2)]

    def test_a_hold_on_a_session_that_has_expired_in_part_shows_the_rest(
        self, agent: MongoAgent, backend: Backend
    ) -> None:
        agent.add("talk", said(0), said(1))
        discover(agent.store)
        version = in_force("Talks", days=30, store=agent.store.name)
        backend.delete_some("talk", at_most=1)
        record = SessionRecord.objects.get(session_id="talk")
        UnfinishedExpiry.objects.create(record_id=record.pk, version=version)
        make_hold(record, by=person("compliance"))
        run = swept()
        assert run.state == run.State.COMPLETE, (run.reason, run.exceptions)
        assert not UnfinishedExpiry.objects.exists()
        record.refresh_from_db()
        assert record.erased_at is None
        assert agent.plain("talk") == [said(0)]
        assert contents(backend.first_page("talk", 5).items) == [said(0)["content"]]

    def test_items_of_an_older_sdk_are_read_replaced_and_taken_out(self, agent: MongoAgent, backend: Backend) -> None:
        agent.add("old", said(0))
        for sequence, text in ((1, '{"role":"user","content":"one by one"}'), (2, "no JSON")):
            agent.batches.append({"_id": ObjectId(), "session_id": "old", "seq": sequence, "message_data": text})
        items = list(backend.every_item("old"))
        assert [item.raw for item in items][1:] == ['{"role":"user","content":"one by one"}', "no JSON"]
        backend.replace_item("old", items[1].id, "{}", expected=items[1].raw)
        assert agent.batches[1]["message_data"] == "{}"
        assert backend.delete_items("old", items[2:]) == 1
        assert [item.raw for item in backend.every_item("old")][1:] == ["{}"]

    def test_what_is_no_text_is_shown(self, agent: MongoAgent, backend: Backend) -> None:
        agent.add("odd", said(0))
        agent.batches[0]["message_data"] = [7, None, {"role": "user"}]
        agent.batches[0]["_id"] = "by-hand"
        items = list(backend.every_item("odd"))
        assert [item.raw for item in items] == ["7", "null", '{"role": "user"}']
        assert {item.written_at for item in items} == {None}
        assert backend.item("odd", items[2].id) == items[2]
        assert backend.delete_items("odd", items[:1]) == 1


class TestChanging:
    def test_items_of_one_batch_move_up_and_are_still_found(self, agent: MongoAgent, backend: Backend) -> None:
        agent.add("talk", said(0), said(1), said(2), said(3))
        items = list(backend.every_item("talk"))
        assert backend.delete_items("talk", items[:1]) == 1
        assert backend.delete_items("talk", items[1:3]) == 2
        assert agent.read("talk") == [said(3)]

    @pytest.mark.parametrize("is_delete", [True, False])
    def test_what_an_agent_takes_back_meanwhile_is_not_put_there_again(
        self, agent: MongoAgent, backend: Backend, server: MongoStandIn, is_delete: bool
    ) -> None:
        agent.add("talk", user(SECRET), CALL, OUTPUT)
        items = list(backend.every_item("talk"))

        def pop_first(name: str, command: dict[str, Any]) -> None:
            if name in ("update", "delete"):
                server.before = lambda name, command: None
                agent.pop("talk")

        server.before = pop_first
        if is_delete:
            backend.delete_items("talk", items[:1])
            assert agent.read("talk") == [CALL]
        else:
            backend.replace_item("talk", items[0].id, "{}", expected=items[0].raw)
            assert agent.read("talk") == [{}, CALL]

    def test_a_batch_that_never_rests_makes_us_give_way(
        self, agent: MongoAgent, backend: Backend, server: MongoStandIn
    ) -> None:
        agent.add("talk", *(said(number) for number in range(20)))
        items = list(backend.every_item("talk"))

        def change_first(name: str, command: dict[str, Any]) -> None:
            if name == "update":
                agent.batches[0]["message_data"].pop()

        server.before = change_first
        with pytest.raises(ItemChanged):
            backend.replace_item("talk", items[0].id, "{}", expected=items[0].raw)
        assert agent.read("talk")[0] == said(0)

    def test_a_secondary_is_read_and_not_written(
        self, agent: MongoAgent, backend: Backend, server: MongoStandIn
    ) -> None:
        agent.add("talk", said(0))
        server.is_primary = False
        assert "read-only" in {problem.code for problem in registry.health(agent.store).problems}
        assert backend.count("talk") == 1
        with pytest.raises(StoreUnavailable, match=r"is not the primary.*Nothing was changed"):
            backend.erase_session("talk")
        server.is_primary = True
        assert agent.read("talk") == [said(0)]


class TestOperators:
    def test_a_server_that_cannot_be_reached(self, agent: MongoAgent) -> None:
        for address, sentence, seconds in (
            ("mongodb://nowhere.invalid/", "cannot be reached: its host name is unknown", 0.1),
            # The handshake has to be refused within these.
            (f"mongodb://127.0.0.1:{agent.server.port}/?tls=true", "cannot be reached: TLS failed", 1.0),
        ):
            with agent.unreachable(address, sentence, seconds=seconds):
                (problem,) = registry.health(agent.store).problems
            assert re.search(sentence, problem.sentence)

    def test_the_look_through_is_left_out_where_nothing_changed(self, agent: MongoAgent, server: MongoStandIn) -> None:
        agent.add("talk", said(0))
        discover_changes(agent.store)
        server.commands.clear()
        discover_changes(agent.store)
        assert "aggregate" not in server.commands
        agent.add("talk", said(1))
        discover_changes(agent.store)
        assert "aggregate" in server.commands

    def test_a_page_reads_no_more_than_it_shows(
        self, agent: MongoAgent, backend: Backend, server: MongoStandIn
    ) -> None:
        for number in range(150):
            agent.batches.append(
                {"_id": ObjectId(), "session_id": "long", "seq": number, "generation": 0, "message_data": ["{}"]}
            )
        page = backend.first_page("long", 10)
        server.commands.clear()
        assert len(backend.page_after("long", page.items[-1].position, 10).items) == 10
        assert "getMore" not in server.commands

    def test_messages_without_an_index_are_told(self, agent: MongoAgent, server: MongoStandIn) -> None:
        agent.add("talk", said(0))
        server.indexes.clear()
        assert "no-index" in {problem.code for problem in registry.health(agent.store).problems}

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"url_env": "mongodb://a:secret@b"}, "name of an environment variable"),
            ({"url_env": VARIABLE, "database": "a b"}, "not the name of a database"),
            ({"url_env": VARIABLE, "messages_collection": "system.users"}, "not the name of a collection"),
            ({"url_env": VARIABLE, "sessions_collection": "a$b"}, "not the name of a collection"),
        ],
    )
    def test_settings_that_make_no_sense_are_refused(self, db: None, options: dict[str, str], sentence: str) -> None:
        with pytest.raises(registry.AttachRefused, match=sentence):
            declare_store("documents", kind="mongodb", options=options)

    def test_no_secret_and_no_stored_text_is_in_a_sentence(self, agent: MongoAgent) -> None:
        for name, trouble in agent.troubles().items():
            with trouble():
                told = " ".join(problem.sentence for problem in registry.health(agent.store).problems)
                assert not re.search(r"sesame|4711|127\.0\.0\.1|nowhere", told), name

    def test_without_the_package_it_says_how_to_get_it(self, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
        store = declare_store("documents", kind="mongodb", options={"url_env": VARIABLE})
        monkeypatch.setenv(VARIABLE, "mongodb://127.0.0.1:1/")
        monkeypatch.setitem(sys.modules, "pymongo.errors", None)
        (problem, _) = registry.health(store).problems
        assert "pip install memadmin[mongodb]" in problem.sentence

    def test_the_page_of_the_store_says_what_it_was_tried_on(self, agent: MongoAgent, administrator: Client) -> None:
        page = administrator.get(reverse("sessions:store", args=["documents"])).text
        assert "on a simulated server" in page
        assert "icons.svg#brand-mongodb" in page
        assert "agent_messages" in page
