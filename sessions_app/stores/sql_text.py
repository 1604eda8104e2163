"""Stored text and names of tables, as databases with SQL return them."""

from __future__ import annotations


def as_text(stored: object) -> str:
    """A stored text, also if the driver returns bytes or a number. Bytes that are not UTF-8 become surrogates."""
    return stored.decode(errors="surrogateescape") if isinstance(stored, bytes) else str(stored)


def schema_and_table(name: str) -> tuple[str | None, str]:
    """Both parts of `schema.table`; None without a schema."""
    schema, _, table = name.rpartition(".")
    return schema or None, table
