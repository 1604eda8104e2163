"""JSON column for what agents store beside the text of a memory, which may be any JSON."""

from __future__ import annotations

from typing import Any

from django.db import models

UNREADABLE = "unreadable"
"""Only member of data that Python cannot decode; its value is the stored text."""


class AnyJsonField(models.JSONField):
    """A JSONField whose value never raises when it is read.

    jsonb takes more than Python's decoder: thousands of levels, and numbers of a hundred thousand digits. One such row
    would otherwise break every list with it, and every job over it.
    """

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        try:
            return super().from_db_value(value, expression, connection)
        except (ValueError, RecursionError):
            return {UNREADABLE: value}

    def deconstruct(self) -> Any:
        """The parent's: the column is the same, and migrations do not depend on this module."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs
