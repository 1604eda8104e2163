"""What every kind of store has to do, as one class of tests: a kind brings an `Agent` and inherits from it.

    class TestSqlite(StoreContract):
        @pytest.fixture
        def agent(self, transactional_db: None, tmp_path: Path) -> Agent:
            return SqliteAgent(tmp_path)

All that is in the store is written through the SDK's own class, and what should be gone from it is looked for in its
files, keys and tables by the agent's own means, not by ours.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Self, TypeVar, cast

import pytest
from agents.extensions.memory import EncryptedSession
from django.db import connection
from django.db.models import Count, Q

from memadmin.audit.models import AuditEvent
from memadmin.counting import COUNT_CAP
from memadmin.retention.models import RetentionPolicy, SweepResult
from memadmin.retention.targets import records as sweeping
from sessions_app import registry
from sessions_app.audit_events import RedactReason
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.redaction.services import RedactionRequest, redact_in_session
from sessions_app.search_syntax import ParsedSearch
from sessions_app.services.attaching import attach_store
from sessions_app.services.discovery import discover
from sessions_app.services.re_erasure import sweep
from sessions_app.services.registering import CannotRegister, register_sessions
from sessions_app.stores import backend_for
from sessions_app.stores.base import (
    WHOLE_ITEM_BYTES,
    Backend,
    Capability,
    Deleted,
    ItemChanged,
    SessionBusy,
    StoreUnavailable,
    UnknownItem,
    UnsupportedOperation,
)
from sessions_app.stores.kinds import kind_of, limits_of
from sessions_app.stores.search_protocol import SearchOrder
from tests.agents import assistant, user
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import in_force, swept
from tests.runs.working import report_of, work_off

T = TypeVar("T")

SECRET = "Zugspitze-4711"
"""What must not be found any more after it was erased; stored as it is by whatever writes JSON."""

CALL = {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": '{"order": 7}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "sent"}

Item = dict[str, Any]
Trouble = Callable[[], AbstractContextManager[str]]


@contextmanager
def variable_with(name: str, value: str | None, sentence: str) -> Iterator[str]:
    """Another value of an environment variable, or none; yields the sentence that a store then says."""
    with pytest.MonkeyPatch.context() as environment:
        if value is None:
            environment.delenv(name)
        else:
            environment.setenv(name, value)
        yield sentence


def variable_unset(name: str) -> AbstractContextManager[str]:
    return variable_with(name, None, f"variable {name}, .* is not set")


@cache
def agents_loop() -> asyncio.AbstractEventLoop:
    """In a thread, because the test may run inside of an event loop; kept, as that of an agent's process is."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def in_agent(work: Coroutine[Any, Any, T]) -> T:
    """Runs what the SDK offers as async code."""
    return asyncio.run_coroutine_threadsafe(work, agents_loop()).result()


class Agent(ABC):
    """An agent with a store of its own, declared and attached, that nothing else uses."""

    store: SessionStore

    id_stays_in: Sequence[str] = ()
    """Where the id of an erased session stays, because running agents need it there."""

    brings_back = False
    """Whether it writes all of a session anew each time: then it brings back what went after it had read."""

    mixes_turns = False
    """Whether a turn that it adds while the place is changed may come behind the next one."""

    told_of_erasure: tuple[type[Exception], ...] = ()
    """What it may get when it writes to a session that is erased; nothing where it just begins the session anew."""

    out_of_reach: Sequence[str] = ()
    """Where `leftovers` may find what it said at the very moment of an erasure, because nobody can reach it there."""

    @abstractmethod
    def add(self, session_id: str, *items: Item) -> None:
        """One call of `add_items` of the SDK's class."""

    @abstractmethod
    def read(self, session_id: str) -> list[Item]:
        """What `get_items` of the SDK's class gives."""

    def go_on(self, session_id: str, *items: Item) -> None:
        """`add`, of an agent that has added to the session before."""
        self.add(session_id, *items)

    def as_read(self, raw: str) -> Item:
        """What `read` gives for an item that is stored so."""
        return cast(Item, json.loads(raw))

    @abstractmethod
    def pop(self, session_id: str) -> None: ...

    @abstractmethod
    def forget(self, session_id: str) -> None:
        """`clear_session` of the SDK's class."""

    @abstractmethod
    def stored(self, session_id: str) -> list[str]:
        """The texts of the items exactly as they are kept, read without memadmin."""

    @abstractmethod
    def leftovers(self, words: str) -> list[str]:
        """Where the words are still found: files, logs, keys, tables, each by name. Read without memadmin."""

    def age(self, session_id: str, by: timedelta) -> None:
        """Makes all that was written in a session so far look older. Only for a kind that has item times."""
        raise NotImplementedError

    def as_added(self, item: Item) -> Item:
        """An item that `read` gave, as it was when it was added: without what the place itself puts into items."""
        return item

    def plain(self, session_id: str) -> list[Item]:
        """What the agent reads, as it was added."""
        return [self.as_added(item) for item in self.read(session_id)]

    def can_name(self, session_id: str) -> bool:
        """Whether the SDK's class itself can have a session of this name."""
        return True

    @contextmanager
    def text_reads(self) -> Iterator[list[str] | None]:
        """Signs that stored texts were read from the place within a block; None where that cannot be seen."""
        yield None

    def troubles(self) -> dict[str, Trouble]:
        """Ways in which the place can be away or broken, by name: a context in which it is so, and mended afterwards.

        The context gives a pattern that the sentence for the operator has to match.
        """
        return {}


class SdkAgent(Agent):
    """One whose store the SDK has a class for, or is like one, called in an event loop of its own each time."""

    seal_key = ""
    """With which it seals what it says; empty: not at all."""

    @abstractmethod
    def in_session(self, session_id: str, name: str, *arguments: Any) -> Any:
        """What a method of the agent's session gives, which is `worn` around that of the place."""

    def worn(self, session: Any) -> Any:
        """The session as the agent has it: of one that seals in the SDK's wrapper."""
        return EncryptedSession(session.session_id, session, encryption_key=self.seal_key) if self.seal_key else session

    def add(self, session_id: str, *items: Item) -> None:
        self.in_session(session_id, "add_items", list(items))

    def read(self, session_id: str) -> list[Item]:
        return cast(list[Item], self.in_session(session_id, "get_items"))

    def pop(self, session_id: str) -> None:
        self.in_session(session_id, "pop_item")

    def forget(self, session_id: str) -> None:
        self.in_session(session_id, "clear_session")


