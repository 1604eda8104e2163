"""Stores that do not respond, or take no change, while a person is erased: it is not complete before they do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.timezone import now

from memadmin.erasure import services
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.runs.models import Run
from memories_app.models import Signal
from sessions_app.models import SessionRecord, SessionStore, SubjectAlias, TextSearch
from sessions_app.services.discovery import discover
from sessions_app.services.sessions import attach_sessions
from sessions_app.services.store_config import declare_store
from sessions_app.stores.sqlalchemy import backend as main_kind
from tests.agents import attach_main_store, run_sql, second_connection, user
from tests.builders import make_session
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import a_day_later, erased_of, items_of, retry, with_sessions, work_to_the_end
from tests.retention.builders import make_hold, released
from tests.stores.conftest import redis_server, second_database, shared_redis
from tests.stores.document_agents import InFile, InPostgres, drop_schema, engine_for
from tests.stores.servers import RedisServer
from tests.stores.sqlite_files import SqliteAgent
from tests.stores.test_json_file import ArrayAgent, LinesAgent
from tests.stores.test_phidata import PhidataAgent
from tests.stores.test_redis import RedisAgent

__all__ = ["redis_server", "second_database", "shared_redis"]

pytestmark = pytest.mark.usefixtures("transactional_db")

State, StepState = SubjectRequest.State, ErasureStep.State

ITEMS = 7

KINDS = {
    "sqlite": ["deleted", "locked", "read-only"],
    "json array": ["folder is gone"],
    "json lines": ["folder is gone"],
    "phidata in PostgreSQL": ["unreachable", "schema renamed", "read-only"],
    "phidata in a file": ["locked"],
    "redis": ["nothing there", "frozen", "read-only"],
}
"""Kinds of stores that the tests have without a network, and what is wrong with each in turn."""


@pytest.fixture
def agent(
    request: pytest.FixtureRequest, agent_tables: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    match request.param:
        case "sqlite":
            made: Any = SqliteAgent(tmp_path)
        case "json array":
            made = ArrayAgent(tmp_path / "files")
        case "json lines":
            made = LinesAgent(tmp_path / "files")
        case "redis":
            made = RedisAgent(request.getfixturevalue("redis_server"), monkeypatch)
        case "phidata in a file":
            made = PhidataAgent(InFile(tmp_path))
        case _:
            url = request.getfixturevalue("second_database")
            drop_schema(url)
            made = PhidataAgent(InPostgres(url))
    yield made
    if hasattr(made, "close"):
        made.close()


def trouble(agent: Any, name: str) -> AbstractContextManager[Any]:
    if name != "read-only":
        return agent.troubles()[name]()  # type: ignore[no-any-return]
    return read_only(agent)


@contextmanager
def read_only(agent: Any) -> Iterator[None]:
    """The store can be read as before, and takes no change."""
    match agent:
        case RedisAgent():
            server: RedisServer = agent.server
            # As a primary that has lost its replicas.
            server.client.config_set("min-replicas-to-write", 1)
            yield
            server.client.config_set("min-replicas-to-write", 0)
        case PhidataAgent():
            database(agent, "SET default_transaction_read_only = on")
            yield
            database(agent, "RESET default_transaction_read_only")
        case SqliteAgent():
            with agent.read_only():
                yield


def database(agent: PhidataAgent, setting: str) -> None:
    """For all connections: those that are open end."""
    name = agent.place.url.database
    with second_connection(autocommit=True) as server:
        server.execute(f'ALTER DATABASE "{name}" {setting}')
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    engine_for(agent.place.url).dispose()


AT_EACH_CALL = {
    ("sqlite", "locked"),
    ("redis", "read-only"),
}
"""The others are tried before a release: `tests/stores` has what each kind makes of each trouble."""


def cases() -> list[Any]:
    pairs = [(kind, name) for kind, names in KINDS.items() for name in names]
    assert set(pairs) > AT_EACH_CALL
    return [
        pytest.param(*pair, id=" ".join(pair), marks=() if pair in AT_EACH_CALL else pytest.mark.release)
        for pair in pairs
    ]


@pytest.mark.parametrize(("agent", "wrong"), cases(), indirect=["agent"])
def test_it_waits_for_the_store_erases_what_it_can_and_ends_when_the_store_is_back(
    agent: Any, wrong: str, officer: User, second: User
) -> None:
    attach_main_store()
    subject = with_sessions("ada", by=officer)
    agent.add("elsewhere", *(user(f"item {number}") for number in range(ITEMS)))
    discover(agent.store)
    attach_sessions(SessionRecord.objects.filter(session_id="elsewhere"), subject, by=officer)
    Signal.objects.create(subject=subject, kind="preference", text="tea")
    TextSearch.objects.create(text="ada", searched_by=officer, expires_at=now() + timedelta(hours=1))
    request = approved(subject, by=officer, second=second)

    with trouble(agent, wrong):
        run = work_off(request)
        assert (run.state, request.state, request.receipt) == (Run.State.WAITING, State.RUNNING, "")
        step = ErasureStep.objects.get(request=request, place=agent.store.name)
        assert (step.state, step.erased) == (StepState.WAITING, 0)
        assert agent.store.name in step.reason
        assert (items_of("ada"), TextSearch.objects.count()) == (0, 0), "the other steps went on"
        assert Signal.objects.exists(), "what is found by the sessions waits for them"
        assert SubjectAlias.objects.filter(subject=subject).exists()

    retry(run)
    work_to_the_end(request)
    assert request.state == State.COMPLETE
    counts = erased_of(request)
    assert (counts["sessions/main"], counts[f"sessions/{agent.store.name}"]) == (50, ITEMS)
    assert not agent.leftovers("item 3")
    assert not Signal.objects.exists()


def test_a_store_that_is_away_at_the_second_scan_is_waited_for(
    agent_tables: None, tmp_path: Path, officer: User, second: User
) -> None:
    """It has a session that a hold kept, and that is therefore looked for by its id."""
    request, agent = with_a_file(tmp_path, officer, second)
    hold = make_hold(SessionRecord.objects.get(session_id="elsewhere"), by=officer)
    work_off(request)
    receipt = request.receipt
    assert (request.state, json.loads(receipt)["payload"]["outcome"]) == (State.SCANNING, "exceptions")
    released(hold, by=officer, second=second)
    with trouble(agent, "locked"):
        a_day_later(request)
        run = work_off(request)
        assert run.state == Run.State.WAITING
        assert (request.state, request.receipt, len(request.scans)) == (State.SCANNING, receipt, 1)
    work_to_the_end(request)
    assert request.state == State.COMPLETE
    assert not agent.leftovers("item 3")
    agent.close()


def test_left_out_by_decision_it_is_an_exception_on_the_receipt(
    agent_tables: None, tmp_path: Path, officer: User, second: User
) -> None:
    request, agent = with_a_file(tmp_path, officer, second)
    with trouble(agent, "deleted"):
        run = work_off(request)
        assert run.state == Run.State.WAITING
        step = ErasureStep.objects.get(request=request, place="files")
        services.leave_out(request, step, note="the disk of the server is lost", by=second)
        with pytest.raises(services.WrongState):
            services.leave_out(request, step, note="again", by=second)
        retry(run)
        work_to_the_end(request)
    assert request.state == State.COMPLETE_WITH_EXCEPTIONS
    payload = json.loads(request.receipt)["payload"]
    assert payload["outcome"] == "exceptions"
    assert payload["exceptions"] == [
        {"code": "left_out", "place": "sessions/files", "count": ITEMS},
        {"code": "left_out", "place": "identity", "count": 1},
    ], "its session keeps its id, by which somebody finds it there"
    assert payload["counts"]["sessions/files"] == 0
    assert "disk" not in request.receipt
    agent.close()


def test_a_store_that_is_away_at_the_scan_can_be_left_out(
    agent_tables: None, tmp_path: Path, officer: User, second: User
) -> None:
    """Also one in which the person has nothing."""
    request, agent = with_a_file(tmp_path, officer, second)
    another = without_sessions_of_the_person(tmp_path)
    with trouble(another, "deleted"):
        run = work_off(request)
        assert run.state == Run.State.WAITING
        assert run.reason == (
            "The store another does not respond. To leave it out, choose “End without it” on the page of the case."
        )
        assert request.state == State.RUNNING
        step = ErasureStep.objects.get(request=request, place="another")
        assert step.state == StepState.WAITING
        services.leave_out(request, step, note="the server was scrapped", by=second)
        retry(run)
        work_off(request)
        assert request.state == State.SCANNING
    assert erased_of(request)["sessions/files"] == ITEMS
    with trouble(agent, "deleted"):
        a_day_later(request)
        run = work_off(request)
        assert (run.state, request.state) == (Run.State.WAITING, State.SCANNING)
        services.leave_out(request, ErasureStep.objects.get(request=request, place="files"), note="this too", by=second)
        retry(run)
        work_off(request)
    assert request.state == State.COMPLETE_WITH_EXCEPTIONS
    assert [(row["code"], row["place"]) for row in json.loads(request.receipt)["payload"]["exceptions"]] == [
        ("left_out", "sessions/another"),
        ("left_out", "sessions/files"),
    ]
    agent.close()


def test_a_store_that_is_removed_while_it_is_waited_for_no_longer_counts(
    agent_tables: None, tmp_path: Path, officer: User, second: User
) -> None:
    request, agent = with_a_file(tmp_path, officer, second)
    another = without_sessions_of_the_person(tmp_path)
    with trouble(another, "deleted"):
        run = work_off(request)
        assert run.reason.startswith("The store another does not respond.")
        another.store.delete()
        retry(run)
        work_to_the_end(request)
    assert request.state == State.COMPLETE
    agent.close()


def test_only_a_store_that_was_attached_or_has_records_is_waited_for(
    kept_main_store: SessionStore, officer: User, second: User
) -> None:
    """The others are left by an attachment that was killed, or refused by an older version."""
    typo = declare_store("typo", kind="sqlite", options={"path": "/srv/agents/typo.db"})
    request = approved(with_sessions("ada", by=officer), by=officer, second=second)
    work_off(request)
    assert (request.state, bool(request.receipt)) == (State.SCANNING, True)
    make_session("somebody's", store=typo)
    a_day_later(request)
    run = work_off(request)
    assert run.state == Run.State.WAITING
    assert run.reason.startswith("The store typo does not respond.")


def test_a_store_that_is_back_is_not_left_out(agent_tables: None, tmp_path: Path, officer: User, second: User) -> None:
    request, agent = with_a_file(tmp_path, officer, second)
    work_off(request)
    a_day_later(request)
    with trouble(agent, "deleted"):
        run = work_off(request)
        step = ErasureStep.objects.get(request=request, place="files")
        assert step.state == StepState.WAITING
    retry(run)
    work_off(request)
    step.refresh_from_db()
    assert (request.state, step.state, step.reason, step.erased) == (State.COMPLETE, StepState.DONE, "", ITEMS)
    with pytest.raises(services.WrongState):
        services.leave_out(request, step, note="too late", by=second)
    agent.close()


def test_each_store_that_is_away_at_the_search_waits(
    kept_main_store: SessionStore, tmp_path: Path, officer: User, second: User
) -> None:
    request = approved(with_sessions("ada", by=officer), by=officer, second=second)
    agents = [without_sessions_of_the_person(tmp_path, name) for name in ("one", "two")]
    with trouble(agents[0], "deleted"), trouble(agents[1], "deleted"):
        work_off(request)
    waiting = ErasureStep.objects.filter(request=request, state=StepState.WAITING)
    assert list(waiting.values_list("place", flat=True)) == ["one", "two"]


def without_sessions_of_the_person(folder: Path, name: str = "another") -> SqliteAgent:
    """A file of SQLite in which nobody has a session."""
    (folder / name).mkdir()
    agent = SqliteAgent(folder / name, name=name)
    SessionRecord.objects.filter(store=agent.store).delete()
    return agent


def with_a_file(folder: Path, officer: User, second: User) -> tuple[SubjectRequest, SqliteAgent]:
    """An approved erasure of a person with sessions in the main store and in a file of SQLite."""
    attach_main_store()
    subject, agent = with_sessions("ada", by=officer), SqliteAgent(folder)
    agent.add("elsewhere", *(user(f"item {number}") for number in range(ITEMS)))
    discover(agent.store)
    attach_sessions(SessionRecord.objects.filter(session_id="elsewhere"), subject, by=officer)
    return approved(subject, by=officer, second=second), agent


def test_without_the_tables_of_the_main_store_it_waits(
    kept_main_store: SessionStore, officer: User, second: User
) -> None:
    request = approved(with_sessions("ada", by=officer), by=officer, second=second)
    run_sql("ALTER TABLE agent_messages RENAME TO aside")
    try:
        run = work_off(request)
    finally:
        run_sql("ALTER TABLE aside RENAME TO agent_messages")
    assert (run.state, request.state, run.attempts) == (Run.State.WAITING, State.RUNNING, 0)
    assert run.reason.startswith("The store main does not respond.")
    assert items_of("ada") == 50
    retry(run)
    work_to_the_end(request)
    assert (request.state, items_of("ada"), erased_of(request)["sessions/main"]) == (State.COMPLETE, 0, 50)


@pytest.mark.parametrize("held", [pytest.param("ada:0", marks=pytest.mark.release), "ada:1"])
def test_an_agent_that_holds_a_session_is_waited_for(
    kept_main_store: SessionStore, officer: User, second: User, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    """The first session, and the second one, when a chunk has erased the first already."""
    monkeypatch.setattr(main_kind, "ERASE_PATIENCE", timedelta(milliseconds=50))
    request = approved(with_sessions("ada", by=officer), by=officer, second=second)
    with second_connection() as writer:
        # As the SDK does within the transaction of a turn.
        writer.execute("UPDATE agent_sessions SET updated_at = now() WHERE session_id = %s", [held])
        run = work_off(request)
        assert (run.state, request.state, run.attempts) == (Run.State.WAITING, State.RUNNING, 0)
        assert run.reason == "An agent uses a session of main."
        assert items_of("ada") == {"ada:0": 50, "ada:1": 25}[held]
        assert erased_of(request)["sessions/main"] == 50 - items_of("ada")
    retry(run)
    work_to_the_end(request)
    assert (request.state, items_of("ada"), erased_of(request)["sessions/main"]) == (State.COMPLETE, 0, 50)
