"""A file of the SDK's AdvancedSQLiteSession: sessions with branches, and the usage of each turn.

A branch is a set of rows in `message_structure` that name items; branches share the items from before they parted. An
item's id grows along each branch, so one order and one kind of position serve the session and all of its branches.
The current branch of an agent is known only in its process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from memadmin.counting import COUNT_CAP
from sessions_app.items import StoredItem
from sessions_app.models import SessionStore
from sessions_app.stores.base import (
    Branch,
    Capability,
    Deleted,
    Readable,
    StoreProblem,
    StoreUnavailable,
    TurnUsage,
    UnsupportedOperation,
)
from sessions_app.stores.kinds import StoreKind
from sessions_app.stores.sql_text import as_text
from sessions_app.stores.sqlite.backend import SqliteBackend, SqliteForm, has_branches
from sessions_app.stores.sqlite.rows import as_bytes

BRANCHES_LISTED = 100
TURNS_LISTED = 30

IN_BRANCH = """
AND id IN (
    SELECT message_id FROM message_structure
    WHERE session_id = CAST(:session_id AS TEXT) AND branch_id = CAST(x'{name}' AS TEXT)
)
"""

# From branch to branch along the SDK's index on (session_id, branch_id), however many items each has.
BRANCHES = """
WITH RECURSIVE named(name) AS (
    SELECT min(branch_id) FROM message_structure WHERE session_id = CAST(:session_id AS TEXT)
    UNION ALL
    SELECT (
        SELECT min(branch_id) FROM message_structure
        WHERE session_id = CAST(:session_id AS TEXT) AND branch_id > named.name
    )
    FROM named WHERE name IS NOT NULL
)
SELECT name,
       (SELECT id FROM message_structure
        WHERE session_id = CAST(:session_id AS TEXT) AND branch_id = name ORDER BY sequence_number LIMIT 1) AS number,
       (SELECT count(*) FROM (
           SELECT 1 FROM message_structure
           WHERE session_id = CAST(:session_id AS TEXT) AND branch_id = name LIMIT :cap
       )),
       (SELECT max(user_turn_number) FROM message_structure
        WHERE session_id = CAST(:session_id AS TEXT) AND branch_id = name)
