"""A store that hangs: it lets one page wait, and not each; the other stores of the page show."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app import registry
from sessions_app.encryption import sealing_of
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.registry import checking
from sessions_app.services.discovery import discover_sessions
from sessions_app.services.health_checks import check_stores
from sessions_app.stores import backend_for, circuit_breaker
from sessions_app.stores.base import SessionPreview, StoreUnavailable
from sessions_app.stores.redis import server as asking
from sessions_app.stores.redis.backend import RedisBackend
from tests.agents import attached_store, user
from tests.builders import make_session, make_subject
from tests.sessions.test_other_stores import said as searched
from tests.stores.servers import RedisServer, own_redis
from tests.stores.sqlite_files import SqliteAgent
from tests.stores.test_redis import VARIABLE, RedisAgent

HUNG = "did not respond within 0.1 seconds"
RESTS = "The console tries again in"


@pytest.fixture
def agent(db: None, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> RedisAgent:
    """Of a store that hangs whenever it lets others wait, and rests for longer than a test takes."""
    monkeypatch.setattr(circuit_breaker, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(circuit_breaker, "REST_SECONDS", 600.0)
    return RedisAgent(redis_server, monkeypatch)


@pytest.fixture
def beside(agent: RedisAgent, tmp_path: Path) -> Iterator[SqliteAgent]:
    """A store that answers; one session of a subject is in each of the two."""
    beside = SqliteAgent(tmp_path)
    agent.add("of the cache", user("Where is my green kettle?"))
    beside.add("of the file", user("Where is my blue teapot?"))
    discover_sessions()
    SessionRecord.objects.update(subject=make_subject("7"))
    yield beside
    beside.close()


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with each question to the server."""
    asked: list[str] = []
    client_for = asking.client_for

    def counted(address: str, variable: str) -> Any:
        asked.append(variable)
        return client_for(address, variable)

    monkeypatch.setattr(asking, "client_for", counted)
    return asked


def pages_with_rows() -> list[str]:
    return [reverse("sessions:list"), Subject.objects.get().get_absolute_url(), reverse("sessions:overview")]


def is_asked(questions: list[str]) -> bool:
    """Since the last time."""
    count = len(questions)
    questions.clear()
    return count > 0


