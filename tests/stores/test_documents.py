"""What is special about documents in which the same text stands many times: copies, what stands beside, memories."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agno.agent import Agent as AgnoLibraryAgent
from agno.db.base import SessionType
from agno.db.schemas import UserMemory
from agno.models.base import Model as AgnoModel
from agno.models.response import ModelResponse as AgnoResponse
from agno.session.summary import SessionSummary
from django.core.management import call_command
from phi.agent.agent import Agent as PhiAgent
from phi.memory.agent import AgentMemory
from phi.memory.db.postgres import PgMemoryDb
from phi.memory.db.sqlite import SqliteMemoryDb
from phi.memory.row import MemoryRow
from phi.model.base import Model as PhiModel
from phi.model.message import Message as PhiMessage
from phi.model.response import ModelResponse as PhiResponse
from sqlalchemy import URL

from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.attaching import attach_store, detach_store
from sessions_app.services.discovery import discover
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import ItemChanged, StoreUnavailable
from sessions_app.stores.documents import backend as documents
from sessions_app.stores.documents.json_edit import Swaps
from tests.agents import assistant, user
from tests.cases import for_each
from tests.stores.contract import SECRET, contents, enumerated, said
from tests.stores.document_agents import SCHEMA, USER, VARIABLE, DocumentAgent, InFile, InPostgres, as_message
from tests.stores.test_agno import AgnoAgent
from tests.stores.test_phidata import PhidataAgent

pytestmark = pytest.mark.slow


@pytest.fixture(params=["postgres", "file"])
def place(request: pytest.FixtureRequest, db: None, tmp_path: Path) -> Iterator[Any]:
    place: Any = (
        InFile(tmp_path) if request.param == "file" else InPostgres(request.getfixturevalue("schema_elsewhere"))
    )
    yield place
    place.clean()


@pytest.fixture
def agno(place: Any) -> AgnoAgent:
    return AgnoAgent(place)


@pytest.fixture
def phidata(place: Any) -> PhidataAgent:
    return PhidataAgent(place)


@pytest.fixture(params=[AgnoAgent, PhidataAgent])
def either(request: pytest.FixtureRequest, place: Any) -> DocumentAgent:
    agent: DocumentAgent = request.param(place)
    return agent


# --- agents of the libraries, with a model that says what it is told --------------------------------------------------


@dataclass
class Scripted(AgnoModel):
    id: str = "scripted"

    def invoke(self, *given: Any, **others: Any) -> AgnoResponse:
        messages = others.get("messages") or given[0]
        if messages[-1].role == "user" and "order" in str(messages[-1].content):
            function = {"name": "look_up", "arguments": json.dumps({"what": str(messages[-1].content)})}
            return AgnoResponse(role="assistant", tool_calls=[{"id": "c1", "type": "function", "function": function}])
        return AgnoResponse(role="assistant", content="I see.")

    async def ainvoke(self, *given: Any, **others: Any) -> AgnoResponse:
        return self.invoke(*given, **others)

    def invoke_stream(self, *given: Any, **others: Any) -> Iterator[AgnoResponse]:
        yield self.invoke(*given, **others)

    async def ainvoke_stream(self, *given: Any, **others: Any) -> Any:
        yield self.invoke(*given, **others)

    def _parse_provider_response(self, response: Any, **others: Any) -> Any:
        return response

    def _parse_provider_response_delta(self, response: Any) -> Any:
        return response


def look_up(what: str) -> str:
    """Looks for something."""
    return f"Found for you: {what}"


def talk_with_agno(agent: AgnoAgent, session_id: str, *texts: str, **settings: Any) -> None:
    library_agent = AgnoLibraryAgent(
        model=Scripted(),
        db=agent.db,
        tools=[look_up],
        session_id=session_id,
        user_id=USER,
        add_history_to_context=True,
        store_history_messages=True,
        telemetry=False,
        instructions="Be kind.",
        **settings,
    )
    for text in texts:
        library_agent.run(text)


class Echo(PhiModel):
    id: str = "scripted"

    def response(self, messages: list[PhiMessage]) -> PhiResponse:
        answer = f"You said: {messages[-1].content}"
        messages.append(PhiMessage(**as_message(assistant(answer), 1)))
        return PhiResponse(content=answer)


def phidata_agent(agent: PhidataAgent, session_id: str) -> Any:
    library: Any = PhiAgent
    echo: Any = Echo
    return library(
        model=echo(id="scripted"),
        storage=agent.storage,
        session_id=session_id,
        user_id=USER,
        add_history_to_messages=True,
        telemetry=False,
        monitoring=False,
        description="Be kind.",
        memory=AgentMemory(),
        session_state={"noted": []},
    )


def items_that_say(agent: DocumentAgent, session_id: str, words: str) -> list[Any]:
    return [item for item in backend_for(agent.store).every_item(session_id) if words in item.raw]


def redact(agent: DocumentAgent, session_id: str, words: str) -> None:
    """As the verb does: item by item, until none says it any more."""
    while found := items_that_say(agent, session_id, words):
        text = found[0].raw.replace(words, "[redacted]")
        backend_for(agent.store).replace_item(session_id, found[0].id, text, expected=found[0].raw)


class TestAgno:
    def test_what_an_agent_said_is_shown_once_and_gone_everywhere(self, agno: AgnoAgent) -> None:
        state = {"notes": [f"They wrote {SECRET}"]}
        talk_with_agno(agno, "talk", f"My order is {SECRET}", "And now?", session_state=state)
        texts = [item.raw for item in backend_for(agno.store).every_item("talk")]
        assert sum(f'"content": "My order is {SECRET}"' in text and '"role": "user"' in text for text in texts) == 1
        assert sum("And now?" in text for text in texts) == 1

        redact(agno, "talk", SECRET)
        assert agno.leftovers(SECRET) == []
        assert [message.role for run in agno.runs("talk") for message in run.messages or []].count("user") >= 2
        talk_with_agno(agno, "talk", "Still there?")
        assert items_that_say(agno, "talk", "Still there?")

    def test_without_its_copies_a_text_would_stay(self, agno: AgnoAgent, monkeypatch: pytest.MonkeyPatch) -> None:
        talk_with_agno(agno, "talk", f"My order is {SECRET}", "And now?")
        monkeypatch.setattr(documents, "swapped", lambda swaps, text, besides=(): text)
        for item in items_that_say(agno, "talk", SECRET):
            text = item.raw.replace(SECRET, "[redacted]")
            backend_for(agno.store).replace_item("talk", item.id, text, expected=item.raw)
        assert agno.leftovers(SECRET)

    def test_what_only_a_state_or_a_summary_says_is_an_item_and_can_be_taken_out(self, agno: AgnoAgent) -> None:
        agno.add("talk", said(0))
        session = agno.db.get_session("talk", SessionType.AGENT)
        session.summary = SessionSummary(summary=f"They gave {SECRET}.", topics=["keys"])
        session.session_data = {"session_state": {"last": f"is {SECRET}"}}
        agno.db.upsert_session(session)
        summary, state, message = backend_for(agno.store).every_item("talk")
        assert (SECRET in summary.raw, SECRET in state.raw, contents([message])) == (True, True, ["item 0"])
        assert json.loads(summary.raw)["topics"] == ["keys"]
        assert backend_for(agno.store).delete_items("talk", [summary, state]) == 2
        assert agno.leftovers(SECRET) == []
        assert agno.read("talk") == [said(0)]

    def test_a_message_that_says_the_same_again_is_another_item(self, agno: AgnoAgent) -> None:
        agno.add("talk", user("yes"))
        agno.add("talk", user("yes"))
        first, _ = backend_for(agno.store).every_item("talk")
        backend_for(agno.store).replace_item("talk", first.id, json.dumps(user("no")), expected=first.raw)
        assert agno.read("talk") == [user("no"), user("yes")]

    def test_what_it_keeps_in_other_tables_goes_with_the_session_and_nobody_elses(self, agno: AgnoAgent) -> None:
        for session_id in ("gone", "kept"):
            text = f"{SECRET} of {session_id}"
            agno.add(session_id, user(text))
            agno.db.upsert_compaction(
                {
                    "compaction_id": f"c-{session_id}",
                    "session_id": session_id,
                    "summary": f"It is about {text}",
                    "archived_messages": json.dumps([user(text)]),
                    "created_at": 1,
                }
            )
            agno.db.upsert_learning(
                id=f"l-{session_id}", learning_type="note", content={"it is": text}, session_id=session_id
            )
        before = agno.leftovers(SECRET)
        redact(agno, "kept", f"{SECRET} of kept")
        assert agno.leftovers("of kept") == []
        backend_for(agno.store).erase_session("gone")
        assert before
        assert agno.leftovers(SECRET) == []
        assert agno.db.get_compaction("c-gone") is None
        assert agno.db.get_compaction("c-kept")["summary"] == "It is about [redacted]"

    def test_a_table_that_was_made_a_moment_ago_would_be_missed_by_an_old_look(
        self, agno: AgnoAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            documents.DocumentBackend,
            "_session_for_change",
            lambda self, connection: self.database.session_on(connection),
        )
        agno.add("gone", said(0))
        agno.ask(f"DROP TABLE IF EXISTS {agno.name('agno_learnings')}")
        agno.db = agno.opened()
        registry.health(agno.store)
        agno.db.upsert_learning(id="l", learning_type="note", content={"it is": SECRET}, session_id="gone")
        backend_for(agno.store).erase_session("gone")
        assert agno.leftovers(SECRET)

    def test_memories_stay_without_what_they_quote(self, agno: AgnoAgent) -> None:
        agno.add("gone", user(f"I like tea, and my key is {SECRET}"))
        for whose in (USER, "somebody else"):
            agno.db.upsert_user_memory(
                UserMemory(memory=f"{whose} likes tea", input=f"I like tea, and my key is {SECRET}", user_id=whose)
            )
        backend_for(agno.store).erase_session("gone")
        mine, others = agno.db.get_user_memories(user_id=USER) + agno.db.get_user_memories(user_id="somebody else")
        assert (mine.memory, mine.input) == (f"{USER} likes tea", "")
        assert SECRET in others.input

    def test_memories_are_a_store_of_their_own(self, agno: AgnoAgent) -> None:
        for text in ("likes tea", f"has the key {SECRET}"):
            agno.db.upsert_user_memory(UserMemory(memory=text, input=text, user_id=USER, topics=["habits"]))
        agno.db.upsert_user_memory(UserMemory(memory="likes coffee", user_id="other"))
        store = memories_of(agno, "agno_memories")
        backend = backend_for(store)
        assert {found.session_id for found in enumerated(backend, 1)} == {USER, "other"}
        assert {item.raw for item in backend.every_item(USER)} == {'"likes tea"', f'"has the key {SECRET}"'}
        assert backend.previews([USER, "nobody"])[USER].item_count == 2
        assert backend.previews(["nobody"])["nobody"].item_count is None
        (secret,) = (item for item in backend.every_item(USER) if SECRET in item.raw)
        with pytest.raises(ItemChanged):
            backend.replace_item(USER, secret.id, '"x"', expected='"y"')
        backend.replace_item(USER, secret.id, '"has a key"', expected=secret.raw)
        assert agno.leftovers(SECRET) == []
        assert {memory.memory for memory in agno.db.get_user_memories(user_id=USER)} == {"likes tea", "has a key"}
        assert backend.delete_items(USER, [backend.item(USER, secret.id)]) == 1
        assert [item.raw for item in backend.every_item(USER)] == ['"likes tea"']
        assert backend.erase_session(USER) == 1
        assert [memory.user_id for memory in agno.db.get_user_memories()] == ["other"]
        assert SessionRecord.objects.get(store=store, session_id=USER).erased_at

    def test_runs_that_end_while_their_session_is_redacted_stay(self, agno: AgnoAgent) -> None:
        agno.add("talk", *(user(f"{SECRET} {number}") for number in range(5)))
        problems: list[Exception] = []

        def write() -> None:
            try:
                for number in range(10):
                    agno.add("talk", said(number))
            except Exception as problem:
                problems.append(problem)

        writer = threading.Thread(target=write)
        writer.start()
        redact(agno, "talk", SECRET)
        writer.join()
        assert problems == []
        assert agno.read("talk")[5:] == [said(number) for number in range(10)]
        assert agno.leftovers(SECRET) == []

    def test_a_run_under_way_when_its_session_is_erased_is_noticed(self, agno: AgnoAgent) -> None:
        """agno makes the session anew for the run's end; nothing of what was said before is in it."""
        agno.add("talk", user(SECRET))
        discover(agno.store)
        backend_for(agno.store).erase_session("talk")
        agno.add("talk", user("and the end"))
        assert discover(agno.store).returned == 1
        assert agno.leftovers(SECRET) == []


