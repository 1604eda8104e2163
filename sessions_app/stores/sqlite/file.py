"""SQLite files shared with running agents: connections, transactions, and errors as sentences for operators.

Readers open it read-only. Writers hold it for one short transaction, because an agent that waits longer than five
seconds fails; afterwards nothing of what went is in the file or in its write-ahead log.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from time import monotonic, sleep
from urllib.parse import quote

from sessions_app.stores.base import Place, SessionBusy, StoreTooSlow, StoreUnavailable

READ_SECONDS = 5
"""Time limit of a read once it has begun."""

LOCK_SECONDS = 2
"""Time that a read waits for a process that locks out readers; writing agents do not."""

WRITE_PATIENCE_SECONDS = 5
"""Time that a change waits for writing agents."""

SECURE_DELETE = "PRAGMA secure_delete = ON"
"""Overwrites deleted content; without it the text stays in free pages until they are reused."""

CHECKPOINT_TURN_MS = 100
"""Time that a checkpoint waits for readers: meanwhile it blocks writing agents."""

CHECK_EVERY = 20_000
"""Number of SQLite VM steps between two checks of the time limit; well below a millisecond."""

WITH_LOG = b"\x02\x02"
"""Header bytes of a file with a write-ahead log."""

NOT_OPENED = "The file {path} cannot be opened; check the permissions of the file and of its folder."

TABLES_WRONG = ("no such table", "no such column", "has no column")


@contextmanager
def reading(path: str, *, seconds: float = READ_SECONDS) -> Iterator[sqlite3.Connection]:
    """Read transaction on the file; agents may write meanwhile. Raises StoreUnavailable with a sentence."""
    with plain_words(path), closing(open_file(path, "ro")) as connection:
        deadline = monotonic() + seconds
        connection.set_progress_handler(lambda: monotonic() > deadline, CHECK_EVERY)
        connection.execute("BEGIN")
        yield connection


@contextmanager
def writing(path: str) -> Iterator[sqlite3.Connection]:
    """Write transaction; afterwards deleted or replaced text is neither in the file nor in its log.

    Raises StoreUnavailable, and SessionBusy if another process blocks: before the transaction nothing was changed,
    after it only the log still has the old text, and the same change again removes it.
    """
    with plain_words(path), closing(open_file(path, "rw")) as connection:
        begin_writing(connection)
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        empty_log(connection, path)


def open_file(path: str, mode: str) -> sqlite3.Connection:
    if stat.S_ISDIR(status(path).st_mode):
        raise StoreUnavailable(f"{path} is a folder, not a file.")
    # mode=rw and not rwc: a file that was deleted meanwhile must not come back empty.
    way = "ro&immutable=1" if is_out_of_reach(path) else mode
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode={way}",
        uri=True,
        timeout=LOCK_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    # Bytes that are not UTF-8 are kept as surrogates, and written back unchanged.
    connection.text_factory = lambda stored: stored.decode(errors="surrogateescape")
    return connection


def status(path: str) -> os.stat_result:
    """Raises StoreUnavailable."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise StoreUnavailable(f"There is no file {path}.") from problem
    except OSError as problem:
        raise StoreUnavailable(NOT_OPENED.format(path=path)) from problem


def is_out_of_reach(path: str) -> bool:
    """Whether a file with a write-ahead log can only be opened as immutable.

    Reading it normally needs the right to create the log, which is deleted by the last agent that closes the file. An
    agent that opens the file again writes to a new log first, and not to the file.
    """
    if os.path.exists(f"{path}-wal") or os.access(os.path.dirname(path), os.W_OK):
        return False
    with suppress(OSError), open(path, "rb") as file:
        return file.read(20)[18:] == WITH_LOG
    return False


def places(path: str, *tables: str) -> frozenset[Place]:
    """Places of these tables: equal for every path, link and hard link of the file. Raises StoreUnavailable."""
    file = status(path)
    # Table names are case-insensitive in SQLite.
    return frozenset(("file", str(file.st_dev), str(file.st_ino), table.lower()) for table in tables)


def fingerprint(path: str) -> str:
    """Fingerprint of the file and its log: every write changes the time or the size of one of them."""
    facts = []
    for each in (path, f"{path}-wal"):
        with suppress(OSError):
            found = os.stat(each)
            # A reader may create an empty log, which is not a write.
            if found.st_size:
                facts.append(f"{found.st_ino} {found.st_size} {found.st_mtime_ns}")
    return " / ".join(facts)


def begin_writing(connection: sqlite3.Connection) -> None:
    """Begins a write transaction; afterwards `empty_log` removes the old text from the log, too."""
    connection.execute(SECURE_DELETE)
    connection.execute(f"PRAGMA busy_timeout = {int(WRITE_PATIENCE_SECONDS * 1000)}")
    connection.execute("BEGIN IMMEDIATE")


def empty_log(connection: sqlite3.Connection, path: str) -> None:
    connection.execute(f"PRAGMA busy_timeout = {CHECKPOINT_TURN_MS}")
    give_up_at = monotonic() + WRITE_PATIENCE_SECONDS
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if monotonic() > give_up_at:
            raise SessionBusy(
                f"The change was made, but another program was reading {path}, so the old text is still in its"
                " write-ahead log. Repeat the operation to empty the log."
            )
        sleep(CHECKPOINT_TURN_MS / 1000)


@contextmanager
def plain_words(path: str) -> Iterator[None]:
    """Turns errors of SQLite into StoreUnavailable with a sentence; programming errors pass."""
    try:
        yield
    except sqlite3.Error as problem:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            raise StoreTooSlow(f"The file {path} was not read in time.") from problem
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise SessionBusy(
                f"Another program has locked the file {path}; nothing was changed. Try again."
            ) from problem
        if code == sqlite3.SQLITE_NOTADB:
            sentence = f"{path} is not an SQLite file, or it is encrypted as a whole."
        elif code == sqlite3.SQLITE_CORRUPT:
            sentence = f"The file {path} is damaged; restore it, or try SQLite's own .recover on a copy."
        elif code == sqlite3.SQLITE_READONLY:
            sentence = f"This console may not write to {path} or to its folder; nothing was changed."
        elif code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            sentence = NOT_OPENED.format(path=path)
        elif code == sqlite3.SQLITE_FULL:
            sentence = f"The disk with {path} is full; nothing was changed."
        elif code == sqlite3.SQLITE_IOERR:
            sentence = f"The disk with {path} reported an I/O error."
        elif any(words in str(problem) for words in TABLES_WRONG):
            sentence = f"The file {path} does not have the tables that the agents' SDK uses."
        else:
            raise
        raise StoreUnavailable(sentence) from problem
