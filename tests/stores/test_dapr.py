"""Sessions of the SDK's DaprSession, on a server that stands in for a Dapr sidecar, through the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import grpc
import pytest
from agents.extensions.memory import DaprSession
from dapr.aio.clients import DaprClient
from dapr.conf import settings as dapr_settings
from django.test import Client
from django.urls import reverse

from sessions_app import registry
from sessions_app.models import SessionRecord
from sessions_app.services import registering
from sessions_app.services.attaching import attach_store
from sessions_app.services.discovery import discover
from sessions_app.services.registering import CannotRegister, register_sessions
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import Backend, SessionBusy, StoreUnavailable
from sessions_app.stores.dapr import backend as kind
from sessions_app.stores.dapr import sidecar as asking
from tests.agents import user
from tests.stores.contract import SECRET, SdkAgent, StoreContract, Trouble, contents, said
from tests.stores.dapr_sidecar import STATE_STORE, Sidecar
from tests.stores.sealed_contract import SealedContract

pytestmark = pytest.mark.slow

VARIABLE, TOKEN_VARIABLE = "SUPPORT_DAPR", "SUPPORT_DAPR_TOKEN"


class Loop:
    """The agents' process: one event loop, and one client on it, as the SDK wants to have them."""

    def __init__(self, sidecar: Sidecar) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.client: Any = self.run(self.connect(sidecar.address))

    async def connect(self, address: str) -> Any:
        return DaprClient(address=address)

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def end(self) -> None:
        self.run(self.client.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class DaprAgent(SdkAgent):
    ttl: int | None = None
    id_stays_in = ("gone:messages",)

    def __init__(self, sidecar: Sidecar, process: Loop, environment: pytest.MonkeyPatch) -> None:
        self.sidecar, self.process = sidecar, process
        environment.setenv(VARIABLE, sidecar.address)
        self.store = declare_store("cluster", kind="dapr", options={"url_env": VARIABLE, "state_store": STATE_STORE})
        attach_store(self.store)

    def in_session(self, session_id: str, name: str, *arguments: Any) -> Any:
        session = DaprSession(session_id, state_store_name=STATE_STORE, dapr_client=self.process.client, ttl=self.ttl)
        return self.process.run(getattr(self.worn(session), name)(*arguments))

    def stored(self, session_id: str) -> list[str]:
        kept = self.sidecar.values.get(f"{session_id}:messages")
        return cast(list[str], json.loads(kept.data)) if kept else []

    def leftovers(self, words: str) -> list[str]:
        return self.sidecar.leftovers(words)

    @contextmanager
    def at(self, address: str | None, sentence: str) -> Iterator[str]:
        with pytest.MonkeyPatch.context() as environment:
            if address is None:
                environment.delenv(VARIABLE)
            else:
                environment.setenv(VARIABLE, address)
            yield sentence

    @contextmanager
    def frozen(self) -> Iterator[str]:
        with pytest.MonkeyPatch.context() as impatient, self.sidecar.frozen():
            impatient.setattr(asking, "ANSWER_SECONDS", 0.1)
            yield "did not respond within 0.1 seconds"

    @contextmanager
    def refusing(self, code: grpc.StatusCode, sentence: str) -> Iterator[str]:
        with self.sidecar.refusing(code):
            yield sentence

    @contextmanager
    def wanting_a_token(self) -> Iterator[str]:
        self.sidecar.token = "sesame"
        try:
            yield "refuses requests without a token"
        finally:
            self.sidecar.token = ""

    @contextmanager
    def without_component(self) -> Iterator[str]:
        with self.sidecar.refusing(grpc.StatusCode.INVALID_ARGUMENT, f"state store {STATE_STORE} is not found"):
            yield f"has no state store {STATE_STORE}"

    def troubles(self) -> dict[str, Trouble]:
        code = grpc.StatusCode
        return {
            "nothing there": lambda: self.at("127.0.0.1:1", "cannot be reached"),
            "no TLS there": lambda: self.at(f"{self.sidecar.address}?tls=true", "cannot be reached"),
            "no address": lambda: self.at("ftp://cache", "is not the address of a Dapr sidecar"),
            "not set": lambda: self.at(None, f"variable {VARIABLE}, .* is not set"),
            "wants a token": self.wanting_a_token,
            "no such component": self.without_component,
            "something else answers": lambda: self.refusing(code.UNIMPLEMENTED, "is not a Dapr sidecar"),
            "its state store is away": lambda: self.refusing(code.INTERNAL, r"refuses \(INTERNAL\)"),
            "too large": lambda: self.refusing(code.RESOURCE_EXHAUSTED, "max-body-size"),
            "frozen": self.frozen,
        }


class PassingAgent(DaprAgent):
    """Whose sessions go by themselves."""

    ttl = 3600

    def troubles(self) -> dict[str, Trouble]:
        return {"not set": lambda: self.at(None, f"variable {VARIABLE}, .* is not set")}


@pytest.fixture(scope="module")
def shared_sidecar() -> Iterator[tuple[Sidecar, Loop]]:
    sidecar = Sidecar()
    with pytest.MonkeyPatch.context() as environment:
        environment.setattr(dapr_settings, "DAPR_HTTP_ENDPOINT", sidecar.health_address)
        process = Loop(sidecar)
    yield sidecar, process
    process.end()
    sidecar.end()


@pytest.fixture
def sidecar(shared_sidecar: tuple[Sidecar, Loop]) -> Sidecar:
    shared_sidecar[0].empty()
    return shared_sidecar[0]


@pytest.fixture
def agent(
    db: None, sidecar: Sidecar, shared_sidecar: tuple[Sidecar, Loop], monkeypatch: pytest.MonkeyPatch
) -> DaprAgent:
    return DaprAgent(sidecar, shared_sidecar[1], monkeypatch)


@pytest.fixture
def backend(agent: DaprAgent) -> Backend:
    return backend_for(agent.store)


class ContractOfDapr(StoreContract):
    agent_class: type[DaprAgent] = DaprAgent

    @pytest.fixture
    def agent(
        self, db: None, sidecar: Sidecar, shared_sidecar: tuple[Sidecar, Loop], monkeypatch: pytest.MonkeyPatch
    ) -> DaprAgent:
        return self.agent_class(sidecar, shared_sidecar[1], monkeypatch)


class TestDapr(ContractOfDapr, SealedContract):
    pass


@pytest.mark.release
class TestDaprWithTtl(ContractOfDapr):
    agent_class = PassingAgent


class TestErasing:
    def between_reading_and_writing(self, agent: DaprAgent, sidecar: Sidecar, erase: Any) -> None:
        """The agent has read the session; it is erased; the agent writes."""

        def erase_first(question: str, key: str) -> None:
            if question == "save" and key == "talk:messages":
                sidecar.before = lambda question, key: None
                erase()

        sidecar.before = erase_first
        agent.add("talk", said(1))

    def test_an_agent_that_had_read_the_session_brings_back_only_what_it_adds(
        self, agent: DaprAgent, backend: Any, sidecar: Sidecar
    ) -> None:
        agent.add("talk", user(SECRET))
        # What erase_session does at the sidecar, without the registry of the test's transaction.
        self.between_reading_and_writing(agent, sidecar, lambda: backend._erase_items("talk"))
        assert agent.leftovers(SECRET) == []
        assert agent.read("talk") == [said(1)]

    def test_deleting_alone_lets_it_bring_back_everything(self, agent: DaprAgent, sidecar: Sidecar) -> None:
        agent.add("talk", user(SECRET))
        self.between_reading_and_writing(agent, sidecar, lambda: sidecar.values.pop("talk:messages"))
        assert agent.leftovers(SECRET) == ["talk:messages"]

    def test_the_empty_list_that_stays_goes_when_it_is_erased_again(
        self, agent: DaprAgent, backend: Backend, sidecar: Sidecar
    ) -> None:
        agent.add("talk", user(SECRET))
        backend.erase_session("talk")
        assert agent.leftovers("talk") == ["talk:messages"]
        assert register_sessions(agent.store, ["talk"]).erased == ["talk"]
        assert discover(agent.store).returned == 0
        assert backend.erase_session("talk") == 0
        assert agent.leftovers("talk") == []

    def test_an_emptied_session_is_one_and_an_erased_one_is_not(self, agent: DaprAgent, backend: Backend) -> None:
        agent.add("emptied", said(0))
        agent.pop("emptied")
        assert backend.previews(["emptied"])["emptied"].item_count == 0
        assert backend.erase_session("emptied") == 0
        assert backend.previews(["emptied"])["emptied"].item_count is None
        assert agent.leftovers("emptied") == ["emptied:messages"]

    def test_what_is_no_list_is_shown_and_can_only_be_erased(
        self, agent: DaprAgent, backend: Backend, sidecar: Sidecar
    ) -> None:
        for data in (f'{{"a": "{SECRET}"}}'.encode(), b'["cut off', b"\xff"):
            sidecar.put("odd:messages", data)
            (item,) = backend.first_page("odd", 5).items
            assert item.raw.encode(errors="surrogateescape") == data
            with pytest.raises(StoreUnavailable, match="can only be erased as a whole"):
                backend.replace_item("odd", item.id, "{}", expected=item.raw)
            with pytest.raises(StoreUnavailable, match="can only be erased as a whole"):
                backend.delete_items("odd", [item])
            assert backend.erase_session("odd") == 1
            assert sidecar.values["odd:messages"].data == b"[]"

    def test_entries_that_are_no_texts_are_items(self, agent: DaprAgent, backend: Backend, sidecar: Sidecar) -> None:
        sidecar.put("mixed:messages", b'[{"role": "user", "content": "plain"}, "{}", 7]')
        items = list(backend.every_item("mixed"))
        assert [item.raw for item in items] == ['{"role":"user","content":"plain"}', "{}", "7"]
        assert backend.delete_items("mixed", items[1:2]) == 1
        assert sidecar.values["mixed:messages"].data == b'[{"role":"user","content":"plain"},7]'

    def test_a_state_store_without_etags_is_read_and_nothing_in_it_is_changed(
        self, agent: DaprAgent, backend: Backend, sidecar: Sidecar
    ) -> None:
        agent.add("talk", user(SECRET))
        sidecar.has_etags = False
        (item,) = backend.first_page("talk", 5).items
        for change in (
            lambda: backend.erase_session("talk"),
            lambda: backend.replace_item("talk", item.id, "{}", expected=item.raw),
            lambda: backend.delete_items("talk", [item]),
        ):
            with pytest.raises(StoreUnavailable, match=r"gives no etags.*Nothing was changed"):
                change()
        assert agent.read("talk") == [user(SECRET)]

    def test_an_agent_that_never_rests_makes_us_give_way(
        self, agent: DaprAgent, backend: Backend, sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent.add("talk", said(0))
        (item,) = backend.first_page("talk", 5).items
        monkeypatch.setattr(kind, "PAUSE_SECONDS", 0)

        def write_first(question: str, key: str) -> None:
            if question == "save":
                sidecar.put(key, sidecar.values[key].data)

        sidecar.before = write_first
        with pytest.raises(SessionBusy, match="keeps writing to this session"):
            backend.replace_item("talk", item.id, "{}", expected=item.raw)
        with pytest.raises(SessionBusy):
            backend.erase_session("talk")
        assert not SessionRecord.objects.exclude(erased_at=None)
        assert agent.read("talk") == [said(0)]

    def test_a_session_that_was_to_expire_still_does_after_a_change(
        self, agent: DaprAgent, backend: Backend, sidecar: Sidecar
    ) -> None:
        agent.ttl = 3600
        agent.add("passes", user(SECRET))
        due = sidecar.values["passes:messages"].expires_at
        (item,) = backend.first_page("passes", 5).items
        backend.replace_item("passes", item.id, "{}", expected=item.raw)
        kept = sidecar.values["passes:messages"].expires_at
        assert due
        assert kept
        assert abs(kept - due) < timedelta(seconds=5)


class TestRegistered:
    def test_a_session_is_registered_with_the_times_that_the_sdk_noted(
        self, agent: DaprAgent, operator: Client
    ) -> None:
        agent.ttl = 3600
        agent.add("customer 7", user("Where is my parcel?"))
        assert register_sessions(agent.store, ["customer 7"]).new == 1
        record = SessionRecord.objects.get(session_id="customer 7")
        assert abs(record.last_activity_at - datetime.now(UTC)) < timedelta(minutes=1)
        assert record.last_activity_at.microsecond == 0
        assert record.expires_at
        page = operator.get(reverse("sessions:list"))
        assert "Where is my parcel?" in page.text
        assert "icons.svg#hexagons" in page.text

    def test_of_ids_with_an_invalid_one_among_them_none_is_registered(
        self, agent: DaprAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(registering, "ASKED_AT_ONCE", 1)
        agent.add("customer 7", user("Where is my parcel?"))
        with pytest.raises(CannotRegister, match="is not a valid session ID"):
            register_sessions(agent.store, ["customer 7", "x" * 5_000])
        assert not SessionRecord.objects.exists()

    def test_one_whose_note_is_lost_or_nonsense_is_found_by_its_items(self, agent: DaprAgent, sidecar: Sidecar) -> None:
        for number, note in enumerate((None, b"nonsense", b"[]", b'{"updated_at": "soon"}', b'{"updated_at": "1e99"}')):
            agent.add(f"talk {number}", said(0))
            del sidecar.values[f"talk {number}:metadata"]
            if note is not None:
                sidecar.put(f"talk {number}:metadata", note)
        told = register_sessions(agent.store, [f"talk {number}" for number in range(5)])
        assert (told.new, told.not_there) == (5, [])

    def test_many_sessions_are_asked_for_in_few_questions(
        self, agent: DaprAgent, backend: Backend, sidecar: Sidecar
    ) -> None:
        names = [f"talk {number}" for number in range(50)]
        for name in names:
            agent.add(name, user(f"in {name}"))
        questions: list[str] = []
        sidecar.before = lambda question, key: questions.append(question)
        assert {preview.first_user_text for preview in backend.previews(names).values()} == {f"in {n}" for n in names}
        assert len(questions) == 3


class TestOperators:
    def test_a_token_that_the_sidecar_wants_is_given(
        self, db: None, sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(VARIABLE, sidecar.address)
        monkeypatch.setenv(TOKEN_VARIABLE, "sesame")
        options = {"url_env": VARIABLE, "state_store": STATE_STORE, "token_env": TOKEN_VARIABLE}
        store = declare_store("cluster", kind="dapr", options=options)
        sidecar.token = "sesame"
        assert registry.health(store).state != "down"
        sidecar.token = "another"
        assert f"refuses the token in {TOKEN_VARIABLE}" in registry.health(store).problems[0].sentence

    def test_no_secret_and_no_stored_text_is_in_a_sentence(self, agent: DaprAgent) -> None:
        for name, trouble in agent.troubles().items():
            with trouble():
                told = " ".join(problem.sentence for problem in registry.health(agent.store).problems)
                assert not re.search(r"sesame|4711|127\.0\.0\.1|cache", told), name

    def test_what_goes_on_after_a_sidecar_that_was_away(self, agent: DaprAgent, backend: Backend) -> None:
        agent.add("talk", said(0))
        with agent.at("127.0.0.1:1", ""), pytest.raises(StoreUnavailable):
            backend.count("talk")
        assert contents(backend.first_page("talk", 5).items) == ["item 0"]

    def test_without_the_package_it_says_how_to_get_it(self, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
        options = {"url_env": VARIABLE, "state_store": STATE_STORE}
        store = declare_store("cluster", kind="dapr", options=options)
        monkeypatch.setenv(VARIABLE, "127.0.0.1:1")
        monkeypatch.setitem(sys.modules, "dapr.proto", None)
        (problem, _) = registry.health(store).problems
        assert "pip install memadmin[dapr]" in problem.sentence

    def test_the_page_of_the_store_says_what_it_was_tried_on(self, agent: DaprAgent, administrator: Client) -> None:
        page = administrator.get(reverse("sessions:store", args=["cluster"])).text
        assert "on a simulated sidecar" in page
        assert "agents or operators have to register them" in page
