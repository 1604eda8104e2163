"""A file of the SDK's AdvancedSQLiteSession: sessions with branches, and the usage of each turn.

A branch is a set of rows in `message_structure` that name items; branches share the items from before they parted. An
item's id grows along each branch, so one order and one kind of position serve the session and all of its branches.
The current branch of an agent is known only in its process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from memadmin.counting import COUNT_CAP
from sessions_app.items import StoredItem
from sessions_app.models import SessionStore
from sessions_app.stores.base import (
    Branch,
    Capability,
    Deleted,
    Readable,
    TurnUsage,
    UnsupportedOperation,
)
from sessions_app.stores.kinds import StoreKind
from sessions_app.stores.sql_text import as_text
from sessions_app.stores.sqlite.backend import SqliteBackend, SqliteForm
from sessions_app.stores.sqlite.layouts import BRANCH_LAYOUTS, STRUCTURE, USAGE, BranchTable, columns_of
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

TURNS = """
SELECT * FROM (
    SELECT user_turn_number, requests, input_tokens, output_tokens, total_tokens FROM turn_usage
    WHERE session_id = CAST(:session_id AS TEXT) AND branch_id = CAST(:branch AS TEXT)
    ORDER BY user_turn_number DESC LIMIT :limit
)
ORDER BY user_turn_number
"""

OF_PLAIN = "has no branches; it belongs to SQLiteSession. Connect it as sqlite."


class AdvancedSqliteBackend(SqliteBackend):
    """Implements `Branching`."""

    capabilities = SqliteBackend.capabilities | {Capability.BRANCHES, Capability.USAGE}

    def branches(self, session_id: str) -> Sequence[Branch]:
        wanted = {"session_id": session_id, "cap": COUNT_CAP + 1, "limit": BRANCHES_LISTED}
        with self.reading() as connection:
            rows = self._rows(connection, BRANCHES, wanted) if has_table(connection, STRUCTURE) else []
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
            if not has_table(connection, USAGE):
                return []
            return [TurnUsage(*(number or 0 for number in row)) for row in self._rows(connection, TURNS, wanted)]

    def _wrong_kind(self, *, has_branches: bool) -> str:
        return "" if has_branches else OF_PLAIN


def has_table(connection: sqlite3.Connection, table: BranchTable) -> bool:
    """True if the file has the table, with all columns that are used."""
    return columns_of(connection, table.name) >= table.columns


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
    layouts=BRANCH_LAYOUTS,
)
