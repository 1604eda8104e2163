"""A governed session is the session inside of it, known to the console, and harmless where the console is away."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from agents import Agent, RunConfig, Runner, SessionSettings, SQLiteSession, function_tool
from agents.extensions.memory import AdvancedSQLiteSession, EncryptedSession, RedisSession, SQLAlchemySession
from agents.extensions.memory.async_sqlite_session import AsyncSQLiteSession
from agents.memory import OpenAIConversationsSession, OpenAIResponsesCompactionSession, Session
from agents.testing import function_call
from cryptography.fernet import Fernet
from django.db import connection, transaction
from openai import AsyncOpenAI

from memadmin.client.connection import Console
from memadmin.client.sessions import GovernedSession, SecretRefused, Subject, SubjectErased, SubjectMismatch
from memadmin.demo.script import FakeCompaction
from memadmin.deploy.roles import Roles
from sessions_app.models import AgentMessage, SessionRecord, SessionStore, SubjectKind
from sessions_app.services.erasing_subjects import fence_subject
from sessions_app.services.store_config import declare_store
from sessions_app.services.subjects import subject_for_key
from sessions_app.stores import backend_for
from tests.agents import second_connection
from tests.client.agents import Customer, console_at, in_agent, in_postgres, plain_bot, scripted, talk
from tests.client.conftest import address
from tests.stores.conversations_api import KEY, ConversationsServer
from tests.stores.servers import RedisServer

pytestmark = pytest.mark.django_db(transaction=True)

SECRET_KEY = Fernet.generate_key().decode()

Maker = Callable[[Path, str], Session]


def compacting(inner: Session) -> Session:
    return OpenAIResponsesCompactionSession(
        inner.session_id,
        inner,
        client=cast(AsyncOpenAI, FakeCompaction()),
        compaction_mode="input",
        should_trigger_compaction=lambda now: len(now["compaction_candidate_items"]) >= 3,
    )


def encrypted(inner: Session) -> Session:
    return EncryptedSession(inner.session_id, cast(Any, inner), SECRET_KEY)


KINDS: dict[str, Maker] = {
    "SQLAlchemy on PostgreSQL": lambda folder, name: in_postgres(name),
    "SQLAlchemy on SQLite": lambda folder, name: SQLAlchemySession.from_url(
        name, url=f"sqlite+aiosqlite:///{folder}/{name}-alchemy.db", create_tables=True
    ),
    "SQLite": lambda folder, name: SQLiteSession(name, folder / f"{name}.db"),
    "asynchronous SQLite": lambda folder, name: AsyncSQLiteSession(name, folder / f"{name}-async.db"),
    "advanced SQLite": lambda folder, name: AdvancedSQLiteSession(
        session_id=name, db_path=folder / f"{name}-advanced.db", create_tables=True
    ),
    "encrypted": lambda folder, name: encrypted(SQLiteSession(name, folder / f"{name}.db")),
    "compacting": lambda folder, name: compacting(in_postgres(name)),
    "encrypted and compacting": lambda folder, name: encrypted(compacting(SQLiteSession(name, folder / f"{name}.db"))),
}


@pytest.fixture
def console(main_store: SessionStore) -> Console:
    """Under the owner's role: what agents may is tried further below."""
    return console_at(address())


def as_told(items: list[Any]) -> list[Any]:
    """Without ids and opaque texts that are made anew each time."""
    return [
        {name: value for name, value in item.items() if name not in ("id", "call_id", "encrypted_content")}
        for item in map(dict, items)
    ]


