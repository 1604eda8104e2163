"""Actors of events: a signed-in person, an agent, a job, a command, or only a database role."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.sql import Composable

from memadmin import log_context
from memadmin.audit.log import proofs

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Kind = Literal["person", "agent", "job", "command", "database", "system"]

LONGEST_LABEL = 200


@dataclass(frozen=True, slots=True)
class Actor:
    """An actor. The label is for people and is stored only in `audit_actor`, which can be erased."""

    kind: Kind
    label: str
    user_id: int | None = None

    @property
    def columns(self) -> tuple[str, str, int | None]:
        """Kind, label as it is stored, and account."""
        return self.kind, self.label[:LONGEST_LABEL], self.user_id

    @property
    def proven(self) -> tuple[str, str, int | None, str]:
        """Arguments of `memadmin_name_actor`: the columns, with a proof that the application names this actor."""
        return *self.columns, proofs.proof_of(*self.columns)


NOT_SIGNED_IN = Actor("system", "not signed in")

_acting: ContextVar[Actor | Callable[[], Actor | None] | None] = ContextVar("acting", default=None)


def person(user: User) -> Actor:
    return Actor("person", user.get_full_name() or user.get_username(), user.pk)


@contextmanager
def acting(actor: Actor | Callable[[], Actor | None] | None) -> Iterator[None]:
    """Sets the actor of events recorded inside this block, unless a verb passes its own.

    A function is called for each event: the user of a request may change while it is processed.
    """
    token = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(token)


def current_actor() -> Actor | None:
    """The current actor; None when only the database role of the connection is known."""
    actor = _acting.get()
    return actor() if callable(actor) else actor


# --- actor for triggers -----------------------------------------------------------------------------------------------

# Request and job are the defaults of their columns in an event.
NAME_ACTOR = """
SELECT set_config('memadmin.actor', memadmin_name_actor(%(kind)s, %(label)s, %(user_id)s, %(proof)s), %(local)s),
    set_config('memadmin.request_id', %(request_id)s, %(local)s), set_config('memadmin.job_id', %(job_id)s, %(local)s)
"""
RESET_ACTOR = "RESET memadmin.actor; RESET memadmin.request_id; RESET memadmin.job_id"
COMMITS_ITSELF = re.compile(r"\s*(?:DO|CALL)\b", re.IGNORECASE)

LATER_WRITE = re.compile(r";\s*(?:INSERT|UPDATE|DELETE|TRUNCATE|MERGE|DO|CALL|COPY|WITH)\b", re.IGNORECASE)
"""A further write in a string of several statements."""

WRITE = re.compile(
    r"""\s*(?:(?:/\*.*?\*/|--[^\n]*\n)\s*)*
    (?:WITH\b(?=.*\b(?:INSERT|UPDATE|DELETE|MERGE)\b)
    |(?:INSERT\s+INTO|UPDATE(?:\s+ONLY)?|DELETE\s+FROM(?:\s+ONLY)?)\s+(?P<table>"(?:[^"]|"")+"|\w+)(?!\s*\.)
    |(?:INSERT|UPDATE|DELETE|TRUNCATE|MERGE|DO|CALL|COPY)\b)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def name_actor(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """An execute wrapper: sets the actor for triggers before each statement that may change a governed row.

    The setting lasts for one transaction, so in autocommit the statement gets a transaction of its own; for a DO block,
    which may commit by itself, it is set for the connection meanwhile. Costs one round trip for each such statement.
    """
    connection: BaseDatabaseWrapper = context["connection"]
    if _acting.get() is None or not may_be_governed(sql):
        return execute(sql, params, many, context)
    actor = current_actor()
    if actor is None or not has_log(connection):
        return execute(sql, params, many, context)
    if connection.in_atomic_block or not COMMITS_ITSELF.match(words_of(sql)):
        with transaction.atomic(using=connection.alias, savepoint=False):
            set_session_actor(connection, actor, local=True)
            return execute(sql, params, many, context)
    set_session_actor(connection, actor, local=False)
    try:
        return execute(sql, params, many, context)
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute(RESET_ACTOR)


def set_session_actor(connection: BaseDatabaseWrapper, actor: Actor, *, local: bool) -> None:
    """Sets the actor for the triggers of a connection, and the request or job; with `local` until the end of its
    transaction."""
    kind, label, user_id, proof = actor.proven
    request_id, job_id = ("" if each is None else str(each) for each in log_context.ids_for_events())
    columns = {"kind": kind, "label": label, "user_id": user_id, "proof": proof}
    with proofs.cursor_for_proofs(connection) as cursor:
        cursor.execute(NAME_ACTOR, {**columns, "request_id": request_id, "job_id": job_id, "local": local})


def settings_for_triggers(*, using: str = DEFAULT_DB_ALIAS) -> dict[str, str]:
    """The settings of a connection that is not Django's, which name the actor, and the request or job, in events of
    triggers; none without an actor.

    They are valid for a day.
    """
    actor = current_actor()
    if actor is None:
        return {}
    with proofs.cursor_for_proofs(connections[using]) as cursor:
        cursor.execute("SELECT memadmin_name_actor(%s, %s, %s, %s)", actor.proven)
        settings = {"memadmin.actor": str(cursor.fetchone()[0])}
    ids = zip(("memadmin.request_id", "memadmin.job_id"), log_context.ids_for_events(), strict=True)
    return settings | {name: str(number) for name, number in ids if number is not None}


_with_log: set[tuple[str, str]] = set()
"""Databases known to have the log, by alias and name. Databases do not lose it again."""


def has_log(connection: BaseDatabaseWrapper) -> bool:
    """Whether the log's migrations ran: before that, `migrate` itself writes rows. One query until then."""
    database = (connection.alias, str(connection.settings_dict["NAME"]))
    if database not in _with_log:
        with connection.cursor() as cursor:
            # The function is created first, the table that it writes to in a later migration.
            cursor.execute(
                "SELECT to_regprocedure('memadmin_name_actor(text,text,bigint,text)'), to_regclass('audit_actor')"
            )
            row = cursor.fetchone()
        if not row or None in row:
            return False
        _with_log.add(database)
    return True


def may_be_governed(sql: Any) -> bool:
    """Whether a statement may write to a table whose changes are recorded; in doubt, it may."""
    words = words_of(sql)
    write = WRITE.match(words)
    if LATER_WRITE.search(words):
        return True
    if write is None:
        return False
    table = (write["table"] or "").strip('"').replace('""', '"')
    return table not in ungoverned_tables()


def words_of(statement: Any) -> str:
    """The SQL text of a statement in any form that psycopg accepts, also a composed one."""
    if isinstance(statement, Composable):
        return statement.as_string(None)
    return statement.decode() if isinstance(statement, bytes) else str(statement)


@cache
def ungoverned_tables() -> frozenset[str]:
    """Our own tables without recording triggers: logins, jobs, the log itself. Agents' tables have no managed model."""
    return frozenset(
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not is_governed(model._meta.db_table)
    )


def is_governed(table: str) -> bool:
    return table in governed_tables()


@cache
def governed_tables() -> frozenset[str]:
    """Tables that a model, or a proxy of it, declares as governed, or as changed by a proven actor alone."""
    return frozenset(
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if any(getattr(trigger, "asks_for_actor", False) for trigger in getattr(model._meta, "triggers", ()))
    )


def name_actors_on(connection: BaseDatabaseWrapper) -> None:
    """Once for each connection object; it may connect many times."""
    if name_actor not in connection.execute_wrappers:
        connection.execute_wrappers.append(name_actor)
