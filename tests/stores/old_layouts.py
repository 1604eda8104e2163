"""Files of AdvancedSQLiteSession in the layouts of several versions of openai-agents, made by their statements.

`tests/stores/test_older_sdks.py` lets these versions write files themselves.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

USUAL = """
CREATE TABLE IF NOT EXISTS agent_sessions (
    session_id TEXT PRIMARY KEY,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS agent_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS idx_agent_messages_session_id ON agent_messages (session_id, id);
"""

# 0.3 to 0.19.3 create these two, 0.19.4 the third, and 0.20 the fourth.
STRUCTURE = """
CREATE TABLE IF NOT EXISTS message_structure (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    branch_id TEXT NOT NULL DEFAULT 'main',
    message_type TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    user_turn_number INTEGER,
    branch_turn_number INTEGER,
    tool_name TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions(session_id) ON DELETE CASCADE,
    FOREIGN KEY (message_id) REFERENCES agent_messages(id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS idx_structure_session_seq ON message_structure(session_id, sequence_number);
CREATE INDEX IF NOT EXISTS idx_structure_branch ON message_structure(session_id, branch_id);
"""
USAGE = """
CREATE TABLE IF NOT EXISTS turn_usage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    branch_id TEXT NOT NULL DEFAULT 'main',
    user_turn_number INTEGER NOT NULL,
    requests INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0,
    output_tokens INTEGER DEFAULT 0,
    total_tokens INTEGER DEFAULT 0,
    input_tokens_details JSON,
    output_tokens_details JSON,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions(session_id) ON DELETE CASCADE,
    UNIQUE(session_id, branch_id, user_turn_number)
);
"""
RESERVATIONS = """
CREATE TABLE IF NOT EXISTS branch_reservations (
    session_id TEXT NOT NULL, branch_id TEXT NOT NULL, PRIMARY KEY (session_id, branch_id)
);
"""
GENERATIONS = """
CREATE TABLE IF NOT EXISTS session_clear_generations (
    session_id TEXT PRIMARY KEY, generation INTEGER NOT NULL DEFAULT 0
);
"""

ROWS = {
    STRUCTURE: """
INSERT INTO message_structure (session_id, message_id, message_type, sequence_number, user_turn_number)
SELECT session_id, id, 'user', id, 1 FROM agent_messages;
INSERT INTO message_structure (session_id, message_id, branch_id, message_type, sequence_number, user_turn_number)
SELECT session_id, id, 'other way', 'user', id, 1 FROM agent_messages;
""",
    USAGE: """
INSERT INTO turn_usage (session_id, user_turn_number, requests, input_tokens, output_tokens, total_tokens)
SELECT session_id, 1, 2, 30, 4, 34 FROM agent_sessions;
""",
    RESERVATIONS: "INSERT INTO branch_reservations SELECT session_id, 'other way' FROM agent_sessions;",
    GENERATIONS: "INSERT INTO session_clear_generations SELECT session_id, 0 FROM agent_sessions;",
}

LAYOUTS: dict[str, tuple[str, ...]] = {
    "0.9.3": (STRUCTURE, USAGE),
    "0.19.4": (STRUCTURE, USAGE, RESERVATIONS),
    "0.9.3, then 0.24 with create_tables=False": (STRUCTURE, USAGE, GENERATIONS),
    "0.24": (STRUCTURE, USAGE, RESERVATIONS, GENERATIONS),
    "0.24 without usage": (STRUCTURE, RESERVATIONS, GENERATIONS),
    "0.9.3 without usage": (STRUCTURE,),
}
"""The branch tables of files, by the versions that leave a file so; the last two by hand."""


def make_file(path: Path, branch_tables: Iterable[str], *, usual: str = USUAL) -> Path:
    """A file with the sessions `gone` and `kept`, each with two items on two branches."""
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(usual)
        for session in ("gone", "kept"):
            database.execute("INSERT INTO agent_sessions (session_id) VALUES (?)", [session])
            for text in ("one", "two"):
                item = f'{{"role": "user", "content": "{text} of {session}"}}'
                database.execute("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", [session, item])
        for table in branch_tables:
            database.executescript(table)
            database.executescript(ROWS[table])
    return path


def rows_of(path: Path, session: str) -> dict[str, int]:
    """Number of rows of a session in each table that has any."""
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = {
            table: database.execute(f'SELECT count(*) FROM "{table}" WHERE session_id = ?', [session]).fetchone()[0]
            for table in tables
            if not table.startswith("sqlite_")
        }
    return {table: count for table, count in counts.items() if count}