class TestPages:
    def test_rows_of_a_store_that_hangs_are_down_and_it_is_asked_once_for_all_pages(
        self, agent: RedisAgent, beside: SqliteAgent, operator: Client, questions: list[str]
    ) -> None:
        with agent.frozen():
            for path in (*pages_with_rows(), *pages_with_rows()):
                page = operator.get(path)
                assert page.status_code == 200
                assert {each.record.session_id: each.is_away for each in page.context["sessions"]} == {
                    "of the cache": True,
                    "of the file": False,
                }
                assert "blue teapot" in page.text
                assert "green kettle" not in page.text
        assert len(questions) == 1

    def test_the_list_of_stores_asks_none_and_shows_the_last_check(
        self, agent: RedisAgent, beside: SqliteAgent, operator: Client, questions: list[str]
    ) -> None:
        check_stores()
        with agent.frozen():
            questions.clear()
            for path in (reverse("sessions:stores"), reverse("sessions:overview")):
                page = operator.get(path)
                shown = page.context["home"].cards[0].shown if "home" in page.context else page.context
                checked = shown["checked_stores"]
                assert {each.health.state for each in checked} == {"ok"}
                if path == reverse("sessions:stores"):
                    assert not is_asked(questions)
            circuit_breaker.wake_all()
            check_stores()
            page = operator.get(reverse("sessions:stores"))
            down, well = sorted(page.context["checked_stores"], key=lambda each: each.store.name)
            assert (down.health.state, well.health.state) == ("down", "ok")
            assert down.health.problems[0].sentence.count(HUNG) == 1
            questions.clear()
            for _ in range(2):
                page = operator.get(reverse("sessions:store", args=[agent.store.name]))
                assert RESTS in page.text
                assert page.text.count(HUNG) == 1
            assert not is_asked(questions)

    def test_refresh_asks_and_every_page_knows_that_it_is_back(
        self, agent: RedisAgent, beside: SqliteAgent, operator: Client, questions: list[str]
    ) -> None:
        store = reverse("sessions:store", args=[agent.store.name])
        refresh = reverse("sessions:store-check", args=[agent.store.name])
        with agent.frozen():
            operator.get(store)
            assert is_asked(questions)
            assert f'action="{refresh}"' in operator.get(store).text
            assert not is_asked(questions)
            page = operator.post(refresh, follow=True)
            assert page.redirect_chain == [(store, 302)]
            assert f"{agent.store} is unreachable." in page.text
            assert is_asked(questions)
        assert "green kettle" not in operator.get(reverse("sessions:list")).text
        stores = reverse("sessions:stores")
        page = operator.post(refresh, {"next": stores}, follow=True)
        assert page.redirect_chain == [(stores, 302)]
        assert f"{agent.store} is healthy." in page.text
        assert "green kettle" in operator.get(reverse("sessions:list")).text

    def test_a_timeline_and_its_live_end_do_not_wait_again(
        self, agent: RedisAgent, beside: SqliteAgent, operator: Client, questions: list[str]
    ) -> None:
        record = SessionRecord.objects.get(session_id="of the cache")
        live = operator.get(record.get_absolute_url()).context["live_url"]
        questions.clear()
        with agent.frozen():
            first = operator.get(record.get_absolute_url())
            assert HUNG in first.text
            assert RESTS not in first.text
            assert len(questions) == 1
            assert RESTS in operator.get(record.get_absolute_url()).text
            for _ in range(3):
                assert operator.get(live).status_code < 500
            assert len(questions) == 1

    def test_a_search_says_which_store_it_left_out(
        self, agent: RedisAgent, beside: SqliteAgent, operator: Client, questions: list[str]
    ) -> None:
        with agent.frozen():
            for _ in range(2):
                page = searched(operator, "where is my")
                assert [match.record.session_id for match in page.context["matches"].found] == ["of the file"]
                assert HUNG in page.text
        assert len(questions) == 1

    def test_without_a_rest_each_page_waits(
        self,
        agent: RedisAgent,
        beside: SqliteAgent,
        operator: Client,
        questions: list[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """What the others here are worth; and a store is asked again when its seconds are over."""
        monkeypatch.setattr(circuit_breaker, "REST_SECONDS", 0.0)
        with agent.frozen():
            for _ in range(3):
                operator.get(reverse("sessions:list"))
        assert len(questions) == 3
        assert "green kettle" in operator.get(reverse("sessions:list")).text


@pytest.fixture(scope="module")
def two_servers() -> Iterator[list[RedisServer]]:
    with own_redis() as second, own_redis() as third:
        yield [second, third]


class TestSeveral:
    """Stores that hang at the same time let a page wait as long as one of them does."""

    @pytest.fixture
    def frozen(
        self,
        agent: RedisAgent,
        beside: SqliteAgent,
        two_servers: list[RedisServer],
        monkeypatch: pytest.MonkeyPatch,
    ) -> Iterator[list[str]]:
        """The names of three, on servers of their own, none of which answers any more."""
        running = [agent.server]
        with ExitStack() as servers:
            for name, server in zip(("second", "third"), two_servers, strict=True):
                running.append(server)
                monkeypatch.setenv(f"{name}_URL".upper(), running[-1].address)
                options = {"url_env": f"{name}_URL".upper()}
                store = attached_store(name, kind="redis", options=options)
                make_session(f"of {name}", store=store, subject=Subject.objects.get())
            monkeypatch.setattr(asking, "ANSWER_SECONDS", 0.1)
            for server in running:
                servers.enter_context(server.frozen())
            yield [agent.store.name, "second", "third"]

    @pytest.fixture
    def meeting(self, monkeypatch: pytest.MonkeyPatch) -> threading.Barrier:
        """Whoever asks waits here until all three are being asked; it breaks where one waits for the other."""
        barrier = threading.Barrier(3, timeout=30)
        client_for = asking.client_for

        def met(address: str, variable: str) -> Any:
            barrier.wait()
            return client_for(address, variable)

        monkeypatch.setattr(asking, "client_for", met)
        monkeypatch.setattr(circuit_breaker, "PAGE_SECONDS", 60.0)
        return barrier

    def test_a_page_asks_all_at_once_and_shows_those_that_answer(
        self, frozen: list[str], meeting: threading.Barrier, operator: Client
    ) -> None:
        for path in pages_with_rows():
            page = operator.get(path)
            assert not meeting.broken, path
            assert {each.record.store.name for each in page.context["sessions"] if each.is_away} == set(frozen)
            assert "blue teapot" in page.text
            circuit_breaker.wake_all()

        page = searched(operator, "where is my")
        assert not meeting.broken
        assert [match.record.session_id for match in page.context["matches"].found] == ["of the file"]
        assert all(f"{name} could not be searched" in page.text for name in frozen)
        circuit_breaker.wake_all()

        check_stores()
        assert not meeting.broken
        page = operator.get(reverse("sessions:stores"))
        states = {each.store.name: each.health.state for each in page.context["checked_stores"]}
        assert states == {**dict.fromkeys(frozen, "down"), "files": "ok"}
        assert page.text.count(HUNG) == 3

    def test_one_after_the_other_they_never_meet(
        self, frozen: list[str], meeting: threading.Barrier, operator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the other test is worth."""
        begun = threading.Event()
        being_asked: list[bool] = []
        wait_at_barrier = meeting.wait

        def begin_and_wait() -> int:
            begun.set()
            return wait_at_barrier()

        def run_out_of_time(answers: Collection[Future[Any]], timeout: float) -> None:
            assert begun.wait(60)
            being_asked.extend(answer.running() for answer in answers)

        monkeypatch.setattr(meeting, "wait", begin_and_wait)
        monkeypatch.setattr(circuit_breaker, "wait", run_out_of_time)
        monkeypatch.setattr(circuit_breaker, "ASKED_AT_ONCE", 1)
        operator.get(reverse("sessions:list"))
        assert being_asked.count(True) == 1
        meeting.abort()

    def test_a_page_does_not_wait_for_who_takes_longer_than_all_may(
        self, agent: RedisAgent, beside: SqliteAgent, operator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def wait_for_one(answers: Collection[Future[Any]], timeout: float) -> None:
            assert 0 < timeout <= circuit_breaker.PAGE_SECONDS
            wait(answers, return_when=FIRST_COMPLETED)

        monkeypatch.setattr(circuit_breaker, "wait", wait_for_one)
        let_go = threading.Event()
        previews = RedisBackend.previews

        def slow(backend: RedisBackend, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
            assert let_go.wait(60)
            return previews(backend, session_ids)

        monkeypatch.setattr(RedisBackend, "previews", slow)
        try:
            page = operator.get(reverse("sessions:list"))
        finally:
            let_go.set()
        assert {each.record.session_id: each.is_away for each in page.context["sessions"]} == {
            "of the cache": True,
            "of the file": False,
        }

    def test_who_was_not_come_to_is_said_not_to_have_been_asked_and_does_not_rest(
        self, agent: RedisAgent, beside: SqliteAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun, let_go = threading.Event(), threading.Event()

        def hang() -> bool:
            begun.set()
            return let_go.wait(60)

        monkeypatch.setattr(circuit_breaker, "wait", lambda answers, timeout: begun.wait(60))
        monkeypatch.setattr(circuit_breaker, "ASKED_AT_ONCE", 1)
        try:
            answers = circuit_breaker.ask_all({agent.store: hang, beside.store: lambda: True})
        finally:
            let_go.set()
        assert "did not respond within 10 seconds" in str(answers[agent.store])
        assert "was not read, because other stores used up the time limit" in str(answers[beside.store])
        assert circuit_breaker.ask_all({beside.store: lambda: 7}) == {beside.store: 7}


class TestWhoAsksAllTheSame:
    @pytest.fixture
    def resting(self, agent: RedisAgent, beside: SqliteAgent, operator: Client, questions: list[str]) -> SessionStore:
        with agent.frozen():
            operator.get(reverse("sessions:list"))
        assert "green kettle" not in operator.get(reverse("sessions:list")).text
        questions.clear()
        return agent.store

    def test_verbs_jobs_and_checks_ask(self, resting: SessionStore, questions: list[str]) -> None:
        assert registry.health(resting).state == "ok"
        assert is_asked(questions)
        assert registry.check(resting).state == "ok"
        assert is_asked(questions)
        discover_sessions()
        assert is_asked(questions)
        assert backend_for(resting).erase_session("of the cache") == 1

    def test_a_download_asks(self, resting: SessionStore, operator: Client) -> None:
        record = SessionRecord.objects.get(session_id="of the cache")
        download = operator.get(reverse("sessions:export-jsonl", args=[record.pk]))
        assert b"green kettle" in b"".join(download.streaming_content)  # type: ignore[attr-defined]


def test_a_store_that_refuses_at_once_is_asked_each_time(
    agent: RedisAgent,
    beside: SqliteAgent,
    operator: Client,
    questions: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(circuit_breaker, "LONG_SECONDS", 60.0)
    with agent.at("redis://127.0.0.1:1/0", "refused"):
        for _ in range(2):
            assert "green kettle" not in operator.get(reverse("sessions:list")).text
    assert len(questions) == 2
    assert "green kettle" in operator.get(reverse("sessions:list")).text


def test_a_store_that_hangs_while_its_key_is_tried_breaks_no_page(
    agent: RedisAgent, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(store: SessionStore) -> Iterator[Any]:
        assert sealing_of(store)
        raise StoreUnavailable("It hangs.")

    monkeypatch.setattr(checking, "key_problems", hangs)
    health = registry.health(agent.store)
    assert health.state == "down"
    assert health.problems[0].sentence == "It hangs."


def test_the_address_of_the_store_is_in_no_sentence(agent: RedisAgent, beside: SqliteAgent, operator: Client) -> None:
    with agent.frozen():
        check_stores()
        for path in (reverse("sessions:stores"), reverse("sessions:store", args=[agent.store.name])):
            text = operator.get(path).text
            assert VARIABLE in text
            assert agent.server.address not in text
