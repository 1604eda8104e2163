"""Conversations of the SDK's OpenAIConversationsSession, on a stand-in for the API that answers the real client."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any, cast

import openai
import pytest
from agents import OpenAIConversationsSession
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from sessions_app import registry
from sessions_app.models import SessionRecord
from sessions_app.services.attaching import attach_store
from sessions_app.services.discovery import discover
from sessions_app.services.registering import register_sessions
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import Backend, StoreTooSlow, StoreUnavailable
from sessions_app.stores.openai_conversations import api as asking
from sessions_app.stores.openai_conversations import backend as kind
from tests.agents import assistant, user
from tests.stores.contract import (
    CALL,
    OUTPUT,
    SECRET,
    Item,
    SdkAgent,
    StoreContract,
    contents,
    in_agent,
    said,
    variable_unset,
    variable_with,
)
from tests.stores.contract import Trouble as Broken
from tests.stores.conversations_api import KEY, ConversationsServer, Trouble

pytestmark = pytest.mark.slow

KEY_VARIABLE, ADDRESS_VARIABLE = "HELPDESK_OPENAI_KEY", "HELPDESK_OPENAI_URL"


class ConversationsAgent(SdkAgent):
    """The SDK's class with a client of its own for each call, on conversations whose ids the test chooses."""

    told_of_erasure = (openai.NotFoundError,)
    out_of_reach = ("unreachable items",)

    def __init__(self, server: ConversationsServer, environment: pytest.MonkeyPatch) -> None:
        self.server = server
        environment.setenv(KEY_VARIABLE, KEY)
        environment.setenv(ADDRESS_VARIABLE, server.address)
        self.store = declare_store(
            "helpdesk",
            kind="openai_conversations",
            options={"key_env": KEY_VARIABLE, "url_env": ADDRESS_VARIABLE},
        )
        attach_store(self.store)

    def in_session(self, session_id: str | None, name: str, *arguments: Any) -> Any:
        async def call() -> Any:
            # Without TLS, for which the certificates of the machine would be read each time.
            plain = openai.DefaultAsyncHttpxClient(verify=False)
            async with openai.AsyncOpenAI(api_key=KEY, base_url=self.server.address, http_client=plain) as client:
                session = OpenAIConversationsSession(conversation_id=session_id, openai_client=client)
                answer = await getattr(session, name)(*arguments)
                return answer if session_id else session.session_id

        return in_agent(call())

    def add(self, session_id: str, *items: Item) -> None:
        self.server.keep(session_id)
        self.in_session(session_id, "add_items", list(items))

    def go_on(self, session_id: str, *items: Item) -> None:
        """A conversation that was deleted does not begin anew under its id."""
        self.in_session(session_id, "add_items", list(items))

    def begin(self, *items: Item) -> str:
        """A conversation as the SDK begins one; returns the id that the API gave it."""
        return cast(str, self.in_session(None, "add_items", list(items)))

    def read(self, session_id: str) -> list[Item]:
        try:
            return cast(list[Item], self.in_session(session_id, "get_items"))
        except openai.NotFoundError:
            return []

    def as_added(self, item: Item) -> Item:
        plain = {name: value for name, value in item.items() if name not in ("id", "status")}
        if plain.pop("type") == "message":
            (part,) = item["content"]
            return {**plain, "content": part["text"]}
        return {"type": item["type"], **plain}

    def stored(self, session_id: str) -> list[str]:
        return [json.dumps(item, separators=(",", ":")) for item in self.server.conversations.get(session_id, [])]

    def leftovers(self, words: str) -> list[str]:
        return self.server.leftovers(words)

    @contextmanager
    def meeting(self, trouble: Trouble, sentence: str) -> Iterator[str]:
        with self.server.troubled(trouble):
            yield sentence

    @contextmanager
    def frozen(self) -> Iterator[str]:
        with pytest.MonkeyPatch.context() as impatient, self.server.frozen():
            impatient.setattr(asking, "ANSWER_SECONDS", 0.1)
            yield "did not respond within 0.1 seconds"

    def troubles(self) -> dict[str, Broken]:
        root = self.server.address.removesuffix("/v1")
        said = json.dumps({"error": {"message": "no", "type": "server_error"}})
        used_up = json.dumps({"error": {"message": "no", "code": "insufficient_quota"}})
        refused = f"refuses the key in {KEY_VARIABLE}"
        return {
            "nothing there": lambda: variable_with(
                ADDRESS_VARIABLE, "http://127.0.0.1:1/v1", "cannot be reached: .*refused"
            ),
            "no TLS there": lambda: variable_with(
                ADDRESS_VARIABLE, f"https://{root.removeprefix('http://')}/v1", "cannot be reached: TLS failed"
            ),
            "without its /v1": lambda: variable_with(ADDRESS_VARIABLE, root, "is not the Conversations API"),
            "no address": lambda: variable_with(ADDRESS_VARIABLE, "api.openai.com", "is not the address"),
            "no address set": lambda: variable_unset(ADDRESS_VARIABLE),
            "no key set": lambda: variable_unset(KEY_VARIABLE),
            "another key": lambda: variable_with(KEY_VARIABLE, "sk-another", refused),
            "no key at all": lambda: variable_with(KEY_VARIABLE, "sk ü", "is not a key"),
            "another web server": lambda: self.meeting(Trouble(404, "<p>Not here"), "is not the Conversations API"),
            "a page": lambda: self.meeting(Trouble(200, "<p>Sign in"), "is not the Conversations API"),
            "something else in JSON": lambda: self.meeting(Trouble(200, "[]"), "is not the Conversations API"),
            "a key that may not": lambda: self.meeting(Trouble(403, said), "does not let the key"),
            "rate limit": lambda: self.meeting(Trouble(429, said, {"Retry-After": "90"}), "for the next 90 seconds"),
            "used up": lambda: self.meeting(Trouble(429, used_up), "is used up"),
            "fault": lambda: self.meeting(Trouble(503, said), r"internal error \(503\)"),
            "teapot": lambda: self.meeting(Trouble(418, said), r"refuses \(418\)"),
            "frozen": self.frozen,
        }


