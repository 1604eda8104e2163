"""Lists, searches and reports read from a streaming replica (MEMADMIN_REPLICA_URL), without showing anything old.

A view that says `@from_replica` reads the models and tables named here from the replica, and everything else from the
primary. It does so only once the replica has replayed all that the primary had written when the view began: what an
erasure, a change of rights or the reader's own form had changed before is changed there, too. Otherwise, and whenever
the replica fails, it reads from the primary. Changes, and everything inside `atomic()`, never come here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from threading import get_ident
from typing import Any, TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connection, connections
from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase

logger = logging.getLogger(__name__)

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

REPLICA = "replica"
"""Alias of the database, in the settings only if there is a replica."""

READ_THERE = frozenset(
    {
        "audit.AuditActor",
        "audit.AuditDetail",
        "audit.AuditEvent",
        "memories_app.Evidence",
        "memories_app.Memory",
        "sessions_app.SessionFinding",
        "sessions_app.SessionRecord",
        "sessions_app.Subject",
        "sessions_app.SubjectAlias",
    }
)
"""Models with many rows. Users, rights, grants, holds, stores and searches are always read from the primary."""

CATCH_UP_SECONDS = 0.05
"""Time for which a page waits for the replica; usually it needs one or two milliseconds."""

ASK_AGAIN_SECONDS = 0.002

REST_SECONDS = {"behind": 1.0, "away": 15.0}
"""Time for which the pages of this process do not ask a replica that was behind, or did not respond, again."""

_reading_thread: ContextVar[int] = ContextVar("reads_from_replica", default=0)
"""The thread whose view reads from the replica. Threads that it starts have connections of their own, on which nobody
explains failures, so they read from the primary although they inherit the context.
"""

_rests_until = 0.0


class ReplicaFailed(Exception):
    """A statement failed because it ran on the replica. No database error: stores explain those as their own."""


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A place in the write-ahead log of a cluster: its number, its timeline, and the place on that."""

    cluster: int
    timeline: int
    lsn: str


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """Progress of the replica, compared with a position of the primary."""

    is_replica: bool
    """False for a server that was promoted, or never was one."""
    is_of_cluster: bool
    is_on_timeline: bool
    """False while it follows a server that is not the primary any more: its positions mean nothing then."""
    has_replayed: bool
    behind_bytes: int
    is_paused: bool

    @property
    def is_usable(self) -> bool:
        return self.is_replica and self.is_of_cluster and self.is_on_timeline

    @property
    def has_all(self) -> bool:
        """Whether everything before the position is visible there."""
        return self.is_usable and self.has_replayed


class ReplicaRouter:
    """Django's database router. It always decides: otherwise rows that were read from the replica would lead further
    reads, and `refresh_from_db`, there.
    """

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return alias_for_reading() if model._meta.label in READ_THERE else DEFAULT_DB_ALIAS

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return False if db == REPLICA else None


def is_configured() -> bool:
    return REPLICA in connections.settings


def alias_for_reading() -> str:
    """Alias of the database for reading many rows, also by statements in SQL: the replica's only within a view that
    reads from it, and never inside a transaction of the primary.
    """
    return REPLICA if _reading_thread.get() == get_ident() and not connection.in_atomic_block else DEFAULT_DB_ALIAS


def from_replica(view: View) -> View:
    """A view that reads from the replica, if that has replayed everything; below `@operator_page`.

    If the replica fails, the view runs once more, on the primary: it may do nothing but read, and record what it shows.
    Two queries more, of which one is on the replica; none without a replica.
    """

    @wraps(view)
    def reading(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not is_configured() or not has_caught_up():
            return view(request, *args, **kwargs)
        try:
            with reads_from_replica():
                return view(request, *args, **kwargs)
        except ReplicaFailed as problem:
            _rest("away", str(problem))
        return view(request, *args, **kwargs)

    return cast(View, reading)


@contextmanager
def reads_from_replica() -> Iterator[None]:
    """A block whose reads come from the replica, after `has_caught_up` returned true. Raises ReplicaFailed."""
    token = _reading_thread.set(get_ident())
    try:
        with connections[REPLICA].execute_wrapper(_explain_failures):
            yield
    finally:
        _reading_thread.reset(token)


def _explain_failures(execute: Callable[..., Any], *statement: Any) -> Any:
    try:
        return execute(*statement)
    except Error as problem:
        code = getattr(problem.__cause__, "sqlstate", None) or ""
        is_lost = not code and isinstance(problem, OperationalError | InterfaceError)
        if code == "25006":
            logger.error("A page that reads from the replica tried to write.", exc_info=True)
        # Recovery conflicts, the end of the server or of the connection, and what a standby cannot do.
        if is_lost or code in ("40001", "40P01", "25006", "0A000") or code.startswith(("08", "57P", "58")):
            raise ReplicaFailed(f"{type(problem.__cause__).__name__} {code}".strip()) from problem
        raise


# --- whether it has caught up -----------------------------------------------------------------------------------------

# Committed changes may be visible before they are flushed, so the insert position counts.
POSITION = """
SELECT system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int,
       pg_current_wal_insert_lsn()::text
FROM pg_control_system()
"""
# The timeline is known from the last restart point, minutes after a change of the primary at the latest. Before that
# the replica counts as being on the old one, and pages read from the primary.
STATE = """
SELECT pg_is_in_recovery(), system_identifier = %(cluster)s,
       greatest(c.timeline_id, r.min_recovery_end_timeline) = %(timeline)s,
       coalesce(pg_last_wal_replay_lsn() >= %(lsn)s::pg_lsn, false),
       greatest(coalesce(pg_wal_lsn_diff(%(lsn)s::pg_lsn, pg_last_wal_replay_lsn()), 0), 0)::bigint,
       CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END
FROM pg_control_system(), pg_control_checkpoint() AS c, pg_control_recovery() AS r
"""


def position_now() -> LogPosition:
    """Position in the log behind everything that is committed now. Raises an Error while the database is away."""
    with connection.cursor() as cursor:
        cursor.execute(POSITION)
        return LogPosition(*cursor.fetchone())


def state_at(position: LogPosition) -> ReplicaState:
    """Progress of the replica, compared with a position. Raises an Error while it does not respond."""
    with connections[REPLICA].cursor() as cursor:
        cursor.execute(STATE, {"cluster": position.cluster, "timeline": position.timeline, "lsn": position.lsn})
        return ReplicaState(*cursor.fetchone())


def has_caught_up() -> bool:
    """Whether the replica shows all that is committed now, after CATCH_UP_SECONDS at the latest.

    False without asking inside a transaction, and while the replica rests.
    """
    if connection.in_atomic_block or time.monotonic() < _rests_until:
        return False
    position = position_now()
    give_up_at = time.monotonic() + CATCH_UP_SECONDS
    try:
        while not (state := state_at(position)).has_all:
            if not state.is_usable or time.monotonic() > give_up_at:
                return _rest("behind", f"{state.behind_bytes:,} bytes behind" if state.is_usable else "not usable")
            time.sleep(ASK_AGAIN_SECONDS)
    except Error as problem:
        return _rest("away", type(problem.__cause__ or problem).__name__)
    return True


def ask_again() -> None:
    """Ends the rest time."""
    global _rests_until
    _rests_until = 0.0


def _rest(reason: str, detail: str) -> bool:
    global _rests_until
    if reason == "away":
        connections[REPLICA].close()
    _rests_until = time.monotonic() + REST_SECONDS[reason]
    logger.warning("Pages read from the primary: the replica is %s (%s).", reason, detail)
    return False