class TestPhidata:
    def test_what_an_agent_said_is_shown_once_and_gone_everywhere(self, phidata: PhidataAgent) -> None:
        agent = phidata_agent(phidata, "talk")
        agent.run(f"My order is {SECRET}")
        agent.run("And now?")
        texts = [item.raw for item in backend_for(phidata.store).every_item("talk")]
        assert sum(f'"My order is {SECRET}"' in text for text in texts) == 1
        redact(phidata, "talk", SECRET)
        assert phidata.leftovers(SECRET) == []
        assert [item["role"] for item in phidata.read("talk")] == ["system", "user", "assistant", "user", "assistant"]
        later = phidata_agent(phidata, "talk")
        later.run("Still there?")
        assert items_that_say(phidata, "talk", "Still there?")
        assert phidata.leftovers(SECRET) == []

    def test_an_agent_that_is_at_work_brings_back_all_of_it_and_is_noticed(self, phidata: PhidataAgent) -> None:
        """As the store's page says: it writes the whole session anew."""
        agent = phidata_agent(phidata, "talk")
        agent.run(f"My order is {SECRET}")
        discover(phidata.store)
        backend_for(phidata.store).erase_session("talk")
        assert phidata.leftovers(SECRET) == []
        agent.run("And now?")
        assert phidata.leftovers(SECRET)
        assert discover(phidata.store).returned == 1
        backend_for(phidata.store).erase_session("talk")
        assert phidata.leftovers(SECRET) == []

    def test_memories_are_a_store_of_their_own_and_lose_what_they_quote(self, phidata: PhidataAgent) -> None:
        table = "memories_of_bots"
        place = phidata.place
        memories: Any = (
            PgMemoryDb(table, schema=SCHEMA, db_url=place.url.render_as_string(hide_password=False))
            if place.schema
            else SqliteMemoryDb(table_name=table, db_file=str(place.path))
        )
        memories.create()
        quoted = {"memory": "Likes tea", "input": f"I like tea, and my key is {SECRET}"}
        memories.upsert_memory(MemoryRow(user_id=USER, memory=quoted))
        memories.upsert_memory(MemoryRow(user_id="other", memory={"memory": "Likes coffee"}))
        phidata.add("gone", user(f"I like tea, and my key is {SECRET}"))
        store = memories_of(phidata, table)
        backend = backend_for(store)
        assert {found.session_id for found in enumerated(backend)} == {USER, "other"}
        (item,) = backend.every_item(USER)
        assert SECRET in item.raw

        backend_for(phidata.store).erase_session("gone")
        (item,) = backend.every_item(USER)
        assert "Likes tea" in item.raw
        assert phidata.leftovers(SECRET) == []
        assert backend.erase_session(USER) == 1
        assert phidata.leftovers("Likes tea") == []
        assert phidata.leftovers("Likes coffee")
        memories.db_engine.dispose()