def said(number: int) -> Item:
    return user(f"item {number}")


class Writer:
    """An agent that goes on talking in one session, a turn after the other, while a block runs.

    Each turn is what a user says, as `words` have it, a call, and its output.
    """

    def __init__(self, agent: Agent, session_id: str, words: str = "item") -> None:
        self.agent, self.session_id, self.words = agent, session_id, words
        self.begun, self.done = 0, 0
        """The number of the turn that was begun last, and of the one that was stored last."""
        self.problem: Exception | None = None
        self._stop, self._news = threading.Event(), threading.Condition()
        self._thread = threading.Thread(target=self._go_on)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._stop.set()
        self._thread.join()

    def turn(self, number: int) -> list[Item]:
        call_id = f"call_{number}"
        return [user(f"{self.words} {number}"), {**CALL, "call_id": call_id}, {**OUTPUT, "call_id": call_id}]

    def turns(self, numbers: Iterable[int]) -> list[Item]:
        return [item for number in numbers for item in self.turn(number)]

    def wait_for_turns(self, count: int) -> None:
        """Until so many more are stored, or the agent cannot go on."""
        with self._news:
            enough = self.done + count
            assert self._news.wait_for(lambda: self.problem or self.done >= enough, timeout=60)

    def _go_on(self) -> None:
        while not self._stop.is_set():
            self.begun += 1
            try:
                add = self.agent.add if self.begun == 1 else self.agent.go_on
                add(self.session_id, *self.turn(self.begun))
            except Exception as problem:
                self.problem = problem
            with self._news:
                self.done += self.problem is None
                self._news.notify_all()
            # As a model that answers at once: without a pause nobody else's change would ever be the last one.
            if self.problem or self._stop.wait(0.01):
                return


def insist(change: Callable[[], T], times: int = 20) -> T:
    """The same again where an agent was given way to, as people do."""
    for _ in range(times - 1):
        with suppress(SessionBusy, ItemChanged):
            return change()
    return change()


def contents(items: Sequence[StoredItem]) -> list[Any]:
    """What was said in them, one text each."""
    told = (json.loads(item.raw).get("content") for item in items)
    return [content[0]["text"] if isinstance(content, list) else content for content in told]


