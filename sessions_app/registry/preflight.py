"""Reasons to refuse attaching: obstacles to registry and fence on a store's tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from psycopg import sql

from sessions_app.models import SessionStore
from sessions_app.registry.tables import StoreTables
from sessions_app.stores.base import StoreProblem
from sessions_app.stores.sqlalchemy.postgres import fetch

TEXTS = frozenset({"text", "varchar"})
INTEGERS = frozenset({"int2", "int4", "int8"})
INSTANTS = frozenset({"timestamp", "timestamptz"})
DOCUMENTS = TEXTS | {"json", "jsonb"}
SESSION_COLUMNS = {"session_id": TEXTS, "created_at": INSTANTS, "updated_at": INSTANTS}
MESSAGE_COLUMNS = {"id": INTEGERS, "session_id": TEXTS, "message_data": DOCUMENTS, "created_at": INSTANTS}

ADD_FOREIGN_KEY = sql.SQL(
    "ALTER TABLE {} ADD FOREIGN KEY (session_id) REFERENCES {} (session_id) ON DELETE CASCADE NOT VALID"
)


def unusable(tables: StoreTables) -> Iterator[StoreProblem]:
    """Reasons why the tables cannot be read as the SDK's."""
    for table, wanted in ((tables.sessions, SESSION_COLUMNS), (tables.messages, MESSAGE_COLUMNS)):
        if table.kind not in ("r", "p"):
            yield StoreProblem("not-a-table", f"{table} is not a table.", is_fatal=True)
        for name, types in wanted.items():
            column = table.columns.get(name)
            if column is None:
                yield StoreProblem("column-missing", f"{table} has no column {name}.", is_fatal=True)
            elif column.type not in types:
                sentence = f"The column {name} of {table} is {column.type}; it must be {' or '.join(sorted(types))}."
                yield StoreProblem("column-type", sentence, is_fatal=True)


def leaks(tables: StoreTables) -> Iterator[StoreProblem]:
    """Ways past a fence, or an erasure, on these tables. None on tables as the SDK makes them."""
    key = tables.foreign_key
    if key is None:
        remedy = ADD_FOREIGN_KEY.format(tables.messages.identifier, tables.sessions.identifier).as_string(None)
        yield StoreProblem(
            "foreign-key-missing",
            f"{tables.messages} has no foreign key to {tables.sessions}, so items of an erased session could still be"
            f" written. The agents' SDK makes one; add it with: {remedy};",
        )
    elif not key.is_enforced:
        yield StoreProblem(
            "foreign-key-disabled",
            f"The foreign key {key.name} of {tables.messages} is not enforced, so items of an erased session could"
            " still be written.",
        )
    for table in (tables.sessions, tables.messages):
        if not table.columns["session_id"].is_deterministic:
            yield StoreProblem(
                "collation",
                f"The collation of session_id in {table} takes different ids for the same session; the registry and the"
                " fence tell them apart.",
            )
        if table.has_hidden_rows:
            yield StoreProblem(
                "row-policies",
                f"Policies of {table} decide which of its rows this console's database role sees: rows that they hide"
                " are neither listed nor erased, and functions that they call run with the console's rights. Its"
                " owner has to DISABLE ROW LEVEL SECURITY.",
            )


def missing_rights(tables: StoreTables, *, to_attach: bool = False) -> Iterator[StoreProblem]:
    """Rights that this connection's role lacks; where the application has a role that owns nothing, it only reads."""
    needs_all = to_attach or tables.is_registry_owned
    for table in (tables.sessions, tables.messages):
        lacking = [right for right in table.missing_rights if needs_all or right == "SELECT"]
        if lacking:
            rights = ", ".join(lacking)
            yield StoreProblem(
                "rights", f"This console's database role lacks rights on {table}: its owner has to GRANT {rights}."
            )


def missing_index(tables: StoreTables) -> Iterator[StoreProblem]:
    """A problem only if there is no usable index and we cannot create one."""
    table = tables.messages
    if any(index.is_valid for index in tables.time_indexes):
        return
    if table.kind == "p":
        yield StoreProblem(
            "index-missing",
            f"{table} is partitioned and has no index on (session_id, created_at). PostgreSQL can create one without"
            " blocking the agents only partition by partition; create it yourself.",
        )
    elif not table.is_owned:
        remedy = f"CREATE INDEX CONCURRENTLY ON {table.identifier.as_string(None)} (session_id, created_at)"
        yield StoreProblem(
            "index-missing",
            f"{table} has no index on (session_id, created_at), and only its owner can create it, with: {remedy};",
        )


def other_stores_on(tables: StoreTables, store: SessionStore) -> Iterator[StoreProblem]:
    """Other stores that are attached to the same sessions: two registries of them would contradict each other."""
    for (name,) in fetch(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = %s AND tgname ~ '^memadmin_register_[0-9]+$' ORDER BY tgname",
        [tables.sessions.oid],
    ):
        (other_id,) = re.findall(r"\d+", name)
        if int(other_id) == store.pk:
            continue
        other = SessionStore.objects.filter(pk=other_id).first()
        if other:
            sentence = (
                f"{tables.sessions} is attached already, as the store {other}. Run attach_store {other} --remove first."
            )
        else:
            sentence = f"{tables.sessions} has the trigger {name} of a store that is not in this registry."
        yield StoreProblem("attached-elsewhere", sentence)