def memories_of(agent: DocumentAgent, table: str) -> SessionStore:
    named = f"{agent.place.schema}.{table}" if agent.place.schema else table
    store = declare_store("memories", kind=agent.kind, options={**agent.place.options, "table": named})
    attach_store(store)
    return store


class TestRights:
    @pytest.fixture
    def reader(self, db: None, schema_elsewhere: URL) -> Iterator[AgnoAgent]:
        """The store is reached as somebody who may read the sessions, and nothing else."""
        place = InPostgres(schema_elsewhere)
        agent = AgnoAgent(place)
        agent.add("talk", user(SECRET))
        agent.ask("DROP ROLE IF EXISTS reads_documents")
        agent.ask("CREATE ROLE reads_documents LOGIN")
        agent.ask("GRANT USAGE ON SCHEMA ai TO reads_documents")
        agent.ask("GRANT SELECT ON ai.agno_sessions, ai.agno_runs TO reads_documents")
        place.patching.setenv(VARIABLE, place.url.set(username="reads_documents").render_as_string(hide_password=False))
        yield agent
        agent.ask("DROP OWNED BY reads_documents")
        agent.ask("DROP ROLE reads_documents")
        agent.close()

    def test_who_may_only_read_reads_and_is_told(self, reader: AgnoAgent) -> None:
        health = registry.health(reader.store)
        assert (health.state, [problem.code for problem in health.problems]) == ("degraded", ["read-only"])
        assert contents(backend_for(reader.store).first_page("talk", 5).items) == [SECRET]
        with pytest.raises(StoreUnavailable, match="lacks a right"):
            backend_for(reader.store).erase_session("talk")
        assert reader.read("talk") == [user(SECRET)]

    def test_a_table_with_copies_that_may_not_be_read_is_not_passed_over(self, reader: AgnoAgent) -> None:
        reader.db.upsert_learning(id="l", learning_type="note", content={"it is": SECRET}, session_id="talk")
        reader.ask("GRANT ALL ON ai.agno_sessions, ai.agno_runs TO reads_documents")
        with pytest.raises(StoreUnavailable, match="lacks a right"):
            backend_for(reader.store).erase_session("talk")
        assert reader.read("talk") == [user(SECRET)]


