"""Connections to a database by the SQLAlchemy URL in an environment variable, and errors as sentences for operators.

No message contains any part of the URL, because an unquoted password can end up in the place of a host or a port:
messages name the variable instead.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchTableError
from sqlalchemy.exc import TimeoutError as NoneFree

from sessions_app.models import SessionStore
from sessions_app.stores.base import Place, SessionBusy, StoreTooSlow, StoreUnavailable
from sessions_app.stores.kinds import secret_named
from sessions_app.stores.remote_sql.dialects import Dialect, Layout, MySql, Postgres, Refusal, Sqlite
from sessions_app.stores.sql_text import schema_and_table
from sessions_app.stores.sqlite import file as sqlite_file

T = TypeVar("T")

READ_SECONDS = 5
"""Time limit of one query."""

WRITE_SECONDS = 30
"""Time limit of one statement of a change."""

PATIENCE_SECONDS = 5
"""Time that a change retries while agents hold the session."""

PAUSE_SECONDS = 0.02

CONNECTIONS = 2
"""Connections kept open by each process for each place; as many again are opened temporarily if needed."""

LAYOUT_SECONDS = 60
"""Time after which a changed column is noticed."""

SENTENCES = {
    Refusal.UNREACHABLE: "No database responds at the address in {variable}: check host, port, server and network.",
    Refusal.WRONG_PASSWORD: "The database refuses the user name or the password in {variable}, or this machine.",
    Refusal.NO_DATABASE: "The server that {variable} names has no database of that name.",
    Refusal.NOT_ENCRYPTED: "{variable} asks for an encrypted connection. The server offers none, its certificate is"
    " not to be trusted, or a file of certificates cannot be read here.",
    Refusal.MUST_ENCRYPT: "The server accepts encrypted connections only; set that in {variable}, as with"
    " sslmode=require or ssl_ca=/path/of/ca.pem.",
    Refusal.WRONG_OPTION: "{variable} has an unknown option after the question mark.",
    Refusal.FULL: "The server that {variable} names has no free connection.",
    Refusal.NO_TABLES: "The tables {tables} are not in the database that {variable} names.",
    Refusal.NO_COLUMNS: "The tables {tables} do not have the columns that the agents' SDK uses.",
    Refusal.NO_RIGHT: "The database user in {variable} lacks a right to the tables {tables}; nothing was changed.",
    Refusal.READ_ONLY: "The database that {variable} names is read-only: a replica, or configured so.",
    Refusal.BUSY: "Agents are using this session now; nothing was changed. Try again.",
    Refusal.TOO_SLOW: "The store {store} did not respond in time.",
    Refusal.TEXT_REFUSED: "The database of the store {store} rejects this text; nothing was changed.",
}


class Connector(NamedTuple):
    engine: Engine
    dialect: Dialect


_engines: dict[str, tuple[str, Connector]] = {}
_layouts: dict[tuple[str, str, str], tuple[float, Layout]] = {}
_lock = threading.Lock()


class RemoteDatabase:
    """Database with the tables of a store. Connects on the first call."""

    keeps_connections: bool = True

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.variable = str(store.options.get("url_env", ""))
        """Source of the address, for sentences."""

    def address(self) -> str:
        """The URL. Raises StoreUnavailable."""
        return secret_named(self.store, "url_env")

    @property
    def tables_in_words(self) -> str:
        return f"{self.store.sessions_table} and {self.store.messages_table}"

    @property
    def dialect(self) -> Dialect:
        """Dialect of the address. Raises StoreUnavailable if it is invalid."""
        return self._connector().dialect

    def places(self, *tables: tuple[str | None, str]) -> frozenset[Place]:
        """Places of these tables, each given with its schema. Raises StoreUnavailable."""
        with self.reading() as connection:
            return self.dialect.places(connection, tables)

    @contextmanager
    def reading(self, *, seconds: float = READ_SECONDS) -> Iterator[Connection]:
        """Read transaction. Raises StoreUnavailable with a sentence; programming errors pass."""
        with self._connected() as (connection, dialect):
            dialect.begin(connection, seconds=seconds, is_writing=False)
            yield connection

    def change(self, work: Callable[[Connection], T]) -> T:
        """Runs the work in a transaction that gives way to agents and begins again; returns its result.

        Raises StoreUnavailable, and SessionBusy when agents hold the session for longer than PATIENCE_SECONDS.
        """
        give_up_at = monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with self._connected() as (connection, dialect):
                    dialect.begin(connection, seconds=WRITE_SECONDS, is_writing=True)
                    done = work(connection)
                    connection.commit()
                    dialect.committed(connection)
                    return done
            except SessionBusy:
                # A file has waited long enough already, and the change may even be made.
                if monotonic() > give_up_at or isinstance(self.dialect, Sqlite):
                    raise
            sleep(PAUSE_SECONDS)

    def layout(self, connection: Connection, *, is_fresh: bool = False) -> Layout:
        """Layout of the tables, at most LAYOUT_SECONDS old. Only inside of `reading` and `change`."""
        key = (self.variable, self.store.sessions_table, self.store.messages_table)
        seen_at, layout = _layouts.get(key, (0.0, None))
        if layout is None or is_fresh or monotonic() > seen_at + LAYOUT_SECONDS:
            sessions, messages = schema_and_table(key[1]), schema_and_table(key[2])
            layout = self.dialect.layout(connection, sessions, messages)
            _layouts[key] = (monotonic(), layout)
        return layout

    # --- connecting ---------------------------------------------------------------------------------------------------

    def _connector(self) -> Connector:
        """Engine of the variable in this process, until its value changes."""
        address = self.address()
        with _lock:
            known = _engines.get(self.variable)
            if known and known[0] == address:
                return known[1]
            connector = self._open(address)
            if known:
                known[1].engine.dispose()
            _engines[self.variable] = (address, connector)
            return connector

    def _open(self, address: str) -> Connector:
        try:
            url = make_url(address)
        except (ArgumentError, ValueError):
            # Without the cause, which may quote a password.
            raise StoreUnavailable(
                f"The value of {self.variable} is not an address such as postgresql://user:password@host/database. A @,"
                " : or / in a password is written %40, %3A or %2F."
            ) from None
        dialect = self._dialect_of(url)
        driver_url, arguments = dialect.connecting(url)
        # Errors must not quote parameters.
        common: dict[str, Any] = {"hide_parameters": True}
        if isinstance(dialect, Sqlite):
            path = dialect.path
            common |= {"creator": lambda: sqlite_file.open_file(path, "rw"), "poolclass": NullPool}
        elif not self.keeps_connections:
            common |= {"connect_args": dict(arguments), "poolclass": NullPool}
        else:
            common |= {
                "connect_args": dict(arguments),
                "pool_size": CONNECTIONS,
                "max_overflow": CONNECTIONS,
                "pool_timeout": READ_SECONDS,
                "pool_pre_ping": True,
                "pool_recycle": 300,
            }
        try:
            return Connector(create_engine(driver_url, **common), dialect)
        except ImportError as missing:
            raise StoreUnavailable(
                f"The driver for the address in {self.variable} is not installed here: pip install '{dialect.package}'."
            ) from missing

    def _dialect_of(self, url: URL) -> Dialect:
        name = url.get_backend_name()
        if name == "sqlite":
            if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
                raise StoreUnavailable(
                    f"{self.variable} contains no absolute file path. Write four slashes: sqlite:////path/of/file."
                )
            return Sqlite(url.database)
        if name in ("postgresql", "postgres"):
            return Postgres()
        if name in ("mysql", "mariadb"):
            return MySql()
        raise StoreUnavailable(
            f"{self.variable} has to begin with postgresql:, mysql:, mariadb: or sqlite:. No other database is"
            " read here."
        )

    @contextmanager
    def _connected(self) -> Iterator[tuple[Connection, Dialect]]:
        engine, dialect = self._connector()
        with self._in_plain_words(dialect):
            try:
                connection = engine.connect()
            except (TypeError, ValueError) as problem:  # PyMySQL takes the options of an address as arguments
                raise self._unavailable(Refusal.WRONG_OPTION) from problem
            except OSError as problem:  # of a file that an option names
                raise self._unavailable(Refusal.NOT_ENCRYPTED) from problem
            with connection:
                yield connection, dialect

    @contextmanager
    def _in_plain_words(self, dialect: Dialect) -> Iterator[None]:
        try:
            yield
        except NoneFree as problem:
            raise StoreTooSlow(
                f"All connections of this console to the store {self.store} are in use. Try again."
            ) from problem
        except NoSuchTableError as problem:
            raise self._unavailable(Refusal.NO_TABLES) from problem
        except sqlite3.Error:
            assert isinstance(dialect, Sqlite)
            with sqlite_file.plain_words(dialect.path):
                raise
        except DBAPIError as problem:
            if isinstance(dialect, Sqlite) and problem.orig:
                with sqlite_file.plain_words(dialect.path):
                    raise problem.orig from None
            refusal = dialect.refusal(problem.orig) if problem.orig else None
            if refusal is None:
                raise
            raise self._unavailable(refusal) from problem

    def _unavailable(self, refusal: Refusal) -> StoreUnavailable:
        sentence = SENTENCES[refusal].format(
            variable=self.variable,
            store=self.store,
            tables=self.tables_in_words,
        )
        if refusal == Refusal.BUSY:
            return SessionBusy(sentence)
        return StoreTooSlow(sentence) if refusal == Refusal.TOO_SLOW else StoreUnavailable(sentence)