@pytest.fixture(scope="module")
def shared_server() -> Iterator[ConversationsServer]:
    server = ConversationsServer()
    yield server
    server.end()


@pytest.fixture
def server(shared_server: ConversationsServer) -> ConversationsServer:
    """One that keeps nothing yet."""
    shared_server.conversations.clear()
    shared_server.unreachable_items.clear()
    shared_server.requests.clear()
    return shared_server


@pytest.fixture
def agent(db: None, server: ConversationsServer, monkeypatch: pytest.MonkeyPatch) -> ConversationsAgent:
    return ConversationsAgent(server, monkeypatch)


@pytest.fixture
def backend(agent: ConversationsAgent) -> Backend:
    return backend_for(agent.store)


class TestOpenAIConversations(StoreContract):
    @pytest.fixture
    def agent(self, db: None, server: ConversationsServer, monkeypatch: pytest.MonkeyPatch) -> ConversationsAgent:
        return ConversationsAgent(server, monkeypatch)


class TestReading:
    def test_a_page_costs_one_request_in_either_direction(
        self, agent: ConversationsAgent, backend: Backend, server: ConversationsServer
    ) -> None:
        agent.add("long", *(said(number) for number in range(250)))
        middle = backend.first_page("long", 100).items[-1].position
        server.requests.clear()
        assert contents(backend.page_after("long", middle, 50).items)[0] == "item 100"
        assert contents(backend.page_before("long", middle, 50).items)[-1] == "item 98"
        assert server.requests["GET"] == 2

    def test_a_page_goes_on_where_it_was_when_items_before_it_went(
        self, agent: ConversationsAgent, backend: Backend
    ) -> None:
        agent.add("long", *(said(number) for number in range(12)))
        items = backend.first_page("long", 12).items
        backend.delete_items("long", items[:4])
        assert contents(backend.page_after("long", items[7].position, 2).items) == ["item 8", "item 9"]
        # Of an item that is gone only the number is left.
        assert contents(backend.page_at("long", items[2].position, 2).items) == ["item 6", "item 7"]

    def test_what_the_package_does_not_know_is_shown(
        self, agent: ConversationsAgent, backend: Backend, server: ConversationsServer
    ) -> None:
        odd = {"id": "odd_1", "type": "not_invented_yet", "inner": {"voice": [1, None]}}
        server.keep("odd")
        server.conversations["odd"].append(odd)
        (item,) = backend.first_page("odd", 5).items
        assert json.loads(item.raw) == odd

    def test_a_long_conversation_says_so_instead_of_letting_a_page_wait(
        self, agent: ConversationsAgent, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent.add("long", *(said(number) for number in range(120)))
        monkeypatch.setattr(kind, "WALK_SECONDS", -1)
        with pytest.raises(StoreTooSlow, match="it is long"):
            backend.last_page("long", 5)
        assert len(backend.first_page("long", 5).items) == 5
        assert len(list(backend.every_item("long"))) == 120


class TestErasing:
    def test_no_item_is_left_where_nobody_can_reach_it(
        self, agent: ConversationsAgent, backend: Backend, server: ConversationsServer
    ) -> None:
        """What deleting the conversation alone does, as the SDK's clear_session does it."""
        agent.add("cleared", user(SECRET))
        agent.forget("cleared")
        assert agent.leftovers(SECRET) == ["unreachable items"]
        server.unreachable_items.clear()

        agent.add("erased", user(SECRET))
        assert backend.erase_session("erased") == 1
        assert agent.leftovers(SECRET) == []

    def test_it_waits_as_long_as_the_api_asks_and_goes_on(
        self, agent: ConversationsAgent, backend: Backend, server: ConversationsServer
    ) -> None:
        agent.add("busy", *(user(f"{SECRET} {number}") for number in range(30)))
        limited = Trouble(429, "{}", {"Retry-After": "0.01"}, times=12, only="DELETE")
        with server.troubled(limited):
            assert backend.erase_session("busy") == 30
        assert limited.times == 0
        assert agent.leftovers(SECRET) == []

    def test_what_was_begun_is_not_called_erased_and_goes_on(
        self, agent: ConversationsAgent, backend: Backend, server: ConversationsServer
    ) -> None:
        agent.add("half", *(user(f"{SECRET} {number}") for number in range(5)))
        register_sessions(agent.store, ["half"])
        limited = Trouble(429, "{}", {"Retry-After": "600"}, only="DELETE")
        with server.troubled(limited), pytest.raises(StoreTooSlow, match="erase it again to continue"):
            backend.erase_session("half")
        assert SessionRecord.objects.get(session_id="half").erased_at is None
        assert backend.erase_session("half") == 5
        assert SessionRecord.objects.get(session_id="half").erased_at

    def test_an_agent_whose_conversation_was_erased_fails_and_brings_nothing_back(
        self, agent: ConversationsAgent, backend: Backend
    ) -> None:
        conversation_id = agent.begin(user(SECRET))
        backend.erase_session(conversation_id)
        with pytest.raises(openai.NotFoundError):
            agent.in_session(conversation_id, "add_items", [user("late")])
        assert backend.previews([conversation_id])[conversation_id].item_count is None

    def test_items_that_are_gone_already_count_as_done(self, agent: ConversationsAgent, backend: Backend) -> None:
        agent.add("talk", said(0), CALL, OUTPUT)
        items = list(backend.every_item("talk"))
        agent.pop("talk")
        assert backend.delete_items("talk", items[1:]) == 1
        assert [agent.as_added(item) for item in agent.read("talk")] == [said(0)]


class TestRegistering:
    """Ids are what nobody can find out: they are named by whoever knows them."""

    def run(self, *arguments: str) -> str:
        told = StringIO()
        call_command("register_sessions", *arguments, stdout=told)
        return told.getvalue()

    def test_conversations_are_registered_by_their_ids_and_read_like_others(
        self, agent: ConversationsAgent, operator: Client, tmp_path: Path
    ) -> None:
        first, second = agent.begin(user("Where is my parcel?"), assistant("On its way.")), agent.begin(said(2))
        ids = tmp_path / "ids.txt"
        ids.write_text(f"{second}\r\n\n{first}\n", encoding="utf-8-sig")
        assert "Registered 2 new sessions of helpdesk; 0 were already registered." in self.run(
            "helpdesk", "--file", str(ids)
        )
        assert "Registered 0 new sessions of helpdesk; 1 were already registered." in self.run("helpdesk", first)
        page = operator.get(reverse("sessions:list"))
        assert "Where is my parcel?" in page.text
        assert "icons.svg#cloud" in page.text
        record = SessionRecord.objects.get(session_id=first)
        assert "On its way." in operator.get(record.get_absolute_url()).text
        assert AuditEvent.objects.filter(type="store.discovered").exists()

    def test_what_the_api_does_not_know_is_named_and_not_registered(self, agent: ConversationsAgent) -> None:
        known = agent.begin(said(0))
        told = StringIO()
        with pytest.raises(SystemExit):
            call_command("register_sessions", "helpdesk", known, "conv_of_nobody", "..", stdout=told)
        assert "Not in helpdesk, and not registered (2):" in told.getvalue()
        assert list(SessionRecord.objects.values_list("session_id", flat=True)) == [known]

    def test_an_administrator_registers_them_on_the_page_of_the_store(
        self, agent: ConversationsAgent, administrator: Client
    ) -> None:
        first, second = agent.begin(said(0)), agent.begin(said(1))
        address = reverse("sessions:store-register", args=["helpdesk"])
        assert "Register sessions" in administrator.get(reverse("sessions:store", args=["helpdesk"])).text
        page = administrator.post(address, {"ids": f"{first}\r\n\r\n{second}\r\n"}, follow=True)
        assert "2 sessions registered, 0 already registered." in page.text

        backend_for(agent.store).erase_session(first)
        left = administrator.post(address, {"ids": f"{first}\n{second}\nconv_of_nobody"})
        assert left.status_code == 422
        assert "IDs not registered: 1 not in this store, 1 erased earlier." in left.text
        assert f"conv_of_nobody\n{first}</textarea>" in left.text
        assert SessionRecord.objects.on_record().get().session_id == second

    @pytest.mark.parametrize(
        ("ids", "sentence"),
        [
            (" \n", "Enter the IDs, one per line."),
            ("", "Enter the IDs, one per line."),
            ("\n".join(map(str, range(501))), "use the command register_sessions"),
            ("x" * 3_000, "is not a valid session ID"),
        ],
    )
    def test_what_is_wrong_with_the_ids_is_said_beside_them(
        self, agent: ConversationsAgent, administrator: Client, ids: str, sentence: str
    ) -> None:
        page = administrator.post(reverse("sessions:store-register", args=["helpdesk"]), {"ids": ids})
        assert page.status_code == 422
        assert sentence in page.text
        assert ids.strip() in page.text

    def test_a_store_that_is_away_says_so_beside_them(self, agent: ConversationsAgent, administrator: Client) -> None:
        with agent.meeting(Trouble(503, "{}"), ""):
            page = administrator.post(reverse("sessions:store-register", args=["helpdesk"]), {"ids": "conv_1"})
        assert page.status_code == 422
        assert "has an internal error (503)" in page.text
        assert "conv_1</textarea>" in page.text

    def test_an_erased_one_stays_erased(self, agent: ConversationsAgent, backend: Backend) -> None:
        conversation_id = agent.begin(said(0))
        register_sessions(agent.store, [conversation_id])
        backend.erase_session(conversation_id)
        told = json.loads(self.run("helpdesk", conversation_id, "--json"))
        assert told == {"new": 0, "known": 0, "erased": [conversation_id], "not_there": []}

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["helpdesk"], "Give the ids"),
            (["nowhere", "x"], "There is no store nowhere"),
            (["main", "x"], "lists its own sessions"),
            (["helpdesk", "\udcff"], "is not a valid session ID"),
            (["helpdesk", "x" * 3_000], "too long"),
            (["helpdesk", "--file", "/nowhere/ids"], "cannot be read: No such file"),
            (["helpdesk", "--file", "{binary}"], "is not UTF-8 text"),
            (["helpdesk", "--file", "{nul}"], "a NUL character in line 2"),
        ],
    )
    def test_what_cannot_be_registered_is_a_sentence(
        self, agent: ConversationsAgent, arguments: list[str], sentence: str, tmp_path: Path
    ) -> None:
        (tmp_path / "binary").write_bytes(b"\xff\xfe\xff")
        (tmp_path / "nul").write_bytes(b"a\nb\0\n")
        files = {"binary": str(tmp_path / "binary"), "nul": str(tmp_path / "nul")}
        with pytest.raises(CommandError, match=sentence):
            self.run(*(argument.format(**files) if "{" in argument else argument for argument in arguments))
        assert not SessionRecord.objects.exists()

    def test_discovery_asks_for_the_registered_ones_in_turn(
        self, agent: ConversationsAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = [f"conv {number}" for number in range(7)]
        for name in names:
            agent.add(name, said(0))
        register_sessions(agent.store, names)
        monkeypatch.setattr("sessions_app.services.discovery.ASKED_AT_ONCE", 2)
        agent.forget("conv 3")
        agent.add("conv 5", said(1))
        rounds = [discover(agent.store) for _ in range(4)]
        assert sum(found.written for found in rounds) == 1
        assert rounds[-1].missing == 1
        assert {found.sessions for found in rounds} == {7}
        assert agent.store.discovery["asked_up_to"] == ""
        assert not any(name in json.dumps(agent.store.discovery) for name in names), "ids can be personal"


class TestOperators:
    def test_a_key_of_another_project_is_told(self, agent: ConversationsAgent, server: ConversationsServer) -> None:
        conversation_id = agent.begin(said(0))
        register_sessions(agent.store, [conversation_id])
        assert registry.health(agent.store).state == "ok"
        theirs = server.conversations.pop(conversation_id)
        (problem,) = registry.health(agent.store).problems
        assert problem.code == "none-there"
        assert "erasing with it deletes nothing" in problem.sentence
        server.conversations[conversation_id] = theirs

    def test_no_key_is_in_any_sentence(self, agent: ConversationsAgent) -> None:
        for name, trouble in agent.troubles().items():
            with trouble():
                told = " ".join(problem.sentence for problem in registry.health(agent.store).problems)
                assert not re.search(r"\bsk[- ]", told), name

    def test_the_address_of_openai_is_taken_where_none_is_given(
        self, db: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = declare_store("talks", kind="openai_conversations", options={"key_env": KEY_VARIABLE})
        monkeypatch.setenv(KEY_VARIABLE, KEY)
        assert kind.ConversationsBackend(store).api.place.address == "https://api.openai.com/v1"

    def test_the_page_of_the_store_says_what_it_cannot_do(
        self, agent: ConversationsAgent, administrator: Client
    ) -> None:
        page = administrator.get(reverse("sessions:store", args=["helpdesk"])).text
        for sentence in ("agents or operators have to register them", "It needs no fence", KEY_VARIABLE):
            assert sentence in page
        assert "an agent that is still running can write to an erased session again" not in page
        assert KEY not in page

    def test_a_store_that_is_away_is_told_by_the_command(self, agent: ConversationsAgent) -> None:
        with agent.meeting(Trouble(503, "{}"), ""), pytest.raises((StoreUnavailable, CommandError)):
            call_command("register_sessions", "helpdesk", "conv_1", stdout=StringIO())