FROM named WHERE name IS NOT NULL
LIMIT :limit
"""

# Capped on both sides; the SDK has no index on message_id, so items cannot be looked up one by one.
SHARED = """
SELECT count(*) FROM (
    SELECT message_id FROM (
        SELECT message_id FROM message_structure
        WHERE session_id = CAST(:session_id AS TEXT) AND branch_id = CAST(:branch AS TEXT) LIMIT :cap
    )
    INTERSECT
    SELECT message_id FROM (
        SELECT message_id FROM message_structure
        WHERE session_id = CAST(:session_id AS TEXT) AND branch_id <> CAST(:branch AS TEXT) LIMIT 10 * :cap
    )
)
"""

USAGE = """
SELECT * FROM (
    SELECT user_turn_number, requests, input_tokens, output_tokens, total_tokens FROM turn_usage
    WHERE session_id = CAST(:session_id AS TEXT) AND branch_id = CAST(:branch AS TEXT)
    ORDER BY user_turn_number DESC LIMIT :limit
)
ORDER BY user_turn_number
"""

DELETE_STRUCTURE_OF_NEWEST = """
DELETE FROM message_structure WHERE message_id IN (
    SELECT id FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) ORDER BY id DESC LIMIT :limit
)
"""
DELETE_STRUCTURE_OF_ITEM = (
    "DELETE FROM message_structure WHERE session_id = CAST(:session_id AS TEXT) AND message_id = :id"
)
DELETE_USAGE_OF_EMPTY_TURNS = """
DELETE FROM turn_usage WHERE session_id = CAST(:session_id AS TEXT) AND NOT EXISTS (
    SELECT 1 FROM message_structure AS s
    WHERE s.session_id = turn_usage.session_id AND s.branch_id = turn_usage.branch_id
      AND s.user_turn_number = turn_usage.user_turn_number
)
"""
OWN_TABLES = ("message_structure", "turn_usage", "branch_reservations")
"""Tables besides the usual two. Branch names may contain text of users, so their reservations go as well."""

# Agents that have the session open return to the branch main when this number changes; otherwise they would keep
# writing to a deleted branch. The row contains only the session's id.
BEGIN_ANEW = """
INSERT INTO session_clear_generations (session_id, generation) VALUES (CAST(:session_id AS TEXT), 1)
ON CONFLICT (session_id) DO UPDATE SET generation = generation + 1
"""


OF_PLAIN = "has no branches; it belongs to SQLiteSession. Connect it as sqlite."


class AdvancedSqliteBackend(SqliteBackend):
    """Implements `Branching`."""

    capabilities = SqliteBackend.capabilities | {Capability.BRANCHES, Capability.USAGE}

    def branches(self, session_id: str) -> Sequence[Branch]:
        wanted = {"session_id": session_id, "cap": COUNT_CAP + 1, "limit": BRANCHES_LISTED}
        with self.reading() as connection:
            rows = self._rows(connection, BRANCHES, wanted)
        found = [Branch(as_text(name), number, count, turns or 0) for name, number, count, turns in rows]
        return sorted(found, key=lambda branch: branch.number)

    def on_branch(self, branch: Branch) -> Readable:
        return OneBranch(self.store, branch)

    def shared_count(self, session_id: str, branch: Branch) -> int:
        wanted = {"session_id": session_id, "branch": branch.name, "cap": COUNT_CAP + 1}
        with self.reading() as connection:
            return int(self._rows(connection, SHARED, wanted)[0][0])

    def usage(self, session_id: str, branch: Branch) -> Sequence[TurnUsage]:
        wanted = {"session_id": session_id, "branch": branch.name, "limit": TURNS_LISTED}
        with self.reading() as connection:
            return [TurnUsage(*(number or 0 for number in row)) for row in self._rows(connection, USAGE, wanted)]

    def _problems_of_branches(self, *, has_branches: bool) -> Iterator[StoreProblem]:
        if not has_branches:
            yield StoreProblem("no-branches", f"{self.path} {OF_PLAIN}", is_fatal=True)

    def _refuse_wrong_kind(self) -> None:
        self.count("")
        with self.reading() as connection:
            if not has_branches(connection):
                raise StoreUnavailable(f"{self.path} {OF_PLAIN}")

    def _delete_newest(self, connection: sqlite3.Connection, wanted: dict[str, Any]) -> int:
        self._change(connection, DELETE_STRUCTURE_OF_NEWEST, wanted)
        return super()._delete_newest(connection, wanted)

    def _delete_rest(self, connection: sqlite3.Connection, wanted: dict[str, Any]) -> None:
        for table in OWN_TABLES:
            self._change(connection, f"DELETE FROM {table} WHERE session_id = CAST(:session_id AS TEXT)", wanted)
        super()._delete_rest(connection, wanted)
        self._change(connection, BEGIN_ANEW, wanted)

    def _delete_item(self, connection: sqlite3.Connection, wanted: dict[str, Any]) -> None:
        """Deletes an item from all branches that share it."""
        self._change(connection, DELETE_STRUCTURE_OF_ITEM, wanted)
        super()._delete_item(connection, wanted)
        self._change(connection, DELETE_USAGE_OF_EMPTY_TURNS, wanted)


class OneBranch(AdvancedSqliteBackend):
    """Read access to one branch; a change would affect other branches, and is refused."""

    capabilities = frozenset({Capability.ITEM_TIMES, Capability.ITEM_IDS})

    def __init__(self, store: SessionStore, branch: Branch) -> None:
        super().__init__(store)
        self.shown = IN_BRANCH.format(name=as_bytes(branch.name).hex())

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        raise UnsupportedOperation("A branch is not erased without its session.")

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        raise UnsupportedOperation("An item is replaced in all branches at once.")

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        raise UnsupportedOperation("Items are deleted from all branches at once.")


KIND = StoreKind(
    "advanced_sqlite",
    "SQLite file with branches",
    "git-branch",
    open=AdvancedSqliteBackend,
    form=SqliteForm,
    has_tables=True,
)
