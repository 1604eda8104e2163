from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning"]

APPLY = "Run `db_roles --apply` as an administrator of the database."


@dataclass(frozen=True, slots=True)
class CheckFinding:
    level: Level
    """With an error the deployment does not keep what it promises; a warning wants somebody to have thought of it."""
    check: str
    hint: str
