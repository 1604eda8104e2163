"""SQL statements with a purpose: planned, shown or run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connection
from psycopg import sql


@dataclass(frozen=True, slots=True)
class SqlStep:
    purpose: str
    statements: tuple[sql.Composable, ...]
    is_allowed: bool = True
    """False if only another role may run it: the owner of the agents' tables, or an administrator of the roles."""

    @property
    def as_text(self) -> list[str]:
        return [statement.as_string(None) for statement in self.statements]

    def as_script(self) -> str:
        return "\n".join([f"-- {self.purpose}", *(f"{statement};" for statement in self.as_text)])


def run(steps: Iterable[SqlStep]) -> None:
    """Runs all steps in the caller's transaction."""
    with connection.cursor() as cursor:
        for step in steps:
            cursor.execute(sql.SQL("; ").join(step.statements))


def fetch(query: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return list(cursor.fetchall())