class StoreContract:
    """Inherited by one class per kind. A check that a kind cannot pass is left out by its declared capabilities only.

    A test runs its checks on one store, each in sessions with names of its own: making a store anew for each check
    would take longer than the checks do.
    """

    @pytest.fixture
    def agent(self) -> Agent:
        raise NotImplementedError("a kind brings its own agent")

    @pytest.fixture
    def backend(self, agent: Agent) -> Backend:
        return backend_for(agent.store)

    def needs(self, backend: Backend, *capabilities: Capability) -> bool:
        """Whether the store can do it. Where it cannot, the test checks that it says so instead, and ends."""
        return set(capabilities) <= backend.capabilities

    # --- its kind -----------------------------------------------------------------------------------------------------

    def test_it_is_healthy_and_its_sessions_are_on_record(self, agent: Agent, backend: Backend) -> None:
        kind = kind_of(agent.store)
        assert kind.name == agent.store.kind
        assert kind.label
        assert kind.icon
        assert all(limit.endswith(".") for limit in limits_of(agent.store))

        agent.add("one", said(1))
        assert registry.health(agent.store).state != "down", registry.health(agent.store)
        if self.needs(backend, Capability.ENUMERATE):
            attach_store(agent.store)
            assert SessionRecord.objects.filter(store=agent.store, session_id="one").exists()
            assert "unavailable" not in {problem.code for problem in registry.check(agent.store).problems}

        self.what_the_sdk_reads_is_what_a_page_shows(agent, backend)
        self.times_are_those_of_the_writing_or_none(agent, backend)

    # --- reading ------------------------------------------------------------------------------------------------------

    def test_its_sessions_are_read(self, agent: Agent, backend: Backend) -> None:
        self.a_long_session_is_read_page_by_page_in_both_directions(agent, backend)
        self.a_page_can_begin_at_an_instant(agent, backend)
        self.what_is_not_there_is_empty_or_unknown(agent, backend)
        self.a_whole_session_is_taken_away_byte_for_byte_and_searched(agent, backend)
        self.counts_and_previews_tell_what_is_in_a_session(agent, backend)
        self.a_giant_item_is_read_at_both_ends_on_a_page_and_whole_by_itself(agent, backend)

    def what_the_sdk_reads_is_what_a_page_shows(self, agent: Agent, backend: Backend) -> None:
        agent.add("talk", user("one"), assistant("two"))
        agent.add("talk", user("three"))
        agent.add("talk", user("four é 😀 \x01 \\ud800"), CALL, OUTPUT)
        agent.pop("talk")
        agent.add("talk", OUTPUT, user("five"))
        agent.add("other", user("somebody else"))

        page = backend.first_page("talk", 20)
        assert [agent.as_read(item.raw) for item in page.items] == agent.read("talk")
        assert [item.raw for item in page.items] == agent.stored("talk")
        assert not page.has_earlier
        assert not page.has_later
        assert len({item.id for item in page.items}) == len(page.items)
        for item in page.items:
            assert item.byte_count == len(item.raw.encode(errors="surrogatepass"))
            assert item.is_whole

    def times_are_those_of_the_writing_or_none(self, agent: Agent, backend: Backend) -> None:
        before = datetime.now(UTC).replace(microsecond=0)
        agent.add("timed", user("one"), assistant("two"))
        times = [item.written_at for item in backend.first_page("timed", 20).items]
        if self.needs(backend, Capability.ITEM_TIMES):
            assert len(times) == 2
            for time in times:
                assert time
                assert before <= time <= datetime.now(UTC)
        else:
            assert times == [None, None]

    def a_long_session_is_read_page_by_page_in_both_directions(self, agent: Agent, backend: Backend) -> None:
        agent.add("long", *(said(number) for number in range(10)))
        whole = list(backend.first_page("long", 10).items)
        assert contents(whole) == [f"item {number}" for number in range(10)]

        first = backend.first_page("long", 4)
        assert first.items == whole[:4]
        assert (first.has_earlier, first.has_later) == (False, True)
        second = backend.page_after("long", first.items[-1].position, 4)
        assert second.items == whole[4:8]
        assert (second.has_earlier, second.has_later) == (True, True)
        last = backend.last_page("long", 4)
        assert last.items == whole[6:]
        assert (last.has_earlier, last.has_later) == (True, False)
        assert backend.page_before("long", second.items[0].position, 4) == first
        beyond = backend.page_after("long", whole[-1].position, 4)
        assert (list(beyond.items), beyond.has_earlier, beyond.has_later) == ([], True, False)

        assert backend.page_at("long", whole[3].position, 2).items == whole[3:5]
        around = backend.page_around("long", whole[5].id, 4)
        assert around.items == whole[3:7]
        assert (around.has_earlier, around.has_later) == (True, True)
        assert backend.page_around("long", whole[0].id, 4).items == whole[0:2]

        positions = [item.position for item in whole]
        assert sorted(positions) == positions
        assert len(set(positions)) == 10
        for position in positions:
            assert Position.parse(str(position)) == position

        agent.pop("long")
        assert list(backend.page_at("long", positions[-1], 4).items) == []
        assert backend.page_before("long", positions[-1], 2).items == whole[7:9]
        with pytest.raises(UnknownItem):
            backend.item("long", whole[-1].id)

    def a_page_can_begin_at_an_instant(self, agent: Agent, backend: Backend) -> None:
        agent.add("begun", *(said(number) for number in range(4)))
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        assert contents(backend.page_from("begun", tomorrow, 2).items) == ["item 2", "item 3"]
        assert contents(backend.page_from("begun", datetime(9999, 12, 31, 23, 59, 59, 9, UTC), 1).items) == ["item 3"]
        if self.needs(backend, Capability.ITEM_TIMES):
            agent.age("begun", timedelta(days=2))
            agent.add("begun", said(4), said(5))
            assert contents(backend.page_from("begun", datetime(1, 1, 1, tzinfo=UTC), 1).items) == ["item 0"]
            page = backend.page_from("begun", tomorrow - timedelta(days=2), 5)
            assert contents(page.items) == ["item 4", "item 5"]
            assert page.has_earlier

    def what_is_not_there_is_empty_or_unknown(self, agent: Agent, backend: Backend) -> None:
        agent.add("theirs", said(1))
        (foreign,) = backend.first_page("theirs", 1).items
        page = backend.first_page("nobody", 10)
        assert (list(page.items), page.has_earlier, page.has_later) == ([], False, False)
        assert list(backend.every_item("nobody")) == []
        assert backend.count("nobody") == 0
        assert backend.previews(["nobody"])["nobody"].item_count is None
        assert backend.previews([]) == {}
        for item_id in ("", "x", "01", " 1", "-1", "9" * 30, "1; DROP TABLE agent_messages", "٣", "1\0", foreign.id):
            with pytest.raises(UnknownItem):
                backend.item("nobody", item_id)
            with pytest.raises(UnknownItem):
                backend.page_around("nobody", item_id, 10)
        for misspelt in (f"0{foreign.id}", f" {foreign.id}"):
            with pytest.raises(UnknownItem):
                backend.item("theirs", misspelt)

    def a_giant_item_is_read_at_both_ends_on_a_page_and_whole_by_itself(self, agent: Agent, backend: Backend) -> None:
        agent.add("giant", user("x" * WHOLE_ITEM_BYTES + "the end"), said(1))
        raw, _ = agent.stored("giant")

        giant, ordinary = backend.first_page("giant", 2).items
        assert not giant.is_whole
        assert raw.startswith(giant.raw)
        assert raw.endswith(giant.raw_tail)
        assert "the end" in giant.raw_tail
        assert len(giant.raw) < WHOLE_ITEM_BYTES
        assert giant.byte_count == len(raw.encode())
        assert ordinary.is_whole
        assert backend.item("giant", giant.id).raw == raw
        assert [item.raw for item in backend.every_item("giant")] == agent.stored("giant")

    def counts_and_previews_tell_what_is_in_a_session(self, agent: Agent, backend: Backend) -> None:
        agent.add("counted", assistant("Hello"), *(said(number) for number in range(6)))
        agent.add("emptied", said(0))
        agent.pop("emptied")
        assert (backend.count("counted"), backend.count("counted", cap=7), backend.count("counted", cap=3)) == (7, 7, 4)
        previews = backend.previews(["counted", "emptied", "counted", "nobody"])
        assert previews["counted"].item_count == 7
        assert previews["counted"].first_user_text == "item 0"
        assert not previews["emptied"].item_count
        agent.add("endless", *(said(0) for _ in range(COUNT_CAP + 20)))
        assert backend.previews(["endless"])["endless"].item_count == COUNT_CAP + 1

    def a_whole_session_is_taken_away_byte_for_byte_and_searched(self, agent: Agent, backend: Backend) -> None:
        texts = [f'item {number} ü\n\t"\\' for number in range(249)]
        agent.add("whole", *(user(text) for text in texts[:50]))
        agent.add("whole", *(user(text) for text in texts[50:]), user(f"My code is {SECRET}."))
        assert [item.raw for item in backend.every_item("whole")] == agent.stored("whole")

        agent.add("another", said(1))
        backend.search.raise_if_away()
        looks = backend.search.look(
            ParsedSearch.parse(SECRET),
            {"whole": None, "another": None},
            limit=500,
            order=SearchOrder.NEWEST_FIRST,
            seconds=30,
        )
        assert looks["another"].hit is None
        hit = looks["whole"].hit
        assert hit
        assert SECRET in backend.item("whole", hit.item_id).raw
        assert SECRET in backend.search.beginnings([("whole", hit.item_id)])["whole", hit.item_id]
        oldest_first = backend.search.look(
            ParsedSearch.parse(SECRET), {"whole": None}, limit=500, order=SearchOrder.OLDEST_FIRST, seconds=30
        )
        assert oldest_first["whole"].hit == hit

        items = backend.every_item("whole")
        head = [next(items) for _ in range(100)]
        agent.pop("whole")
        assert contents([*head, *items])[:249] == texts

    def test_any_session_id_is_one_session(self, agent: Agent, backend: Backend) -> None:
        ids = ("a/b:c", "100%", "'; --", "%s", "😀 ü", "Case", " ", "x" * 500, "[a]*?")
        beside = {session_id: session_id.swapcase() + "!" for session_id in ids if agent.can_name(session_id)}
        for session_id, other in beside.items():
            agent.add(session_id, said(0))
            agent.add(other, said(1))
        for session_id in beside:
            assert contents(backend.first_page(session_id, 5).items) == ["item 0"], session_id
            assert backend.previews([session_id])[session_id].item_count == 1, session_id
        if self.needs(backend, Capability.ENUMERATE):
            assert {session.session_id for session in enumerated(backend)} == {*beside, *beside.values()}
        if self.needs(backend, Capability.ERASE_SESSIONS):
            for session_id, other in beside.items():
                assert backend.erase_session(session_id) == 1, session_id
                assert backend.count(other) == 1, session_id
            assert all(contents(backend.first_page(other, 5).items) == ["item 1"] for other in beside.values())

    # --- enumerating --------------------------------------------------------------------------------------------------

    def test_its_sessions_are_listed(self, agent: Agent, backend: Backend) -> None:
        self.every_session_is_listed_page_by_page(agent, backend)
        self.a_mark_changes_with_each_write_and_only_then(agent, backend)
        self.a_fingerprint_changes_with_each_write_and_only_then(agent, backend)

    def every_session_is_listed_page_by_page(self, agent: Agent, backend: Backend) -> None:
        names = [f"session {number:02}" for number in range(6)]
        for name in names:
            agent.add(name, said(0))
        if not self.needs(backend, Capability.ENUMERATE):
            with pytest.raises(UnsupportedOperation):
                backend.enumerate_sessions(limit=4)
            return
        for limit in (1, 4, 6, 100):
            assert {session.session_id for session in enumerated(backend, limit)} == set(names)

    def a_mark_changes_with_each_write_and_only_then(self, agent: Agent, backend: Backend) -> None:
        if not self.needs(backend, Capability.ENUMERATE):
            return
        agent.add("a", said(0))
        agent.add("b", said(0))

        def marks() -> dict[str, str]:
            return {session.session_id: session.mark for session in enumerated(backend)}

        before = marks()
        assert before == marks()
        assert all(len(mark) <= 64 for mark in before.values())
        agent.add("a", said(1))
        after = marks()
        assert after["a"] != before["a"]
        assert after["b"] == before["b"]

    def a_fingerprint_changes_with_each_write_and_only_then(self, agent: Agent, backend: Backend) -> None:
        agent.add("a", said(0))
        before = backend.fingerprint()
        backend.first_page("a", 5)
        assert backend.fingerprint() == before
        agent.add("a", said(1))
        assert not before or backend.fingerprint() != before

    def test_discovery_notes_new_written_vanished_and_returned_sessions(self, agent: Agent, backend: Backend) -> None:
        self.what_a_store_cannot_list_is_registered_and_asked_for_again(agent, backend)
        self.an_agent_that_writes_to_an_erased_session_is_swept_until_it_is_quiet(agent, backend)
        self.sessions_are_noted_by_discovery(agent, backend)

    def sessions_are_noted_by_discovery(self, agent: Agent, backend: Backend) -> None:
        store = agent.store
        if not self.needs(backend, Capability.ENUMERATE) or registry.has_fence(store):
            return
        agent.add("a", said(0))
        agent.add("b", said(0))
        first = discover(store)
        assert (first.sessions, first.new) == (2, 2)
        record = SessionRecord.objects.get(store=store, session_id="a")
        again = discover(store)
        assert (again.new, again.written) == (0, 0)

        agent.add("a", said(1))
        assert discover(store).written == 1
        assert SessionRecord.objects.get(pk=record.pk).activity_count == record.activity_count + 1

        agent.forget("b")
        assert discover(store).missing == 1
        assert SessionRecord.objects.get(store=store, session_id="b").missing_since
        agent.add("b", said(2))
        assert discover(store).missing == 0
        assert SessionRecord.objects.get(store=store, session_id="b").missing_since is None

        backend.erase_session("a")
        agent.add("a", said(3))
        assert discover(store).returned == 1
        assert SessionRecord.objects.get(pk=record.pk).erased_at
        assert "returned" in {problem.code for problem in registry.health(store).problems}

    def what_a_store_cannot_list_is_registered_and_asked_for_again(self, agent: Agent, backend: Backend) -> None:
        if self.needs(backend, Capability.ENUMERATE):
            with pytest.raises(CannotRegister, match="lists its own sessions"):
                register_sessions(agent.store, ["a"])
            return
        with pytest.raises(UnsupportedOperation):
            backend.enumerate_sessions(limit=5)
        agent.add("a", said(0))
        agent.add("b", said(0))
        told = register_sessions(agent.store, ["a", "b", "nobody", "a"])
        assert (told.new, told.known, told.not_there) == (2, 0, ["nobody"])
        assert register_sessions(agent.store, ["a"]).known == 1
        assert discover(agent.store).written == 0

        agent.add("a", said(1))
        agent.forget("b")
        found = discover(agent.store)
        assert (found.sessions, found.written, found.missing) == (2, 1, 1)
        assert SessionRecord.objects.get(store=agent.store, session_id="b").missing_since
        agent.add("b", said(2))
        assert discover(agent.store).missing == 0

        backend.erase_session("a")
        assert register_sessions(agent.store, ["a"]).erased == ["a"]
        agent.add("a", said(3))
        assert discover(agent.store).returned == 1
        assert "returned" in {problem.code for problem in registry.health(agent.store).problems}

    def an_agent_that_writes_to_an_erased_session_is_swept_until_it_is_quiet(
        self, agent: Agent, backend: Backend
    ) -> None:
        store = agent.store
        is_able = self.needs(backend, Capability.ENUMERATE, Capability.ERASE_SESSIONS)
        if not is_able or registry.has_fence(store):
            return
        agent.add("swept", user(SECRET))
        discover(store)
        backend.erase_session("swept")
        for number in range(2):
            agent.add("swept", user(f"{SECRET} {number}"))
            assert sweep(store, discover(store).returned_ids) == 1
            assert agent.leftovers(SECRET) == []
        assert sweep(store, discover(store).returned_ids) == 0
        health = registry.health(store)
        assert "returned" not in {problem.code for problem in health.problems}
        assert any(hint.startswith("2 times") for hint in health.hints)
        assert AuditEvent.objects.filter(type="session.erased_again").count() == 2

    # --- changing -----------------------------------------------------------------------------------------------------

    def test_a_replaced_text_is_gone_and_the_agent_reads_the_new_one(self, agent: Agent, backend: Backend) -> None:
        self.items_go_all_or_none(agent, backend)
        self.a_text_is_replaced(agent, backend)
        self.a_text_is_redacted_in_all_items_of_a_session_and_the_agent_goes_on(agent, backend)

    def a_text_is_replaced(self, agent: Agent, backend: Backend) -> None:
        agent.add("typo", said(0), user(f"My key is {SECRET}"), CALL, OUTPUT)
        before = backend.first_page("typo", 10).items
        text = json.dumps(user("My key is [redacted]"))
        if not self.needs(backend, Capability.REPLACE_ITEMS):
            with pytest.raises(UnsupportedOperation):
                backend.replace_item("typo", before[1].id, text, expected=before[1].raw)
            return
        backend.replace_item("typo", before[1].id, text, expected=before[1].raw)

        after = backend.first_page("typo", 10).items
        assert [item.id for item in after] == [item.id for item in before]
        assert [item.written_at for item in after] == [item.written_at for item in before]
        assert agent.plain("typo") == [said(0), user("My key is [redacted]"), CALL, OUTPUT]
        assert agent.leftovers(SECRET) == []

        with pytest.raises(ItemChanged):
            backend.replace_item("typo", before[1].id, text, expected=before[1].raw)
        with pytest.raises(UnknownItem):
            backend.replace_item("nobody", before[1].id, text, expected=after[1].raw)
        assert backend.first_page("typo", 10).items == after

    def a_text_is_redacted_in_all_items_of_a_session_and_the_agent_goes_on(
        self, agent: Agent, backend: Backend
    ) -> None:
        """Through the verb: found in every spelling, gone from the place, and the history is one that the SDK takes."""
        arguments = json.dumps({"key": SECRET, "deep": json.dumps([SECRET])})
        call = {**CALL, "arguments": arguments}
        agent.add("leak", said(0), user(f"My key is {SECRET} ü"), call, {**OUTPUT, "output": f"sent {SECRET}"})
        agent.add("other", user(SECRET))
        record, _ = SessionRecord.objects.get_or_create(store=agent.store, session_id="leak")
        record.refresh_from_db()
        asked = redact_in_session(record, RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, by=None))
        ids = [item.id for item in backend.first_page("leak", 10).items]
        work_off()

        asked.refresh_from_db()
        assert asked.ended_at
        assert asked.text == ""
        if not self.needs(backend, Capability.REPLACE_ITEMS):
            assert report_of(asked)["reasons"] == [["cannot", agent.store.name, 1]]
            return
        assert report_of(asked)["reasons"] == [], report_of(asked)
        assert (report_of(asked)["items"], report_of(asked)["places"]) == (3, 4)
        # What agents of another SDK wrote may have been no input to this one before either.
        is_of_the_sdk = agent.store.kind not in ("phidata", "agno")
        replayed = report_of(asked)["replayed"] + report_of(asked)["replayed_as_before"] * (not is_of_the_sdk)
        assert replayed == 1
        assert agent.read("leak") == [
            said(0),
            user("My key is [redacted] ü"),
            {**CALL, "arguments": '{"key":"[redacted]","deep":"[\\"[redacted]\\"]"}'},
            {**OUTPUT, "output": "sent [redacted]"},
        ]
        assert [item.id for item in backend.first_page("leak", 10).items if item.id in ids] == ids
        assert agent.read("other") == [user(SECRET)], "somebody else's session was changed"
        words = ParsedSearch.parse(SECRET)
        (look,) = backend.search.look(
            words, {"leak": None}, limit=9, order=SearchOrder.NEWEST_FIRST, seconds=30
        ).values()
        assert look.hit is None
        agent.add("leak", said(9))
        assert agent.read("leak")[-1] == said(9)
        if Capability.ERASE_SESSIONS in backend.capabilities:
            backend.erase_session("other")
            assert agent.leftovers(SECRET) == []

    def items_go_all_or_none(self, agent: Agent, backend: Backend) -> None:
        agent.add("talk", said(0), user(SECRET), CALL, OUTPUT, said(4))
        items = list(backend.every_item("talk"))
        if not self.needs(backend, Capability.ERASE_ITEMS):
            with pytest.raises(UnsupportedOperation):
                backend.delete_items("talk", items[1:4])
            return
        changed = StoredItem(items[4].id, items[4].position, "{}", 2, None)
        with pytest.raises(ItemChanged):
            backend.delete_items("talk", [items[1], changed])
        assert agent.plain("talk") == [said(0), user(SECRET), CALL, OUTPUT, said(4)]

        assert backend.delete_items("talk", items[1:4]) == 3
        assert agent.plain("talk") == [said(0), said(4)]
        assert agent.leftovers(SECRET) == []
        agent.add("talk", said(5))
        assert agent.plain("talk") == [said(0), said(4), said(5)]

    def test_an_erased_session_leaves_nothing_but_its_registry_row(self, agent: Agent, backend: Backend) -> None:
        self.a_session_is_erased(agent, backend)
        self.sessions_are_counted_together(agent, backend)
        self.whole_sessions_go_together_or_none(agent, backend)
        self.a_step_deletes_the_newest_items_and_reports_how_many_are_left(agent, backend)
        self.a_step_of_all_items_is_the_last_one(agent, backend)
        self.an_erasure_that_ended_between_two_steps_is_continued(agent, backend)
        self.an_erasure_takes_as_many_steps_as_it_needs(agent, backend)
        self.an_agent_that_writes_between_two_steps_is_refused_or_erased_with_the_rest(agent, backend)
        self.a_step_does_not_read_the_texts(agent, backend)

    def a_session_is_erased(self, agent: Agent, backend: Backend) -> None:
        for turn in range(3):
            agent.add("gone", *[user(f"{SECRET} {turn} " + "long " * 500), assistant(f"About {SECRET}")] * 10)
        agent.add("kept", said(2))
        if not self.needs(backend, Capability.ERASE_SESSIONS):
            with pytest.raises(UnsupportedOperation):
                backend.erase_session("gone")
            return
        assert agent.leftovers(SECRET), "the search for leftovers does not even find what is there"
        assert backend.erase_session("gone") == 60

        assert agent.leftovers(SECRET) == []
        assert agent.leftovers("gone") == list(agent.id_stays_in)
        assert backend.previews(["gone"])["gone"].item_count is None
        assert SessionRecord.objects.get(store=agent.store, session_id="gone").erased_at
        assert agent.plain("gone") == []
        assert agent.plain("kept") == [said(2)]
        first = SessionRecord.objects.get(store=agent.store, session_id="gone").erased_at
        assert backend.erase_session("gone") == 0
        assert SessionRecord.objects.get(store=agent.store, session_id="gone").erased_at == first

    # --- several sessions at once -------------------------------------------------------------------------------------

    def sessions_are_counted_together(self, agent: Agent, backend: Backend) -> None:
        agent.add("three items", *(said(number) for number in range(3)))
        agent.add("one item", said(0))
        wanted = {"three items": 3, "nobody": 0, "one item": 1}
        assert backend.count_each(list(wanted)) == wanted
        assert backend.count_each([]) == {}
        records = SessionRecord.objects.filter(store=agent.store)
        for session_id in wanted:
            records.get_or_create(store=agent.store, session_id=session_id)
        known, is_three = records.filter(session_id__in=wanted), Q(session_id="three items")
        for condition, items in ((is_three, 3), (~is_three, 1), (Q(session_id="other"), 0)):
            assert backend.with_items(known, condition, sessions=Count("pk")) == {"sessions": 3, "items": items}
        first_two = known.order_by("session_id")[:2]
        assert backend.with_items(first_two, Q(pk__isnull=False), sessions=Count("pk")) == {"sessions": 2, "items": 1}

    def whole_sessions_go_together_or_none(self, agent: Agent, backend: Backend) -> None:
        sizes = {"whole a": 2, "whole b": 1, "whole c": 4}
        for session_id, size in sizes.items():
            agent.add(session_id, *(said(number) for number in range(size)))
        if Capability.ERASE_SESSIONS not in backend.capabilities:
            assert backend.delete_whole(list(sizes), at_most=5) == {}
            return
        gone = backend.delete_whole(list(sizes), at_most=5)
        assert gone in ({}, {"whole a": 2, "whole b": 1})
        assert backend.count_each(list(sizes)) == {**sizes, **dict.fromkeys(gone, 0)}
        marked = SessionRecord.objects.filter(store=agent.store, erased_at__isnull=False)
        assert set(marked.values_list("session_id", flat=True)) & set(sizes) == set(gone)

    # --- erasing in steps ---------------------------------------------------------------------------------------------

    def a_step_deletes_the_newest_items_and_reports_how_many_are_left(self, agent: Agent, backend: Backend) -> None:
        agent.add("stepped", said(0), said(1))
        agent.add("stepped", user(SECRET), CALL, OUTPUT)
        agent.add("stepped", said(5), said(6))
        agent.add("beside stepped", said(9))
        if not self.needs(backend, Capability.ERASE_SESSIONS):
            with pytest.raises(UnsupportedOperation):
                backend.delete_some("stepped", at_most=3)
            return
        if self.needs(backend, Capability.ERASE_IN_STEPS):
            assert backend.delete_some("stepped", at_most=3) == Deleted(3, 4)
            # A step that hides all items from the agent at once is as good.
            assert agent.plain("stepped") in ([said(0), said(1), user(SECRET), CALL], []), "an output lost its call"
            marked = SessionRecord.objects.filter(store=agent.store, session_id="stepped", erased_at__isnull=False)
            assert marked.exists(), "not marked from the start"
            # In another process there is nothing but the place to go by.
            assert backend_for(agent.store).delete_some("stepped", at_most=3) == Deleted(3, 1)
            assert backend.delete_some("stepped", at_most=3) == Deleted(1, 0)
        else:
            assert backend.delete_some("stepped", at_most=3) == Deleted(7, 0)
        for _ in range(2):
            assert backend.delete_some("stepped", at_most=3) == Deleted(0, 0)
        assert backend.delete_some("nobody", at_most=3) == Deleted(0, 0)
        for words in (SECRET, "call_1"):
            assert agent.leftovers(words) == []
        assert backend.previews(["stepped"])["stepped"].item_count is None
        assert agent.plain("beside stepped") == [said(9)]

    def a_step_of_all_items_is_the_last_one(self, agent: Agent, backend: Backend) -> None:
        if not self.needs(backend, Capability.ERASE_SESSIONS):
            return
        agent.add("at once", user(SECRET), said(1))
        assert backend.delete_some("at once", at_most=2) == Deleted(2, 0)
        assert agent.leftovers(SECRET) == []
        assert backend.previews(["at once"])["at once"].item_count is None

    def an_erasure_that_ended_between_two_steps_is_continued(self, agent: Agent, backend: Backend) -> None:
        if not self.needs(backend, Capability.ERASE_SESSIONS, Capability.ERASE_IN_STEPS):
            return
        agent.add("continued", *(user(f"{SECRET} {number}") for number in range(5)))
        assert backend.delete_some("continued", at_most=2) == Deleted(2, 3)
        first = SessionRecord.objects.get(store=agent.store, session_id="continued").erased_at
        assert first
        assert backend_for(agent.store).erase_session("continued") == 3
        assert agent.leftovers(SECRET) == []
        assert SessionRecord.objects.get(store=agent.store, session_id="continued").erased_at == first

    def an_erasure_takes_as_many_steps_as_it_needs(self, agent: Agent, backend: Backend) -> None:
        if not self.needs(backend, Capability.ERASE_SESSIONS, Capability.ERASE_IN_STEPS):
            return
        agent.add("in three", *(user(f"{SECRET} {number}") for number in range(7)))
        steps: list[Deleted] = []
        delete_some = type(backend).delete_some

        def counted(self: Backend, session_id: str, *, at_most: int) -> Deleted:
            steps.append(delete_some(self, session_id, at_most=at_most))
            return steps[-1]

        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(type(backend), "delete_some", counted)
            patching.setattr(type(backend), "erased_at_once", 3)
            assert backend.erase_session("in three") == 7
        assert steps == [Deleted(3, 4), Deleted(3, 1), Deleted(1, 0)]
        assert agent.leftovers(SECRET) == []

    def an_agent_that_writes_between_two_steps_is_refused_or_erased_with_the_rest(
        self, agent: Agent, backend: Backend
    ) -> None:
        if not self.needs(backend, Capability.ERASE_SESSIONS):
            return
        agent.add("between", *(user(f"{SECRET} {number}") for number in range(5)))
        backend.delete_some("between", at_most=2)
        refused = False
        try:
            agent.go_on("between", user(f"{SECRET} again"))
        except agent.told_of_erasure:
            refused = True
        if registry.has_fence(agent.store):
            assert refused, "the agent wrote through the fence"
        while backend.delete_some("between", at_most=2).left:
            pass
        assert agent.leftovers(SECRET) == []
        assert backend.previews(["between"])["between"].item_count is None

    def a_step_does_not_read_the_texts(self, agent: Agent, backend: Backend) -> None:
        """Of a megabyte nothing travels."""
        if not self.needs(backend, Capability.ERASE_SESSIONS, Capability.ERASE_IN_STEPS):
            return
        agent.add("giant", said(0), user("x" * 1_000_000), said(2))
        with agent.text_reads() as reads:
            assert len(list(backend.every_item("giant"))) == 3
        if reads is None:
            return
        assert reads, "a read of texts is not even noticed"
        with agent.text_reads() as reads:
            assert backend.delete_some("giant", at_most=2) == Deleted(2, 1)
        assert reads == []

    def test_agents_that_write_meanwhile_lose_nothing_and_never_fail(self, agent: Agent, backend: Backend) -> None:
        if not self.needs(backend, Capability.ERASE_SESSIONS):
            return
        agent.add("kept", said(0))
        stop, written, problems = threading.Event(), [0], []

        def go_on() -> None:
            while not stop.is_set():
                try:
                    written[0] += 1
                    agent.add("kept", said(written[0]))
                except Exception as problem:
                    problems.append(problem)
                    return

        writer = threading.Thread(target=go_on)
        writer.start()
        try:
            for number in range(5):
                agent.add(f"gone {number}", user(f"{SECRET} {number}"), CALL, OUTPUT)
                assert backend.erase_session(f"gone {number}") == 3
        finally:
            stop.set()
            writer.join()
        assert problems == []
        assert agent.plain("kept") == [said(number) for number in range(written[0] + 1)]
        assert agent.leftovers(SECRET) == []

    def test_what_an_agent_said_before_an_erasure_is_gone_and_what_it_says_after_it_is_whole(
        self, agent: Agent, backend: Backend
    ) -> None:
        """Into the very session that is erased, all the time."""
        if not self.needs(backend, Capability.ERASE_SESSIONS):
            return
        with Writer(agent, "hot", SECRET) as writer:
            for _ in range(4):
                writer.wait_for_turns(2)
                gone, count = writer.done, insist(lambda: backend.erase_session("hot"))
                begun = min(writer.begun, writer.done + 1)
                assert count > 0 or writer.problem
            writer.wait_for_turns(2)
        if registry.has_fence(agent.store):
            assert writer.problem, "the agent wrote through the fence"
        assert writer.problem is None or isinstance(writer.problem, agent.told_of_erasure)
        left = agent.plain("hot")
        expected = writer.turns(range(begun + 1, writer.done + 1))
        assert left[len(left) - len(expected) :] == expected, "what was said after an erasure was taken with it"
        if not agent.brings_back:
            during = [writer.turns(range(first, begun + 1)) for first in range(gone + 1, begun + 2)]
            assert left[: len(left) - len(expected)] in during, "what was said before the erasure is still there"
        backend.erase_session("hot")
        for words in (SECRET, "call_"):
            assert set(agent.leftovers(words)) <= set(agent.out_of_reach)
        assert backend.previews(["hot"])["hot"].item_count is None
        assert SessionRecord.objects.get(store=agent.store, session_id="hot").erased_at

    def test_a_session_is_redacted_while_its_agent_goes_on_in_it_and_nothing_is_lost(
        self, agent: Agent, backend: Backend
    ) -> None:
        if not self.needs(backend, Capability.REPLACE_ITEMS):
            return
        leaked = [user(f"My key is {SECRET}, number {number}") for number in range(8)]
        agent.add("hot", *leaked)
        record, _ = SessionRecord.objects.get_or_create(store=agent.store, session_id="hot")
        record.refresh_from_db()

        def redact() -> dict[str, Any]:
            asked = redact_in_session(record, RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, by=None))
            work_off()
            asked.refresh_from_db()
            return report_of(asked)

        with Writer(agent, "hot") as writer:
            writer.wait_for_turns(2)
            report = redact()
            writer.wait_for_turns(2)
        assert writer.problem is None
        if agent.brings_back or any(why == "busy" for why, *_ in report["reasons"]):
            report = redact()
        assert report["reasons"] == []
        assert agent.leftovers(SECRET) == []
        redacted = [user(f"My key is [redacted], number {number}") for number in range(8)]
        talk, expected = agent.plain("hot"), writer.turns(range(1, writer.done + 1))
        assert talk[:8] == redacted
        if agent.mixes_turns:
            talk[8:], expected = sorted(talk[8:], key=str), sorted(expected, key=str)
        assert talk[8:] == expected

    # --- expiring -----------------------------------------------------------------------------------------------------

    def test_its_sessions_expire(self, agent: Agent, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        policy = in_force("Talks", days=30, store=agent.store.name)
        self.old_sessions_go_and_young_ones_stay(agent, backend)
        if self.needs(backend, Capability.ERASE_SESSIONS):
            self.a_session_that_an_agent_wrote_to_stays(agent, backend, monkeypatch)
            self.a_hold_keeps_its_session(agent, backend)
        if Capability.ERASE_ITEMS in backend.capabilities:
            self.old_turns_go_and_young_ones_stay(agent, backend, policy.policy)

    def old_sessions_go_and_young_ones_stay(self, agent: Agent, backend: Backend) -> None:
        self.make_old(agent, backend, "expired", user(SECRET), said(2))
        agent.add("young", said(1))
        put_on_record(agent, "young")
        run = swept()
        left = ids_on_record(agent)
        if not self.needs(backend, Capability.ERASE_SESSIONS):
            assert (run.exceptions, "expired" in left) == ([["cannot_erase", agent.store.name, 1]], True)
            return
        assert run.state == run.State.COMPLETE, (run.reason, run.exceptions)
        assert left == {"young"}
        assert [agent.leftovers(SECRET), agent.plain("young")] == [[], [said(1)]]
        result = SweepResult.objects.get(run=run)
        assert (result.taken, result.items, result.backlog) == (1, 2, 0)

    def a_session_that_an_agent_wrote_to_stays(
        self, agent: Agent, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After the store was looked through, and before the session would go."""
        self.make_old(agent, backend, "woken", said(1))
        with monkeypatch.context() as patched:
            patched.setattr(sweeping, "discover_changes", lambda store: agent.go_on("woken", said(2)))
            patched.setattr(sweeping, "has_fence", lambda store: False)
            run = swept()
        assert agent.plain("woken") == [said(1), said(2)]
        assert registry.has_fence(agent.store) or SweepResult.objects.get(run=run).left == {"active": 1}
        assert "woken" in ids_on_record(agent)
        assert not SessionRecord.objects.get(store=agent.store, session_id="woken").erased_at

    def a_hold_keeps_its_session(self, agent: Agent, backend: Backend) -> None:
        self.make_old(agent, backend, "held", said(1))
        make_hold(SessionRecord.objects.get(store=agent.store, session_id="held"), by=person("compliance"))
        run = swept()
        assert agent.plain("held") == [said(1)]
        assert SweepResult.objects.get(run=run).held == 1

    def old_turns_go_and_young_ones_stay(self, agent: Agent, backend: Backend, policy: RetentionPolicy) -> None:
        in_force(policy=policy, target="items", clock="written", store=agent.store.name)
        if Capability.ITEM_TIMES not in backend.capabilities:
            # Only what is encrypted has a time here.
            self.make_old(agent, backend, "turns", said(1))
            run = swept()
            assert agent.plain("turns") == [said(1)]
            can_delete = Capability.ERASE_ITEMS in backend.capabilities
            assert SweepResult.objects.get(run=run).left == {"no_time" if can_delete else "cannot_rewrite": 1}
            return
        agent.add("turns", user(SECRET), CALL, OUTPUT)
        agent.age("turns", timedelta(days=40))
        agent.go_on("turns", said(2))
        agent.age("turns", timedelta(hours=2))
        put_on_record(agent, "turns", activity=timedelta(hours=2))
        run = swept()
        assert (agent.plain("turns"), agent.leftovers(SECRET)) == ([said(2)], []), (run.reason, run.exceptions)
        assert SweepResult.objects.get(run=run).items == 3

    def make_old(self, agent: Agent, backend: Backend, session_id: str, *items: Item) -> None:
        """A session that is quiet since forty days, in its store and on record."""
        agent.add(session_id, *items)
        if Capability.ITEM_TIMES in backend.capabilities:
            agent.age(session_id, timedelta(days=40))
        put_on_record(agent, session_id, activity=timedelta(days=40))

    # --- troubles -----------------------------------------------------------------------------------------------------

    def test_whatever_is_wrong_with_the_place_is_a_sentence_and_changes_nothing(
        self, agent: Agent, backend: Backend
    ) -> None:
        agent.add("talk", said(0), user("two"))
        (item, _) = backend.first_page("talk", 2).items
        for name, trouble in agent.troubles().items():
            with trouble() as sentence:
                health = registry.health(agent.store)
                assert health.state == "down", name
                assert any(re.search(sentence, problem.sentence) for problem in health.problems), (name, health)
                asked: list[Callable[[], object]] = [
                    lambda: backend.first_page("talk", 5),
                    lambda: backend.previews(["talk"]),
                    lambda: list(backend.every_item("talk")),
                    lambda: backend.item("talk", item.id),
                    backend.search.raise_if_away,
                ]
                if Capability.ERASE_SESSIONS in backend.capabilities:
                    asked.append(lambda: backend.erase_session("talk"))
                    asked.append(lambda: backend.delete_some("talk", at_most=1))
                if Capability.REPLACE_ITEMS in backend.capabilities:
                    asked.append(lambda: backend.replace_item("talk", item.id, "{}", expected=item.raw))
                if Capability.ENUMERATE in backend.capabilities:
                    asked.append(lambda: backend.enumerate_sessions(limit=5))
                for ask in asked:
                    with pytest.raises(StoreUnavailable, match=sentence):
                        ask()
                assert not SessionRecord.objects.filter(store=agent.store, session_id="talk", erased_at__isnull=False)
            assert agent.plain("talk") == [said(0), user("two")], name


def put_on_record(agent: Agent, session_id: str, *, activity: timedelta = timedelta()) -> None:
    """As discovery or an agent does, forty-one days ago, and with a last activity so long ago."""
    if Capability.ENUMERATE not in backend_for(agent.store).capabilities:
        register_sessions(agent.store, [session_id])
    if not registry.has_fence(agent.store):
        discover(agent.store)
    at = datetime.now(UTC) - activity
    if registry.has_fence(agent.store):
        # With the trigger, which would have followed a writing at that time.
        with connection.cursor() as cursor:
            wanted: list[Any] = [at.replace(tzinfo=None), session_id]
            cursor.execute(f"UPDATE {agent.store.sessions_table} SET updated_at = %s WHERE session_id = %s", wanted)
    records = SessionRecord.objects.filter(store=agent.store, session_id=session_id)
    assert records.update(last_activity_at=at, registered_at=datetime.now(UTC) - timedelta(days=41))


def ids_on_record(agent: Agent) -> set[str]:
    return set(SessionRecord.objects.on_record().filter(store=agent.store).values_list("session_id", flat=True))


def enumerated(backend: Backend, limit: int = 100) -> Iterator[Any]:
    page = backend.enumerate_sessions(limit=limit)
    yield from page.sessions
    while page.next_cursor:
        page = backend.enumerate_sessions(page.next_cursor, limit=limit)
        yield from page.sessions
