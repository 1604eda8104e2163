"""Differences between PostgreSQL, MySQL or MariaDB, and SQLite: SQL expressions, transactions, limits and errors.

Each statement of `remote_sql` is written once, with these words in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from time import monotonic
from typing import Any, ClassVar

from psycopg import sql
from sqlalchemy import URL, Connection, Inspector, inspect
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.types import TIMESTAMP

from sessions_app.stores.base import Place
from sessions_app.stores.sqlalchemy import postgres
from sessions_app.stores.sqlite import file as sqlite_file
from sessions_app.stores.sqlite.layouts import STRUCTURE, branch_tables_of

CONNECT_SECONDS = 5

TURN_SECONDS = 1
"""Time that a change waits for one lock before it releases all its locks: the minimum of MySQL. PostgreSQL detects a
deadlock after a second and may abort the agent's write, so there it is less."""

POSTGRES_TURN_MS = 300


class Refusal(Enum):
    """Reason why a database refused a statement or a connection."""

    UNREACHABLE = "unreachable"
    WRONG_PASSWORD = "wrong password"
    NO_DATABASE = "no database"
    NOT_ENCRYPTED = "not encrypted"
    MUST_ENCRYPT = "must encrypt"
    WRONG_OPTION = "wrong option"
    FULL = "full"
    NO_TABLES = "no tables"
    NO_COLUMNS = "no columns"
    NO_RIGHT = "no right"
    READ_ONLY = "read-only"
    BUSY = "busy"
    TOO_SLOW = "too slow"
    TEXT_REFUSED = "text refused"


@dataclass(frozen=True, slots=True)
class Layout:
    """Relevant properties of the two tables, which may have been created by hand."""

    times_are_utc: bool
    """Otherwise times are in the zone of their writer."""
    ids_are_exact: bool
    """Whether the database distinguishes any two different session ids, apart from trailing blanks."""
    has_parents: bool
    """Whether a foreign key ensures that each item has a session row."""
    has_time_index: bool
    times_may_be_empty: bool
    has_short_texts: bool
    """Whether items are limited to 64 KB."""
    has_short_ids: bool
    """Whether item ids are limited to 2^31."""


AS_IT_IS = {"no_parameters": True}
"""For several statements in one message, and for percent signs."""


class Dialect(ABC):
    system: ClassVar[str]
    driver: ClassVar[str]
    package: ClassVar[str]
    """Package to install if the driver is missing."""
    quote: ClassVar[str] = '"'
    """Quotation mark of identifiers."""

    raw: ClassVar[str]
    octets: ClassVar[str]
    """The length of the stored text in bytes."""
    tail: ClassVar[str]
    place: ClassVar[str]
    """A time as text, in the same sort order."""
    instant: ClassVar[str]
    """The parameter `instant`, to be compared with a time."""
    lock: ClassVar[str] = "FOR UPDATE"
    exact_id: ClassVar[str] = "session_id"
    """Session id for comparisons by bytes."""
    of_session: ClassVar[str] = "session_id = :session_id"
    rows_by_statistics: ClassVar[str]

    def quoted(self, table: str) -> str:
        """`table` or `schema.table` for a statement with parameters, which begin with a colon."""
        parts = (part.replace(self.quote, self.quote * 2).replace(":", "\\:") for part in table.split("."))
        return ".".join(f"{self.quote}{part}{self.quote}" for part in parts)

    @abstractmethod
    def connecting(self, url: URL) -> tuple[URL, Mapping[str, Any]]:
        """URL for the driver used here, and further arguments of the driver."""

    @abstractmethod
    def begin(self, connection: Connection, *, seconds: float, is_writing: bool) -> None:
        """Begins a transaction with this time limit for each statement; a read transaction has one snapshot."""

    def has_branches(self, connection: Connection) -> bool:
        """Whether the tables are those of AdvancedSQLiteSession, which only a file of SQLite can have."""
        return False

    def delete_branches(self, connection: Connection, session_id: str) -> None:  # noqa: B027  only files have them
        """Deletes what AdvancedSQLiteSession keeps of a session besides its items."""

    def committed(self, connection: Connection) -> None:  # noqa: B027  most have nothing to do
        """Called after a write transaction."""

    @abstractmethod
    def refusal(self, problem: BaseException) -> Refusal | None:
        """Reason in an exception of the driver; None for a programming error."""

    @abstractmethod
    def places(self, connection: Connection, tables: Sequence[tuple[str | None, str]]) -> frozenset[Place]:
        """Places of these tables, equal for every address; without missing tables."""

    def layout(
        self, connection: Connection, sessions: tuple[str | None, str], messages: tuple[str | None, str]
    ) -> Layout:
        """Layout of the tables. Raises exceptions of the driver, and NoSuchTableError."""
        look = inspect(connection)
        columns = {column["name"]: column for column in look.get_columns(messages[1], schema=messages[0])}
        if not columns or not look.get_columns(sessions[1], schema=sessions[0]):
            raise NoSuchTableError(messages[1])
        created_at, number, raw = columns.get("created_at"), columns.get("id"), columns.get("message_data")
        return Layout(
            times_are_utc=created_at is not None and self.is_utc(created_at["type"]),
            ids_are_exact=self.ids_are_exact(connection, messages),
            has_parents=self.has_parents(look, messages),
            has_time_index=any(
                list(index["column_names"][:2]) == ["session_id", "created_at"]
                for index in look.get_indexes(messages[1], schema=messages[0])
            ),
            times_may_be_empty=bool(created_at and created_at["nullable"]),
            has_short_texts=raw is not None and self.is_short(raw["type"]),
            has_short_ids=number is not None and type(number["type"]).__name__.upper() in ("INTEGER", "INT"),
        )

    def has_parents(self, look: Inspector, messages: tuple[str | None, str]) -> bool:
        keys = look.get_foreign_keys(messages[1], schema=messages[0])
        return any(key["constrained_columns"] == ["session_id"] for key in keys)

    def is_utc(self, column_type: Any) -> bool:
        return True

    def is_short(self, column_type: Any) -> bool:
        return False

    def ids_are_exact(self, connection: Connection, messages: tuple[str | None, str]) -> bool:
        return True


