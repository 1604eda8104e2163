"""Agents of agno and phidata: where their rows are, and how they are looked at without memadmin."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pytest
from sqlalchemy import URL, Engine, NullPool, create_engine, make_url, text

from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store
from sessions_app.stores.documents.database import own_address
from tests.stores.contract import Agent, Item, StoreContract, Trouble, variable_unset, variable_with
from tests.stores.sqlite_troubles import SqliteFile

VARIABLE = "DOCUMENTS_DB_URL"
SCHEMA = "ai"
USER = "customer 7"


class Place(Protocol):
    """A database for an agent, and what the store is told of it."""

    options: dict[str, str]
    url: URL
    schema: str | None

    def leftovers(self, words: str) -> list[str]: ...

    def troubles(self) -> dict[str, Trouble]: ...

    def clean(self) -> None: ...


@cache
def kept_engine(url: URL) -> Engine:
    """Keeps its connections, which take longer than most questions; `drop_schema` ends them."""
    return create_engine(url)


def engine_for(url: URL) -> Engine:
    """A file is opened each time, because a test may put it aside."""
    return create_engine(url, poolclass=NullPool) if url.get_backend_name() == "sqlite" else kept_engine(url)


def ask(url: URL, query: str, **parameters: Any) -> list[Any]:
    with engine_for(url).begin() as connection:
        result = connection.execute(text(query), parameters)
        return list(result) if result.returns_rows else []


class InPostgres:
    """Another database by URL."""

    schema = SCHEMA

    def __init__(self, url: URL) -> None:
        self.url = url.set(drivername="postgresql+psycopg")
        self.options = {"url_env": VARIABLE}
        self.patching = pytest.MonkeyPatch()
        self.patching.setenv(VARIABLE, self.url.render_as_string(hide_password=False))
        # Quicker than making them anew; `drop_schema` is for the end.
        names = [f'{SCHEMA}."{table}"' for table in self.tables()]
        self.is_new = not names
        if names:
            ask(self.url, f"TRUNCATE {', '.join(names)}")

    def tables(self) -> list[str]:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = :schema ORDER BY 1"
        return [row[0] for row in ask(self.url, query, schema=SCHEMA)]

    def leftovers(self, words: str) -> list[str]:
        found = []
        for table in self.tables():
            rows = ask(self.url, f'SELECT CAST(t AS text) FROM {SCHEMA}."{table}" AS t')
            if any(words in row[0] for row in rows):
                found.append(table)
        return found

    def elsewhere(self, value: str, sentence: str) -> AbstractContextManager[str]:
        """Another address in the variable."""
        return variable_with(VARIABLE, value, sentence)

    @contextmanager
    def renamed(self) -> Iterator[str]:
        ask(self.url, f"ALTER SCHEMA {SCHEMA} RENAME TO aside")
        try:
            yield "are not in the database"
        finally:
            ask(self.url, f"ALTER SCHEMA aside RENAME TO {SCHEMA}")

    def troubles(self) -> dict[str, Trouble]:
        def refused(sentence: str, **parts: Any) -> Trouble:
            changed = self.url.set(**parts).render_as_string(hide_password=False)
            return lambda: self.elsewhere(changed, sentence)

        return {
            "nothing in the variable": lambda: variable_unset(VARIABLE),
            "MySQL": lambda: self.elsewhere("mysql://me:you@here/d", "Only PostgreSQL and SQLite are read here"),
            "schema renamed": self.renamed,
            "unreachable": refused("No database responds", host="127.0.0.1", port=1, query={}),
            "no database": refused("no database of that name", database="nowhere"),
            "no user": refused("refuses the user name or the password", username="nobody_at_all"),
        }

    def clean(self) -> None:
        self.patching.undo()


def drop_schema(url: URL) -> None:
    reach = url.set(drivername="postgresql+psycopg")
    ask(reach, f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    kept_engine(reach).dispose()


class InOwnPostgres(InPostgres):
    """The database of the console, in which the agents have a schema."""

    def __init__(self) -> None:
        super().__init__(own_address())
        self.options = {}

    def troubles(self) -> dict[str, Trouble]:
        return {"schema renamed": self.renamed}


class InFile(SqliteFile):
    schema = None
    lacks_tables = "are not in the database"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "agents.db"
        self.url = make_url(f"sqlite:///{self.path}")
        self.options = {"path": str(self.path)}

    def clean(self) -> None:
        pass


class DocumentAgent(Agent):
    """Writes through the classes of a library; the place is one of those above."""

    kind: ClassVar[str]
    table: ClassVar[str]

    def __init__(self, place: Any) -> None:
        self.place = place
        self.prepare()
        table = f"{place.schema}.{self.table}" if place.schema else self.table
        self.store = declare_store("others", kind=self.kind, options={**place.options, "table": table})
        attach_store(self.store)

    @abstractmethod
    def prepare(self) -> None:
        """Opens the library's database, and has it make its tables."""

    def name(self, table: str) -> str:
        return f'{self.place.schema}."{table}"' if self.place.schema else f'"{table}"'

    def ask(self, query: str, **parameters: Any) -> list[Any]:
        return ask(self.place.url, query, **parameters)

    def leftovers(self, words: str) -> list[str]:
        return list(self.place.leftovers(words))

    def changed_rows(self, table: str, column: str, key: str, change: Callable[[Any], Any]) -> None:
        """By hand, for what no library does: documents look older, or are broken."""
        for name, document in self.ask(f"SELECT {key}, CAST({column} AS text) FROM {self.name(table)}"):
            kind = "jsonb" if self.place.schema else "text"
            self.ask(
                f"UPDATE {self.name(table)} SET {column} = CAST(:document AS {kind}) WHERE {key} = :name",
                document=json.dumps(change(json.loads(document))),
                name=name,
            )

    def troubles(self) -> dict[str, Trouble]:
        return dict(self.place.troubles())

    def close(self) -> None:
        self.place.clean()