async def everything_that_sessions_do(session: Session) -> list[Any]:
    """What the SDK's own tests of sessions do with one, and all that came of it."""
    seen: list[Any] = [await session.get_items(), await session.pop_item()]
    words = ["first", "tea \N{HOT BEVERAGE} 茶", "quotes ' \" \\ and \n lines", "; DROP TABLE agent_messages"]
    await session.add_items([{"role": "user", "content": word} for word in words])
    await session.add_items([])
    seen += [await session.get_items(), await session.get_items(limit=2), await session.get_items(limit=100)]
    seen += [await session.pop_item(), await session.get_items()]
    await session.clear_session()
    seen += [await session.get_items()]

    asked = []
    for said in ("What city is the bridge in?", "And the country?"):
        model = await talk(session, said, "San Francisco.")
        asked.append(as_told(cast(Any, model.calls[0].input)))
    seen.append(asked)

    result = Runner.run_streamed(
        plain_bot(),
        "How many people?",
        session=session,
        run_config=RunConfig(model=scripted("Many."), tracing_disabled=True),
    )
    async for _ in result.stream_events():
        pass
    seen.append(as_told(await session.get_items()))

    session.session_settings = SessionSettings(limit=1)
    model = await talk(session, "Only the last?", "Yes.")
    seen.append(as_told(cast(Any, model.calls[0].input)))
    session.session_settings = SessionSettings(limit=None)

    @function_tool(needs_approval=True)
    def ring(bell: str) -> str:
        return f"{bell} rang"

    bot: Agent[Any] = Agent(name="Bell", tools=[ring])
    config = RunConfig(
        model=scripted([function_call("ring", {"bell": "door"}, call_id="call_1")], "It rang."), tracing_disabled=True
    )
    waiting = await Runner.run(bot, "Ring!", session=session, run_config=config)
    state = waiting.to_state()
    state.approve(waiting.interruptions[0])
    rung = await Runner.run(bot, state, session=session, run_config=config)
    seen += [rung.final_output, as_told(await session.get_items())]

    for _ in range(40):
        if await session.pop_item() is None:
            break
    seen.append(await session.get_items())
    return [as_told(each) if isinstance(each, list) and each and isinstance(each[0], dict) else each for each in seen]


async def close(session: Any) -> None:
    """Some have connections with threads of their own."""
    if isinstance(session, SQLAlchemySession):
        await session.engine.dispose()
    elif isinstance(session, AsyncSQLiteSession):
        await session.close()


@pytest.mark.parametrize("kind", KINDS)
def test_it_does_what_the_session_inside_of_it_does(kind: str, console: Console, tmp_path: Path) -> None:
    declare_store("elsewhere", kind="sqlite", options={"path": str(tmp_path / "governed.db")})
    store = "main" if "PostgreSQL" in kind or kind == "compacting" else "elsewhere"

    async def compared() -> tuple[list[Any], list[Any]]:
        bare, inner = KINDS[kind](tmp_path, "alone"), KINDS[kind](tmp_path, "governed")
        governed = GovernedSession(inner, console=console, store=store)
        try:
            return await everything_that_sessions_do(bare), await everything_that_sessions_do(governed)
        finally:
            await close(bare)
            await close(inner)

    alone, governed = in_agent(compared)
    assert governed == alone
    assert SessionRecord.objects.filter(store__name=store, session_id="governed").exists()


def test_it_does_what_a_session_in_redis_does(console: Console, redis_server: RedisServer, tmp_path: Path) -> None:
    declare_store("elsewhere", kind="sqlite", options={"path": str(tmp_path / "x.db")})
    url = f"redis://127.0.0.1:{redis_server.port}"

    async def compared() -> tuple[list[Any], list[Any]]:
        alone, inner = (RedisSession.from_url(name, url=url) for name in ("alone", "governed"))
        try:
            return (
                await everything_that_sessions_do(alone),
                await everything_that_sessions_do(GovernedSession(inner, console=console, store="elsewhere")),
            )
        finally:
            await alone.close()
            await inner.close()

    alone, governed = in_agent(compared)
    assert governed == alone


def test_a_conversation_that_openai_keeps_is_treated_as_one(console: Console, tmp_path: Path) -> None:
    """Its items lose what the service refuses, and it is known as soon as the service has given it an id."""
    declare_store("conversations", kind="sqlite", options={"path": str(tmp_path / "x.db")})

    async def told(url: str) -> tuple[str, list[Any]]:
        client = AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0)
        session = GovernedSession(
            OpenAIConversationsSession(openai_client=client), console=console, store="conversations", subject="ada"
        )
        await talk(session, "Hello.", "Good day.")
        await talk(session, "Again.", "Good day again.")
        items = await session.get_items()
        await client.close()
        return session.session_id, [(item["role"], item["content"][0]["text"]) for item in cast(Any, items)]

    server = ConversationsServer()
    try:
        session_id, items = in_agent(lambda: told(server.address))
    finally:
        server.end()
    assert [text for _, text in items] == ["Hello.", "Good day.", "Again.", "Good day again."]
    assert SessionRecord.objects.get(session_id=session_id).subject is not None


# --- what the console learns ------------------------------------------------------------------------------------------


def subject_key_of(session_id: str) -> tuple[str, str, str, str]:
    record = SessionRecord.objects.get(session_id=session_id)
    alias = record.subject.aliases.get() if record.subject else None
    return (alias.kind, alias.key, record.ticket, record.agent) if alias else ("", "", record.ticket, record.agent)


