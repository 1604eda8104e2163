"""Rows of agno's and phidata's tables of users' memories."""

from __future__ import annotations

import ast
import json

from memories_app.exchange.entries import ImportedMemory, ImportedQuote, UnreadableEntry
from sessions_app.items import StoredItem

NOBODY = "default"
"""Whose the memories are that agno makes for nobody in particular."""

LONGEST_QUOTE = 4000


def _value(raw: str) -> object:
    """phidata writes memories into SQLite as Python, and reads them by `eval`. Here nothing but literals is one."""
    try:
        return json.loads(raw)
    except ValueError:
        return ast.literal_eval(raw)


def entry_of_row(item: StoredItem, user: str, *, library: str, place: str) -> ImportedMemory | UnreadableEntry:
    """agno keeps a memory as a JSON string, phidata as an object with the text in `memory`. What it was made of is left
    where it is: it can be a whole message. The memory itself is the quote, for it is where the console finds it."""
    if user == NOBODY:
        return UnreadableEntry(place, f"{library} keeps it for nobody in particular")
    if item.raw_tail:
        return UnreadableEntry(place, f"it is {item.byte_count:,} bytes long")
    try:
        value = _value(item.raw)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return UnreadableEntry(place, "it cannot be read")
    statement = value.get("memory") if isinstance(value, dict) else value
    if not isinstance(statement, str) or not statement.strip():
        return UnreadableEntry(place, "it has no text")
    said = ImportedQuote(statement[:LONGEST_QUOTE], "memory", user, item.id, item.written_at)
    return ImportedMemory(place, ("user", user), statement, f"import/{library}", said=[said])