class Postgres(Dialect):
    system = "postgresql"
    driver = "postgresql+psycopg"
    package = "psycopg[binary]"
    raw = "CAST(message_data AS text)"
    octets = f"octet_length({raw})"
    tail = f"right({raw}, :tail)"
    place = "coalesce(to_char({column}, 'YYYY-MM-DD HH24:MI:SS.US'), CAST({column} AS text))"
    instant = "CAST(:instant AS timestamp)"
    rows_by_statistics = (
        "SELECT CAST(coalesce(sum(reltuples), 0) AS bigint) FROM pg_class"
        " WHERE oid = to_regclass(:quoted) AND reltuples > 0"
    )

    STATES: ClassVar[Mapping[str, Refusal]] = {
        "42P01": Refusal.NO_TABLES,
        "3F000": Refusal.NO_TABLES,
        "42703": Refusal.NO_COLUMNS,
        "42883": Refusal.NO_COLUMNS,
        "42804": Refusal.NO_COLUMNS,
        "42501": Refusal.NO_RIGHT,
        "25006": Refusal.READ_ONLY,
        "57014": Refusal.TOO_SLOW,
        "55P03": Refusal.BUSY,
        "40P01": Refusal.BUSY,
        "40001": Refusal.BUSY,
        "53300": Refusal.FULL,
        "23514": Refusal.TEXT_REFUSED,
    }
    # A failed connection has only words, and no code.
    WORDS: ClassVar[Mapping[str, Refusal]] = {
        "no encryption": Refusal.MUST_ENCRYPT,
        "SSL off": Refusal.MUST_ENCRYPT,
        "SSL": Refusal.NOT_ENCRYPTED,
        "certificate": Refusal.NOT_ENCRYPTED,
        "authentication failed": Refusal.WRONG_PASSWORD,
        "no password supplied": Refusal.WRONG_PASSWORD,
        "pg_hba.conf": Refusal.WRONG_PASSWORD,
        "role": Refusal.WRONG_PASSWORD,
        "database": Refusal.NO_DATABASE,
        "too many": Refusal.FULL,
        "connection slots": Refusal.FULL,
        "invalid connection option": Refusal.WRONG_OPTION,
        "invalid sslmode": Refusal.WRONG_OPTION,
    }

    def connecting(self, url: URL) -> tuple[URL, Mapping[str, Any]]:
        # asyncpg's name for what libpq calls sslmode; its other arguments are its own.
        query = {"sslmode" if name == "ssl" else name: value for name, value in url.query.items()}
        for name in ("prepared_statement_cache_size", "prepared_statement_name_func", "async_fallback"):
            query.pop(name, None)
        return url.set(drivername=self.driver, query=query), {
            "connect_timeout": CONNECT_SECONDS,
            "tcp_user_timeout": 1000 * sqlite_file.READ_SECONDS * 4,
            "application_name": "memadmin",
            # Behind a pooler the next statement may reach another server.
            "prepare_threshold": None,
        }

    def begin(self, connection: Connection, *, seconds: float, is_writing: bool) -> None:
        mode = "READ COMMITTED" if is_writing else "REPEATABLE READ, READ ONLY"
        # One message, for this transaction only: a pooler may give the connection to another client.
        connection.exec_driver_sql(
            f"SET TRANSACTION ISOLATION LEVEL {mode}; SET LOCAL TIME ZONE 'UTC';"
            f" SET LOCAL statement_timeout = {int(seconds * 1000)};"
            f" SET LOCAL lock_timeout = {POSTGRES_TURN_MS if is_writing else 2000}",
            execution_options=AS_IT_IS,
        )

    def refusal(self, problem: BaseException) -> Refusal | None:
        state = getattr(problem, "sqlstate", None)
        if state:
            found = self.STATES.get(state) or (Refusal.TEXT_REFUSED if state.startswith("22") else None)
            return found or (Refusal.UNREACHABLE if state[:2] in ("08", "57", "53", "58") else None)
        if type(problem).__name__ not in ("OperationalError", "InterfaceError", "ProgrammingError"):
            return None
        return next((found for words, found in self.WORDS.items() if words in str(problem)), Refusal.UNREACHABLE)

    def places(self, connection: Connection, tables: Sequence[tuple[str | None, str]]) -> frozenset[Place]:
        names = tuple(sql.Identifier(*filter(None, parts)).as_string(None) for parts in tables)
        asked = postgres.PLACES.format(wanted=", ".join(["(%s)"] * len(names)))
        return postgres.places_in(connection.exec_driver_sql(asked, names))

    def is_utc(self, column_type: Any) -> bool:
        """The transaction's zone is UTC."""
        return isinstance(column_type, TIMESTAMP) and bool(column_type.timezone)