def test_session_and_subject_are_registered_under_the_agents_role(dsn: str, kept_in_force: Roles) -> None:
    async def run() -> None:
        session = GovernedSession(
            in_postgres("s1", role=kept_in_force["agents"]),
            console=console_at(dsn),
            store="main",
            subject=Subject("p1", "project"),
            ticket="T-7",
            agent="Support",
        )
        await talk(session, "Hello.")

    in_agent(run)
    assert subject_key_of("s1") == ("project", "p1", "T-7", "Support")
    assert AgentMessage.objects.filter(session_id="s1").count() == 2


CONTEXTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "attribute": (Customer("ada"), {}),
    "key": ({"user_id": "ada"}, {}),
    "another name": ({"account": "ada"}, {"subject_in": "account"}),
    "function": (["ada"], {"subject_in": lambda context: context[0]}),
    "given": (Customer("bob"), {"subject": "ada"}),
}


def test_the_subject_is_found_in_the_context_of_the_run(console: Console) -> None:
    async def run() -> None:
        for how, (context, options) in CONTEXTS.items():
            session = GovernedSession(in_postgres(how), console=console, store="main", **options)
            await talk(session, "Hello.", context=context)

    in_agent(run)
    assert {how: subject_key_of(how)[:2] for how in CONTEXTS} == dict.fromkeys(CONTEXTS, ("user", "ada"))


def test_without_a_subject_the_session_alone_is_registered(console: Console) -> None:
    def broken(found: Any) -> str:
        raise LookupError(found)

    contexts: list[Any] = [None, Customer(), 7, {"user_id": None}]

    async def run() -> None:
        for number, context in enumerate(contexts):
            first = GovernedSession(in_postgres(f"first {number}"), console=console, store="main")
            await talk(first, "Hello.", context=context)
            second = GovernedSession(in_postgres(f"second {number}"), console=console, store="main", subject_in=broken)
            await talk(second, "Hello.", context=context)

    in_agent(run)
    for number, context in enumerate(contexts):
        for name in ("first", "second"):
            assert subject_key_of(f"{name} {number}")[:2] == ("", ""), (name, context)