class TestEither:
    def test_a_run_that_ended_meanwhile_is_seen_and_nothing_is_lost(self, either: DocumentAgent) -> None:
        either.add("talk", user("one"))
        (item,) = backend_for(either.store).every_item("talk")
        either.pop("talk")
        either.add("talk", user("two"))
        with pytest.raises(Exception, match=r".*") as refused:
            backend_for(either.store).replace_item("talk", item.id, json.dumps(user("x")), expected=item.raw)
        assert type(refused.value).__name__ in ("ItemChanged", "UnknownItem")
        assert either.read("talk") == [user("two")]

    def test_redacting_and_writing_at_the_same_time_loses_nothing(self, either: DocumentAgent) -> None:
        """In sessions of their own, because an agent of phidata writes all of one."""
        either.add("talk", *(user(f"{SECRET} {number}") for number in range(5)))
        problems: list[Exception] = []

        def write() -> None:
            try:
                for number in range(10):
                    either.add("other", said(number))
            except Exception as problem:
                problems.append(problem)

        writer = threading.Thread(target=write)
        writer.start()
        redact(either, "talk", SECRET)
        writer.join()
        assert problems == []
        assert either.read("other") == [said(number) for number in range(10)]
        assert either.leftovers(SECRET) == []

    def test_a_document_that_is_no_json_is_shown_and_erased(self, db: None, tmp_path: Path) -> None:
        agent = AgnoAgent(InFile(tmp_path))
        agent.add("odd", said(0))
        agent.ask("UPDATE agno_runs SET run_data = :broken", broken=f'{{"messages": [{{"content": "{SECRET}')
        backend = backend_for(agent.store)
        (item,) = backend.every_item("odd")
        assert item.raw.endswith(SECRET)
        assert backend.previews(["odd"])["odd"].item_count == 0
        assert backend.erase_session("odd") == 1
        assert agent.leftovers(SECRET) == []

    def test_a_table_of_somebody_elses_is_refused(self, either: DocumentAgent) -> None:
        either.ask(f"CREATE TABLE {either.name('orders')} (id int)")
        with pytest.raises(registry.AttachRefused, match="does not have the columns"):
            memories_of(either, "orders")
        either.ask(f"DROP TABLE {either.name('orders')}")


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("phidata", {}, "Enter the name of the table"),
        ("agno", {"table": "a.b.c"}, "is not a table name"),
        ("agno", {"path": "/x.db", "url_env": "SOME_URL"}, "not both"),
        ("agno", {"path": "x.db"}, "not an absolute path"),
    ],
)
def test_a_store_that_makes_no_sense_is_refused(db: None, kind: str, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(registry.AttachRefused, match=sentence):
        declare_store("others", kind=kind, options=options)


def test_a_path_may_have_any_letters(db: None, tmp_path: Path) -> None:
    folder = tmp_path / "a?b=c#d%20e"
    folder.mkdir()
    agent = AgnoAgent(InFile(tmp_path))
    (tmp_path / "agents.db").rename(folder / "agents.db")
    path = str(folder / "agents.db")
    store = declare_store("odd", kind="agno", options={"path": path})
    attach_store(store)
    assert registry.health(store).state == "ok"
    assert list(enumerated(backend_for(store))) == []
    assert registry.health(agent.store).state == "down"


def test_it_is_attached_and_checked_from_the_command_line(
    db: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = AgnoAgent(InFile(tmp_path))
    detach_store(agent.store)
    agent.store.delete()
    agent.add("talk", said(0))
    call_command("attach_store", "bots", "--kind", "agno", "--path", str(agent.place.path))
    assert "bots is attached, with 1 registered session" in capsys.readouterr().out
    call_command("check_stores")
    assert "bots: ok, sessions 1" in capsys.readouterr().out


@for_each(
    ("old", "new", "text", "after"),
    [
        (
            "yes",
            "no",
            '{"content": "yes", "role": "yes", "a": ["yes"]}',
            '{"content": "no", "role": "yes", "a": ["no"]}',
        ),
        ("yes", "", '{"content": "yes indeed"}', '{"content": "yes indeed"}'),
        ("the key is x", "", '{"said": "so the key is x!"}', '{"said": "so !"}'),
        (
            'a "long" text ü',
            "-",
            '{"arguments": "{\\"q\\": \\"a \\\\\\"long\\\\\\" text ü\\"}"}',
            '{"arguments": "{\\"q\\": \\"-\\"}"}',
        ),
        ("my key is 4711 4712", "my key is [x]", '["4711 4712 was it"]', '["[x] was it"]'),
        ("the key is x", "", '{"the key is x": 1}', '{"the key is x": 1}'),
    ],
)
def test_copies_are_replaced_and_names_and_structure_stay(old: str, new: str, text: str, after: str) -> None:
    assert Swaps.between({"content": old}, {"content": new}).applied_to_json(text) == after