class MySql(Dialect):
    """MariaDB, too. Session ids are compared by their bytes: by itself it takes `M1` for `m1`, and `m1 ` as well."""

    system = "mysql"
    driver = "mysql+pymysql"
    package = "memadmin[mysql]"
    quote = "`"
    raw = "CONVERT(message_data USING utf8mb4)"
    octets = f"octet_length({raw})"
    tail = f"right({raw}, :tail)"
    place = "CAST({column} AS CHAR)"
    instant = ":instant"
    exact_id = "CAST(CONVERT(session_id USING utf8mb4) AS BINARY)"
    # The first half uses the index, the second half is exact.
    of_session = f"session_id = :session_id AND {exact_id} = CAST(:session_id AS BINARY)"
    rows_by_statistics = (
        "SELECT table_rows FROM information_schema.tables"
        " WHERE table_schema = coalesce(:schema, database()) AND table_name = :name"
    )
    PLACES = (
        "SELECT @@hostname, @@port, @@datadir, table_schema, table_name, create_time FROM information_schema.tables"
        " WHERE table_schema = coalesce(%s, database()) AND table_name = %s"
    )
    COLLATION = (
        "SELECT collation_name FROM information_schema.columns WHERE column_name = 'session_id'"
        " AND table_schema = coalesce(:schema, database()) AND table_name = :name"
    )

    CODES: ClassVar[Mapping[int, Refusal]] = {
        1045: Refusal.WRONG_PASSWORD,
        1698: Refusal.WRONG_PASSWORD,
        1130: Refusal.WRONG_PASSWORD,
        1049: Refusal.NO_DATABASE,
        1044: Refusal.NO_RIGHT,
        1142: Refusal.NO_RIGHT,
        1143: Refusal.NO_RIGHT,
        1227: Refusal.NO_RIGHT,
        1146: Refusal.NO_TABLES,
        1054: Refusal.NO_COLUMNS,
        2026: Refusal.NOT_ENCRYPTED,
        3159: Refusal.MUST_ENCRYPT,
        4151: Refusal.WRONG_PASSWORD,
        1040: Refusal.FULL,
        1203: Refusal.FULL,
        1226: Refusal.FULL,
        1205: Refusal.BUSY,
        1213: Refusal.BUSY,
        1969: Refusal.TOO_SLOW,
        3024: Refusal.TOO_SLOW,
        1317: Refusal.TOO_SLOW,
        1290: Refusal.READ_ONLY,
        1792: Refusal.READ_ONLY,
        1836: Refusal.READ_ONLY,
        1153: Refusal.TEXT_REFUSED,
        1366: Refusal.TEXT_REFUSED,
        1406: Refusal.TEXT_REFUSED,
        3140: Refusal.TEXT_REFUSED,
        4025: Refusal.TEXT_REFUSED,
    }

    def connecting(self, url: URL) -> tuple[URL, Mapping[str, Any]]:
        query = {name: value for name, value in url.query.items() if name not in ("charset", "minsize", "maxsize")}
        return url.set(drivername=self.driver, query=query), {
            "charset": "utf8mb4",
            "connect_timeout": CONNECT_SECONDS,
            # Longer than all statement timeouts: for a silent network.
            "read_timeout": 60,
            "write_timeout": 60,
        }

    def begin(self, connection: Connection, *, seconds: float, is_writing: bool) -> None:
        # MariaDB reads the first comment, MySQL the second one.
        connection.exec_driver_sql(
            f"SET time_zone = '+00:00', innodb_lock_wait_timeout = {TURN_SECONDS}, foreign_key_checks = 1"
            f" /*M! , max_statement_time = {seconds} */ /*!50708 , max_execution_time = {int(seconds * 1000)} */",
            execution_options=AS_IT_IS,
        )
        # Repeatable reads for readers only: gap locks of a writer would block new sessions of agents.
        mode = "READ COMMITTED" if is_writing else "REPEATABLE READ, READ ONLY"
        connection.exec_driver_sql(f"SET TRANSACTION ISOLATION LEVEL {mode}")
        connection.exec_driver_sql("START TRANSACTION")

    def refusal(self, problem: BaseException) -> Refusal | None:
        code = problem.args[0] if problem.args and isinstance(problem.args[0], int) else None
        if code in (2002, 2003) and ("SSL" in str(problem) or "certificate" in str(problem)):
            return Refusal.NOT_ENCRYPTED
        if code is None:
            return Refusal.UNREACHABLE
        if code in self.CODES:
            return self.CODES[code]
        if code in range(2000, 3000) or code in (0, 1053, 1077, 1152, 1158, 1159, 1160, 1161, 1184):
            return Refusal.UNREACHABLE
        return None

    def places(self, connection: Connection, tables: Sequence[tuple[str | None, str]]) -> frozenset[Place]:
        """A server is identified by its data directory, and tables of servers with equal ones by their creation time:
        MariaDB has no identifier that every user may read."""
        found = (connection.exec_driver_sql(self.PLACES, parts).one_or_none() for parts in tables)
        return frozenset(("mysql", *map(str, row)) for row in found if row)

    def is_utc(self, column_type: Any) -> bool:
        """A DATETIME is in the zone of its writer."""
        return isinstance(column_type, TIMESTAMP)

    def is_short(self, column_type: Any) -> bool:
        return type(column_type).__name__ in ("TEXT", "TINYTEXT", "VARCHAR")

    def ids_are_exact(self, connection: Connection, messages: tuple[str | None, str]) -> bool:
        schema, name = messages
        found = connection.exec_driver_sql(
            self.COLLATION.replace(":schema", "%s").replace(":name", "%s"), (schema, name)
        )
        collation = found.scalar()
        return collation is None or str(collation).endswith(("_bin", "binary"))


