"""Runs that come one after the other, many at once, and into trouble: none is told of another's subject, none fails."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, trace
from agents.testing import function_call

from memadmin.client import connection as connecting
from memadmin.client.connection import Console
from memadmin.client.hooks import MemoryHooks
from memadmin.client.learning import Evidence
from memadmin.client.memories import MemoryClient
from memadmin.client.prompt_context import memory_filter
from memadmin.client.proposal_results import RefusalReason, refused_with
from memadmin.client.sessions import SubjectMismatch
from memadmin.client.subjects import NOBODY, Subject
from memadmin.client.tools import memory_tools
from memories_app.models import Evidence as StoredEvidence
from memories_app.models import Memory, Recall, Signal
from sessions_app.models import SessionRecord, SessionStore, SubjectKind
from sessions_app.models import Subject as StoredSubject
from sessions_app.services.store_config import declare_store
from sessions_app.services.subjects import subject_for_key
from sessions_app.stores import backend_for
from tests.agents import database_role, run_sql, second_connection
from tests.client.agents import Customer, client_at, in_agent, plain_bot, scripted, talk
from tests.client.test_memories import REMEMBER, TEA, instructed, reason_of
from tests.deploy.connecting import database
from tests.memories.builders import approved

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(dsn: str) -> StoredSubject:
    return subject_for_key(SubjectKind.USER, "ada")


@pytest.fixture
def client(dsn: str, ada: StoredSubject) -> MemoryClient:
    approved(TEA, subject=ada, is_embedded=True)
    return client_at(dsn)


# --- one after the other, in one task ---------------------------------------------------------------------------------

VISITORS: dict[str, Any] = {
    "without context": None,
    "with an empty one": {},
    "with one that names nobody": Customer(),
    "with the same one": ...,
}


def test_who_comes_next_is_not_told_of_who_was_there_before(client: MemoryClient) -> None:
    """A run of Ada's whose subject the session was told; then somebody else's, without a session, in the same task."""
    options: dict[str, Any] = {"call_model_input_filter": memory_filter(client), "hooks": MemoryHooks(client)}
    bot = Agent[Any](name="Visitors", tools=memory_tools(client))
    calls = [
        [function_call("recall", {"question": "tea"}, call_id="call_1")],
        [function_call("remember", REMEMBER, call_id="call_2")],
        "Good.",
    ]

    async def run() -> list[tuple[str, Any, Any]]:
        seen = []
        for visitor, after in VISITORS.items():
            app = {"app": "the host's own"} if visitor != "without context" else None
            first = await talk(client.session(SQLiteSession("s1"), subject="ada"), "Tea?", context=app, **options)
            after = app if visitor == "with the same one" else after
            second = await talk(None, "No, I meant tea.", *calls, context=after, bot=bot, **options)
            seen.append((visitor, first, second))
        with trace("The host's own, around both", disabled=True):
            first = await talk(client.session(SQLiteSession("s1"), subject="ada"), "Tea?", context=app, **options)
            second = await talk(None, "No, I meant tea.", *calls, context=Customer(), bot=bot, **options)
            seen.append(("in one trace", first, second))
        return seen

    for visitor, first, second in in_agent(run):
        assert TEA in instructed(first), visitor
        assert [TEA in instructed(second, call) for call in range(3)] == [False] * 3, visitor
        assert TEA not in str(second.calls[1].input), visitor
    assert not Memory.objects.filter(status="proposed").exists()
    assert not Signal.objects.filter(kind="correction", subject__isnull=False).exists()


def test_after_its_run_a_program_still_speaks_of_it(client: MemoryClient, ada: StoredSubject) -> None:
    async def run() -> None:
        await talk(client.session(SQLiteSession("s1"), subject="ada"), "Tea?")
        assert (await client.recall("tea")).text
        assert (await client.recall("tea", "")).text == ""

    in_agent(run)
    assert Recall.objects.get().session_id == "s1"


def test_a_dropped_session_of_somebody_erased_is_told_nothing_of_who_was_there_before(
    client: MemoryClient, tmp_path: Any
) -> None:
    store = declare_store("bot", kind="sqlite", options={"path": str(tmp_path / "bot.db")})
    inner = SQLiteSession("gone", tmp_path / "bot.db")
    told = memory_filter(client)

    async def ada_then(name: str) -> Any:
        await talk(client.session(SQLiteSession("s1"), subject="ada"), "Tea?", call_model_input_filter=told)
        session = client.session(inner, store="bot", erased="drop")
        return await talk(session, "Tea?", context=Customer(name), call_model_input_filter=told)

    with closing(inner):
        in_agent(lambda: ada_then("bob"))
        backend_for(store).erase_session("gone")
        assert TEA not in instructed(in_agent(lambda: ada_then("bob")))


def test_a_session_under_another_id_is_registered_too(client: MemoryClient) -> None:
    async def run() -> None:
        session = client.session(SQLiteSession("s1"), subject="ada")
        await talk(session, "Tea?")
        session.session_id = "s2"
        await talk(session, "Tea?")

    in_agent(run)
    assert SessionRecord.objects.filter(session_id__in=["s1", "s2"], subject__isnull=False).count() == 2


def test_a_reused_session_serves_no_other_customer(client: MemoryClient, ada: StoredSubject) -> None:
    """One session object kept by the program, whose subject was found in the context of its first run."""
    options: dict[str, Any] = {"call_model_input_filter": memory_filter(client), "hooks": MemoryHooks(client)}

    async def run() -> list[Any]:
        session = client.session(SQLiteSession("s1"))
        seen = [await talk(session, "Tea?", context=Customer("ada"), **options)]
        before = await session.get_items()
        with pytest.raises(SubjectMismatch, match="another subject"):
            await talk(session, "No, I meant tea.", context=Customer("bob"), **options)
        assert await session.get_items() == before
        # The customer of the session is served as before; a visitor without an id is not served as that customer.
        seen += [await talk(session, "Tea?", context=Customer(who), **options) for who in ("ada", "")]
        session.session_id = "s2"
        return [*seen, await talk(session, "Tea?", context=Customer("bob"), **options)]

    assert [TEA in instructed(model) for model in in_agent(run)] == [True, True, False, False]
    assert not Signal.objects.filter(kind="correction").exists()
    subjects = dict(SessionRecord.objects.values_list("session_id", "subject__aliases__key"))
    assert subjects == {"s1": "ada", "s2": "bob"}


def test_nobody_is_not_everybody(client: MemoryClient) -> None:
    """A host whose customer has no id yet proposes nothing that all agents would read."""
    for nobody in ("", NOBODY):
        assert reason_of(client, "Is the owner.", subject=nobody) is RefusalReason.NO_SUBJECT
    finder = MemoryClient(client.console, subject_in=lambda context: Subject(""))
    assert not finder.subject_in_run({})


# --- agents within agents ---------------------------------------------------------------------------------------------


def test_an_agent_used_as_a_tool_and_calls_side_by_side_are_told_of_the_same_subject(
    client: MemoryClient, ada: StoredSubject
) -> None:
    told = memory_filter(client)
    inner = scripted("Tea, then.")
    helper = Agent[Any](name="Helper", instructions="You look things up.", model=inner)
    as_tool = helper.as_tool(
        "ask_helper",
        "Asks the helper.",
        run_config=RunConfig(tracing_disabled=True, call_model_input_filter=told),
    )
    bot = Agent[Any](name="Front", tools=[as_tool, *memory_tools(client)])

    async def run() -> None:
        session = client.session(SQLiteSession("s1"), subject="ada")
        calls = [
            function_call("ask_helper", {"input": "What does she drink?"}, call_id="call_1"),
            function_call("remember", REMEMBER, call_id="call_2"),
            function_call("recall", {"question": "tea"}, call_id="call_3"),
        ]
        await talk(session, "What shall I drink?", calls, "Tea.", bot=bot, call_model_input_filter=told)

    in_agent(run)
    assert TEA in instructed(inner)
    assert Memory.objects.get(status="proposed").subject == ada
    assert set(Recall.objects.values_list("session_id", "subject")) == {("s1", ada.pk)}
    assert Recall.objects.count() == 3


def test_a_run_that_a_person_lets_go_on_is_told_as_before(client: MemoryClient) -> None:
    @function_tool(needs_approval=True)
    def ring() -> str:
        return "rang"

    bot = Agent[Any](name="Bell", tools=[ring])
    models = [scripted([function_call("ring", {}, call_id="call_1")], "It rang.") for _ in range(2)]

    async def run() -> None:
        for model in models:
            config = RunConfig(model=model, tracing_disabled=True, call_model_input_filter=memory_filter(client))
            session, context = client.session(SQLiteSession("s1")), Customer("ada")
            waiting = await Runner.run(bot, "Ring for tea!", session=session, run_config=config, context=context)
            state = waiting.to_state()
            state.approve(waiting.interruptions[0])
            if model is models[0]:
                await Runner.run(bot, state, session=session, run_config=config)
            else:
                async for _ in Runner.run_streamed(bot, state, session=session, run_config=config).stream_events():
                    pass

    in_agent(run)
    assert [TEA in instructed(model, call) for model in models for call in range(2)] == [True] * 4


def test_runner_without_a_loop_of_ones_own(client: MemoryClient) -> None:
    """`run_sync` in a thread, as scripts and synchronous web servers have it; twice, with one client."""
    models = [scripted("Tea."), scripted("Tea.")]

    def script() -> None:
        asyncio.set_event_loop(loop := asyncio.new_event_loop())
        for model in models:
            session = client.session(SQLiteSession("s1"), subject="ada")
            config = RunConfig(model=model, tracing_disabled=True, call_model_input_filter=memory_filter(client))
            Runner.run_sync(plain_bot(), "Tea?", session=session, run_config=config)
        loop.run_until_complete(client.aclose())
        loop.close()

    thread = threading.Thread(target=script)
    thread.start()
    thread.join()
    assert all(TEA in instructed(model) for model in models)


def test_what_a_run_was_told_is_on_record_though_the_run_fails(client: MemoryClient) -> None:
    class Down(Exception):
        pass

    async def run() -> None:
        session = client.session(SQLiteSession("s1"), subject="ada")
        with pytest.raises(Down):
            await talk(session, "Tea?", Down("the model's service"), call_model_input_filter=memory_filter(client))

    in_agent(run)
    assert list(Recall.objects.get().memories.values_list("memory__statement", flat=True)) == [TEA]


# --- many at once -----------------------------------------------------------------------------------------------------


def test_fifty_runs_at_once_are_all_told(client: MemoryClient) -> None:
    told = memory_filter(client)

    async def run() -> list[Any]:
        sessions = [client.session(SQLiteSession(f"s{number}"), subject="ada") for number in range(50)]
        return await asyncio.gather(*(talk(each, "Tea?", call_model_input_filter=told) for each in sessions))

    assert [TEA in instructed(model) for model in in_agent(run)] == [True] * 50
    assert Recall.objects.count() == 50


def test_never_more_connections_than_that(client: MemoryClient) -> None:
    at_once = most = 0
    all_open = asyncio.Event()

    async def work(_: Any) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if at_once == connecting.MOST_OPEN:
            all_open.set()
        await all_open.wait()
        await asyncio.sleep(0.01)
        at_once -= 1

    async def run() -> None:
        await asyncio.gather(*(client.console.ask(work) for _ in range(50)))

    in_agent(run)
    assert most == connecting.MOST_OPEN


def test_a_program_that_starts_loop_after_loop_leaves_no_connections_behind(dsn: str) -> None:
    """One console, a loop for each call, none closed by hand: what scripts with `asyncio.run` do."""
    console = Console(dsn, seconds=30)

    async def ask() -> None:
        async def work(link: Any) -> None:
            await link.execute("SELECT 1")

        await console.ask(work)

    def program() -> None:
        for _ in range(6):
            asyncio.run(ask())

    thread = threading.Thread(target=program)
    thread.start()
    thread.join()
    in_agent(lambda: closed_after(console, ask))
    assert len(console._places) == 1


async def closed_after(console: Console, ask: Callable[[], Awaitable[None]]) -> None:
    await ask()
    await console.aclose()


def test_threads_with_loops_of_their_own_share_one_client(client: MemoryClient) -> None:
    problems: list[BaseException] = []

    def program(number: int) -> None:
        async def run() -> None:
            session = client.session(SQLiteSession(f"t{number}"), subject="ada")
            model = await talk(session, "Tea?", call_model_input_filter=memory_filter(client))
            assert TEA in instructed(model)
            await client.aclose()

        try:
            asyncio.run(run())
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=program, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert Recall.objects.count() == 6


def test_a_cancelled_run_leaves_a_console_that_works(client: MemoryClient, dsn: str) -> None:
    async def run() -> str:
        entered = asyncio.Event()

        async def slow(link: Any) -> None:
            entered.set()
            await link.execute("SELECT pg_sleep(600)")

        asking = asyncio.create_task(client.console.ask(slow))
        await entered.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        return (await client.recall("tea", "ada")).text

    assert TEA in in_agent(run)


@pytest.mark.parametrize("sqlstate", ["40P01", "40001"])
def test_what_gives_way_to_another_transaction_is_tried_again_and_no_outage(
    sqlstate: str, client: MemoryClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A deadlock with an erasure is nothing that other runs should do without memories for."""
    tries = 0

    async def give_way(link: Any, times: int) -> int:
        nonlocal tries
        tries += 1
        if tries <= times:
            await link.execute(f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{sqlstate}'; END $$")
        return tries

    async def run() -> None:
        nonlocal tries
        assert await client.console.ask(partial(give_way, times=1)) == 2
        tries = 0
        with pytest.raises(connecting.RefusedByDatabase) as refused:
            await client.console.ask(partial(give_way, times=9))
        assert tries == 2
        assert refused_with(refused.value.sqlstate).reason is RefusalReason.IN_THE_WAY
        assert TEA in (await client.recall("tea", "ada")).text

    in_agent(run)
    assert "away" not in caplog.text


# --- trouble ----------------------------------------------------------------------------------------------------------


@contextmanager
def server(answer: bytes | None) -> Iterator[int]:
    """Something else at the database's port: says these bytes to everybody, or nothing at all and keeps listening."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    caller, _ = listening.accept()
                except OSError:
                    return
                held.append(caller)
                if answer is not None:
                    caller.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for caller in held:
                caller.close()


async def goes_on(client: MemoryClient) -> Any:
    """A run that uses all there is, and comes to its end with its own words."""
    inner = SQLiteSession("s1")
    bot = Agent[Any](name="Support", instructions="You help.", tools=memory_tools(client))
    calls = [
        [
            function_call("remember", REMEMBER, call_id="call_1"),
            function_call("recall", {"question": "x"}, call_id="call_2"),
            function_call("forget", {"what": "x"}, call_id="call_3"),
        ],
        "Good.",
    ]
    options = {"call_model_input_filter": memory_filter(client), "hooks": MemoryHooks(client)}
    session = client.session(inner, subject="hidden-name")
    model = await talk(session, "No, I meant tea.", *calls, bot=bot, **options)
    items: list[Any] = await inner.get_items()
    assert items[-1]["content"][0]["text"] == "Good."
    assert len(items) == 8
    assert instructed(model) == "You help."
    return items


TROUBLE: dict[str, str] = {
    "nobody listens": "host=127.0.0.1 port=1 dbname=x",
    "no such address": "host=/nowhere dbname=x",
    "not even an address": "postgres is over there",
    "an option nobody knows": "postgresql+asyncpg://db/x?ssl=require",
    "wrong password": "{dsn} user=nobody_of_this_name",
    "no such database": "{dsn} dbname=no_database_of_this_name",
}


def test_a_run_goes_on_whatever_is_wrong_with_the_address(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    for trouble, where in TROUBLE.items():
        caplog.clear()
        in_agent(partial(goes_on, client_at(where.format(dsn=dsn))))
        warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(warnings) == 1, trouble
        assert "is not responding" in warnings[0], trouble
        for word in ("hidden-name", "nobody_of", "no_database", "over there", "I meant"):
            assert word not in caplog.text, trouble


def test_a_run_goes_on_when_something_else_answers_or_nothing(caplog: pytest.LogCaptureFixture) -> None:
    for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00" * 400, b"E\x00\x00", None):
        caplog.clear()
        with server(answer) as port:
            where = f"host=127.0.0.1 port={port} dbname=x sslmode=disable"
            in_agent(partial(goes_on, client_at(where, seconds=0.3)))
        assert caplog.text.count("is not responding") == 1, answer


def test_a_run_goes_on_in_a_database_without_our_tables(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    with second_connection(autocommit=True) as other:
        other.execute("CREATE SCHEMA empty_one")
        try:
            in_agent(lambda: goes_on(client_at(f"{dsn} options='-c search_path=empty_one'")))
        finally:
            other.execute("DROP SCHEMA empty_one")
    assert "42883" in caplog.text
    assert "away" not in caplog.text


def test_a_run_goes_on_where_its_role_may_nothing(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    with database_role("may_nothing") as role:
        run_sql(f"ALTER ROLE {role} LOGIN; GRANT CONNECT ON DATABASE {database()} TO {role}")
        in_agent(lambda: goes_on(client_at(f"{dsn} user={role}")))
    assert "42501" in caplog.text


def test_a_run_goes_on_when_the_server_has_no_connection_left(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from psycopg import AsyncConnection, errors

    async def full(*args: Any, **options: Any) -> Any:
        raise errors.TooManyConnections("sorry, too many clients already")

    monkeypatch.setattr(AsyncConnection, "connect", full)
    in_agent(lambda: goes_on(client_at(dsn)))


def test_a_run_goes_on_when_a_function_of_ours_answers_otherwise(dsn: str, main_store: SessionStore) -> None:
    """Of another version, say: no rows where one was expected."""
    with second_connection(autocommit=True) as other:
        other.execute("CREATE SCHEMA other_version")
        other.execute(
            "CREATE FUNCTION other_version.memadmin_register_session(a text, b text, c text, d text, e text, f text)"
            " RETURNS TABLE (record uuid, subject uuid) LANGUAGE sql AS 'SELECT NULL::uuid, NULL::uuid WHERE false';"
            "CREATE FUNCTION other_version.memadmin_subject_for(a text, b text) RETURNS text LANGUAGE sql"
            " AS $$ SELECT 'seven' $$; GRANT USAGE ON SCHEMA other_version TO PUBLIC"
        )
        try:
            in_agent(lambda: goes_on(client_at(f"{dsn} options='-c search_path=other_version,public'")))
        finally:
            other.execute("DROP SCHEMA other_version CASCADE")


def test_what_no_value_is_refuses_one_proposal_and_nothing_else(client: MemoryClient) -> None:
    """An object of the host's that the driver cannot send is no outage of the database."""

    async def run() -> list[Any]:
        refused = [
            await client.propose("Drinks oolong.", subject="ada", confidence=object()),  # type: ignore[arg-type]
            await client.propose("Drinks oolong.", subject=Subject(object())),  # type: ignore[arg-type]
            await client.propose("Drinks oolong.", subject="ada", data=nested(100_000)),
            await client.propose("Drinks oolong.", subject="ada", evidence=[Evidence("x")] * 51),
            await client.propose("Drinks oolong.", subject="ada", agents=["x"] * 51),
        ]
        assert (await client.recall("tea", "ada")).text
        return refused

    refused = in_agent(run)
    assert [answer.reason for answer in refused] == [RefusalReason.UNREADABLE] * 3 + [RefusalReason.TOO_MANY] * 2
    assert not StoredEvidence.objects.exists()


def nested(depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(depth):
        made = {"a": made}
    return made


def test_an_embedder_that_hangs_takes_no_thread_that_the_agent_needs(dsn: str, ada: StoredSubject) -> None:
    """The SDK's sessions in SQLite do their work in the loop's own threads."""
    approved(TEA, subject=ada, is_embedded=True)
    released, asked = threading.Event(), 0

    class Hanging:
        name = "hanging"

        def embed(self, texts: Any) -> list[list[float]]:
            nonlocal asked
            asked += 1
            released.wait()
            return [[1.0]]

    async def run() -> None:
        client = client_at(dsn, embedder=Hanging(), seconds=0.5)
        found = await asyncio.gather(*(client.recall("tea", "ada") for _ in range(40)))
        client.console.seconds, client.console._rests_until = 30, 0.0
        assert (await client.recall("tea", "ada")).text
        # None of the loop's threads is taken: it has as many as before.
        assert await asyncio.to_thread(lambda: 7) == 7
        assert len(found) == 40
        await talk(client.session(SQLiteSession("s1"), subject="ada"), "Tea?")

    try:
        in_agent(run)
    finally:
        released.set()
    assert asked <= 2