ALSO_IN_OWN_POSTGRES = {
    "test_it_is_healthy_and_its_sessions_are_on_record",
    "test_discovery_notes_new_written_vanished_and_returned_sessions",
    "test_a_replaced_text_is_gone_and_the_agent_reads_the_new_one",
    "test_an_erased_session_leaves_nothing_but_its_registry_row",
    "test_agents_that_write_meanwhile_lose_nothing_and_never_fail",
    "test_whatever_is_wrong_with_the_place_is_a_sentence_and_changes_nothing",
}
"""The SQL is that of any PostgreSQL; only the connection differs: its address is Django's, and it is not kept open."""


class DocumentContract(StoreContract):
    """The contract in each database that a library keeps its documents in; in another PostgreSQL before a release."""

    agent_class: type[DocumentAgent]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "agent" in metafunc.fixturenames:
            own = ["own PostgreSQL"] if metafunc.function.__name__ in ALSO_IN_OWN_POSTGRES else []
            other = pytest.param("other PostgreSQL", marks=pytest.mark.release)
            metafunc.parametrize("agent", [*own, other, "file"], indirect=True)

    @pytest.fixture
    def agent(self, db: None, request: pytest.FixtureRequest, folder_in_memory: Path) -> Iterator[DocumentAgent]:
        place: InPostgres | InFile
        match request.param:
            case "own PostgreSQL":
                request.getfixturevalue("own_schema")
                place = InOwnPostgres()
            case "other PostgreSQL":
                place = InPostgres(request.getfixturevalue("schema_elsewhere"))
            case _:
                place = InFile(folder_in_memory)
        agent = self.agent_class(place)
        yield agent
        agent.close()


def older(document: Any, by: timedelta) -> Any:
    """Every time in it, which are seconds since 1970."""
    if isinstance(document, dict):
        return {
            name: value - int(by.total_seconds()) if name == "created_at" and value else older(value, by)
            for name, value in document.items()
        }
    return [older(each, by) for each in document] if isinstance(document, list) else document


def first_text(items: tuple[Item, ...], role: str) -> str:
    return next((str(item["content"]) for item in items if item.get("role") == role), "")


def as_item(message: dict[str, Any]) -> Item:
    """As the agents' SDK would have written it."""
    if calls := message.get("tool_calls"):
        (call,) = calls
        function = call["function"]
        named = {"type": "function_call", "call_id": call["id"], "name": function["name"]}
        return {**named, "arguments": function["arguments"]}
    if message.get("tool_call_id"):
        answer = {"type": "function_call_output", "call_id": message["tool_call_id"]}
        return {**answer, "output": message["content"]}
    if message.get("type"):
        return message
    return {"content": message["content"], "role": message["role"]}


def as_message(item: Item, created_at: int) -> dict[str, Any]:
    """What both libraries make a message of."""
    match item.get("type"):
        case "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            calls = [{"id": item["call_id"], "type": "function", "function": function}]
            return {"role": "assistant", "tool_calls": calls, "created_at": created_at}
        case "function_call_output":
            return {
                "role": "tool",
                "tool_call_id": item["call_id"],
                "content": item["output"],
                "created_at": created_at,
            }
    return {"role": item["role"], "content": item["content"], "created_at": created_at}