class Sqlite(Dialect):
    """As the kind `sqlite` keeps to, and in the order of `SQLAlchemySession`."""

    system = "file"
    driver = "sqlite"
    package = "Python with SQLite"
    raw = "message_data"
    octets = "length(CAST(message_data AS BLOB))"
    tail = "substr(message_data, -:tail)"
    place = "coalesce(CAST({column} AS TEXT), '')"
    instant = ":instant"
    lock = ""
    rows_by_statistics = "SELECT max(rowid) FROM {table}"

    def __init__(self, path: str) -> None:
        self.path = path

    def connecting(self, url: URL) -> tuple[URL, Mapping[str, Any]]:
        return URL.create(self.driver), {}

    def begin(self, connection: Connection, *, seconds: float, is_writing: bool) -> None:
        raw: Any = connection.connection.driver_connection
        if is_writing:
            sqlite_file.begin_writing(raw)
            return
        raw.execute("PRAGMA query_only = ON")
        deadline = monotonic() + seconds
        raw.set_progress_handler(lambda: monotonic() > deadline, sqlite_file.CHECK_EVERY)
        raw.execute("BEGIN")

    def committed(self, connection: Connection) -> None:
        raw: Any = connection.connection.driver_connection
        sqlite_file.empty_log(raw, self.path)

    def places(self, connection: Connection, tables: Sequence[tuple[str | None, str]]) -> frozenset[Place]:
        return sqlite_file.places(self.path, *(table for _, table in tables))

    def has_branches(self, connection: Connection) -> bool:
        raw: Any = connection.connection.driver_connection
        return STRUCTURE in branch_tables_of(raw)[0]

    def delete_branches(self, connection: Connection, session_id: str) -> None:
        raw: Any = connection.connection.driver_connection
        for table in branch_tables_of(raw)[0]:
            if not table.outlives_session:
                raw.execute(f"DELETE FROM {table.name} WHERE session_id = ?", (session_id,))

    def refusal(self, problem: BaseException) -> Refusal | None:
        """None: `sqlite_file` has the sentences."""
        return None

    def has_parents(self, look: Inspector, messages: tuple[str | None, str]) -> bool:
        """Foreign keys are never switched on."""
        return False
