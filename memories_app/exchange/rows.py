"""Rows of the user memory tables of agno and phidata."""

from __future__ import annotations

import ast
import json

from memories_app.exchange.entries import ImportedMemory, ImportedQuote, UnreadableEntry
from sessions_app.items import StoredItem

NO_USER = "default"
"""User id of agno's memories without a user."""


def _value(raw: str) -> object:
    """The decoded memory. phidata stores Python in SQLite and reads it by `eval`; here only literals are accepted."""
    try:
        return json.loads(raw)
    except ValueError:
        return ast.literal_eval(raw)


def entry_of_row(item: StoredItem, user: str, *, library: str, place: str) -> ImportedMemory | UnreadableEntry:
    """The entry of a row. agno stores a memory as a JSON string, phidata as an object with the text in `memory`. Its
    source is not imported: it can be a whole message. The memory itself is the quote, where the console finds it."""
    if user == NO_USER:
        return UnreadableEntry(place, f"{library} stored it without a user")
    if item.raw_tail:
        return UnreadableEntry(place, f"it is {item.byte_count:,} bytes long")
    try:
        value = _value(item.raw)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return UnreadableEntry(place, "it cannot be read")
    statement = value.get("memory") if isinstance(value, dict) else value
    if not isinstance(statement, str) or not statement.strip():
        return UnreadableEntry(place, "it has no text")
    said = ImportedQuote(statement.strip(), "memory", user, item.id, item.written_at)
    return ImportedMemory(place, ("user", user), statement, f"import/{library}", said=[said])