def test_it_is_told_once_and_again_only_when_the_subject_becomes_known(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    register = GovernedSession._register

    async def counted(self: GovernedSession, connection: Any) -> Any:
        told.append(self.subject.key if self.subject else "")
        return await register(self, connection)

    monkeypatch.setattr(GovernedSession, "_register", counted)

    async def run() -> None:
        session = GovernedSession(in_postgres("s1"), console=console, store="main")
        await session.get_items()
        await session.add_items([{"role": "user", "content": "before any run"}])
        for _ in range(3):
            await talk(session, "Hello.", context=Customer("ada"))

    in_agent(run)
    assert told == ["", "ada"]


# --- the fence --------------------------------------------------------------------------------------------------------


def erase(store: SessionStore, session_id: str) -> None:
    with transaction.atomic():
        backend_for(store).erase_session(session_id)


def test_an_erased_session_is_refused_in_the_middle_of_a_run(console: Console, main_store: SessionStore) -> None:
    """By the fence, whose refusal comes through asyncpg and SQLAlchemy."""

    async def run() -> None:
        session = GovernedSession(in_postgres("s1"), console=console, store="main", subject="ada")
        await talk(session, "Hello.")
        await asyncio.to_thread(erased_elsewhere, main_store, "s1")
        with pytest.raises(SubjectErased) as refusal:
            await talk(session, "And another thing.")
        assert refusal.value.session_id == "s1"
        assert "s1" not in str(refusal.value)

    in_agent(run)
    assert not AgentMessage.objects.exists()


def erased_elsewhere(store: SessionStore, session_id: str) -> None:
    erase(store, session_id)
    connection.close()  # of the thread that this runs in


def test_in_a_store_without_a_fence_the_registry_refuses(console: Console, tmp_path: Path) -> None:
    inner = SQLiteSession("s1", tmp_path / "bot.db")
    store = declare_store("bot", kind="sqlite", options={"path": str(tmp_path / "bot.db")})

    async def run(**options: Any) -> None:
        await talk(GovernedSession(inner, console=console, store="bot", subject="ada", **options), "Hello.")

    with closing(inner):
        in_agent(run)
        erase(store, "s1")
        with pytest.raises(SubjectErased):
            in_agent(run)
        in_agent(lambda: run(erased="drop"))
        assert in_agent(inner.get_items) == []


def test_no_session_of_an_erased_subject_is_stored(console: Console, tmp_path: Path) -> None:
    """In a store without a fence, where only the registry can tell."""
    inner = SQLiteSession("new", tmp_path / "bot.db")
    declare_store("bot", kind="sqlite", options={"path": str(tmp_path / "bot.db")})
    with transaction.atomic():
        fence_subject(subject_for_key(SubjectKind.USER, "ada"))

    async def run(**options: Any) -> None:
        await talk(GovernedSession(inner, console=console, store="bot", subject="ada", **options), "Hello.")

    with closing(inner):
        with pytest.raises(SubjectErased):
            in_agent(run)
        in_agent(lambda: run(erased="drop"))
        assert in_agent(inner.get_items) == []
    assert not SessionRecord.objects.filter(session_id="new").exists()


def test_a_session_of_another_subject_is_refused(console: Console) -> None:
    async def run(key: str) -> None:
        await talk(GovernedSession(in_postgres("s1"), console=console, store="main", subject=key), "Hello.")

    in_agent(lambda: run("ada"))
    with pytest.raises(SubjectMismatch):
        in_agent(lambda: run("eve"))
    in_agent(lambda: run("ada"))
    assert subject_key_of("s1")[:2] == ("user", "ada")


def test_broken_variant_without_the_client_an_erased_session_comes_back(
    tmp_path: Path, main_store: SessionStore
) -> None:
    inner = SQLiteSession("s1", tmp_path / "bot.db")
    store = declare_store("bot", kind="sqlite", options={"path": str(tmp_path / "bot.db")})
    with closing(inner):
        in_agent(lambda: talk(inner, "Hello."))
        erase(store, "s1")
        in_agent(lambda: talk(inner, "Hello."))
        assert len(in_agent(inner.get_items)) == 2


def test_another_error_of_the_store_stays_what_it_is(console: Console) -> None:
    class Broken(SQLiteSession):
        async def add_items(self, items: Any) -> None:
            raise RuntimeError("disk")

    with pytest.raises(RuntimeError, match="disk"):
        in_agent(lambda: talk(GovernedSession(Broken("s1"), console=console, store="main"), "Hello."))


# --- the console is away ----------------------------------------------------------------------------------------------


async def survives(console: Console) -> list[Any]:
    inner = SQLiteSession("s1")
    session = GovernedSession(inner, console=console, store="main", subject="hidden-name")
    for _ in range(3):
        await talk(session, "Not to be logged.", "Good.")
    return await inner.get_items()


def test_a_run_goes_on_when_the_console_is_away_and_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    console = console_at("host=127.0.0.1 port=1 dbname=secret-place", rest_seconds=0)
    assert len(in_agent(lambda: survives(console))) == 6
    assert [record.name for record in caplog.records if record.levelno >= logging.WARNING] == [
        "memadmin.client.connection"
    ]
    for word in ("Not to be", "hidden-name", "secret-place", "127.0.0.1"):
        assert word not in caplog.text


def test_a_run_goes_on_when_the_console_is_slow(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    with second_connection() as other:
        other.execute("LOCK TABLE sessions_app_sessionstore")
        assert len(in_agent(lambda: survives(console_at(dsn, seconds=0.2)))) == 6
    assert "no response in time" in caplog.text


def test_a_run_goes_on_when_no_store_of_this_name_is_connected(
    console: Console, caplog: pytest.LogCaptureFixture
) -> None:
    SessionStore.objects.update(name="another")
    assert len(in_agent(lambda: survives(console))) == 6
    assert "P0E03" in caplog.text


def test_the_console_is_told_as_soon_as_it_is_back(dsn: str, main_store: SessionStore) -> None:
    async def run() -> None:
        console = console_at(dsn, seconds=0.3, rest_seconds=0)
        session = GovernedSession(SQLiteSession("s1"), console=console, store="main", subject="ada")
        with second_connection() as other:
            other.execute("LOCK TABLE sessions_app_sessionstore")
            await talk(session, "Hello.")
        console.seconds = 30
        await talk(session, "Hello.")

    in_agent(run)
    assert subject_key_of("s1")[:2] == ("user", "ada")


def test_connections_that_the_server_ended_are_replaced(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        console = console_at(dsn, seconds=30)
        for number in range(2):
            session = GovernedSession(SQLiteSession(f"s{number}"), console=console, store="main", subject="ada")
            await talk(session, "Hello.")
            with second_connection() as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND application_name = 'memadmin-client'"
                )

    in_agent(run)
    assert SessionRecord.objects.filter(session_id__in=["s0", "s1"]).count() == 2
    assert "away" not in caplog.text


# --- secrets ----------------------------------------------------------------------------------------------------------

TOKEN = "ghp_" + "a1B2c3D4e5" * 4
CARD = "4111 1111 1111 1111"


def stored_with(console: Console, secrets: Any) -> str:
    inner = SQLiteSession("s1")

    @function_tool
    def look_up(password: str) -> dict[str, Any]:
        return {"api_key": TOKEN, "card": CARD, "order": "SO-20417"}

    async def run() -> str:
        session = GovernedSession(inner, console=console, store="main", secrets=secrets)
        bot: Agent[Any] = Agent(name="Keys", tools=[look_up])
        model = scripted(
            [function_call("look_up", {"password": "correct-horse"}, call_id="call_1")], f"It is {TOKEN}, is it?"
        )
        config = RunConfig(model=model, tracing_disabled=True)
        await Runner.run(bot, f"My key is {TOKEN}. Paid with {CARD}.", session=session, run_config=config)
        return json.dumps(await inner.get_items(), ensure_ascii=False)

    return in_agent(run)


def test_secrets_are_masked_before_they_are_stored(console: Console) -> None:
    stored = stored_with(console, "mask")
    for secret in (TOKEN, CARD, "correct-horse"):
        assert secret not in stored
    assert "SO-20417" in stored
    calls = [item for item in json.loads(stored) if item.get("type") == "function_call"]
    assert json.loads(calls[0]["arguments"]).keys() == {"password"}


def test_secrets_are_kept_where_nobody_asks_for_more(console: Console) -> None:
    assert TOKEN in stored_with(console, "keep")


def test_secrets_are_refused_without_being_told(console: Console) -> None:
    with pytest.raises(SecretRefused) as refusal:
        stored_with(console, "refuse")
    assert TOKEN not in str(refusal.value)


# --- what the SDK asks of a session beside its four methods -----------------------------------------------------------


def test_what_is_set_on_it_is_set_on_the_session_inside(console: Console) -> None:
    inner = cast(OpenAIResponsesCompactionSession, compacting(SQLiteSession("s1")))
    session: Any = GovernedSession(inner, console=console, store="main")
    session.should_trigger_compaction = lambda now: False
    assert inner.should_trigger_compaction({}) is False
    assert isinstance(session, GovernedSession)
    assert isinstance(session, OpenAIResponsesCompactionSession)


def test_within_encryption_it_compacts_as_the_session_inside_does(console: Console, tmp_path: Path) -> None:
    """The SDK's encryption asks by class whether what it wraps compacts."""

    async def compacted(governs: bool) -> list[Any]:
        inner = compacting(SQLiteSession("s1", tmp_path / f"{governs}.db"))
        session = encrypted(GovernedSession(inner, console=console, store="main") if governs else inner)
        for said in ("One.", "Two.", "Three."):
            await talk(session, said)
        return as_told(cast(Any, await session.get_items()))

    assert in_agent(lambda: compacted(True)) == in_agent(lambda: compacted(False))


def test_a_session_whose_methods_are_no_coroutines_is_wrapped_too(console: Console) -> None:
    class Plain:
        session_id, session_settings = "s1", None

        def __init__(self) -> None:
            self.kept: list[Any] = []

        def get_items(self, limit: int | None = None) -> list[Any]:
            return self.kept[-limit:] if limit else list(self.kept)

        def add_items(self, items: list[Any]) -> None:
            self.kept += items

        def pop_item(self) -> Any:
            return self.kept.pop() if self.kept else None

        def clear_session(self) -> None:
            self.kept.clear()

    inner = Plain()
    in_agent(lambda: talk(GovernedSession(cast(Any, inner), console=console, store="main"), "Hello."))
    assert len(inner.kept) == 2


def test_a_branch_is_asked_for_by_its_name(console: Console, tmp_path: Path) -> None:
    inner = AdvancedSQLiteSession(session_id="s1", db_path=tmp_path / "branches.db", create_tables=True)
    session: Any = GovernedSession(inner, console=console, store="main")

    async def run() -> tuple[list[Any], list[Any]]:
        await talk(session, "One.")
        await session.create_branch_from_turn(1, "other")
        await talk(session, "Two.")
        return await session.get_items(branch_id="main"), await session.get_items(branch_id="other")

    main, other = in_agent(run)
    assert [len(main), main[0]["content"], other[-2]["content"]] == [2, "One.", "Two."]


def test_it_is_entered_and_left_as_the_session_inside_is(console: Console) -> None:
    seen: list[str] = []

    class Entered(SQLiteSession):
        async def __aenter__(self) -> Any:
            seen.append("in")
            return self

        async def __aexit__(self, *problem: Any) -> None:
            seen.append("out")

    async def run() -> None:
        for inner in (Entered("s1"), SQLiteSession("s2")):
            async with GovernedSession(inner, console=console, store="main") as session:
                assert isinstance(session, GovernedSession)

    in_agent(run)
    assert seen == ["in", "out"]
