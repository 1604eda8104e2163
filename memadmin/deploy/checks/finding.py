from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning"]

APPLY = "Run `db_roles --apply` as an administrator of the database."


@dataclass(frozen=True, slots=True)
class CheckFinding:
    level: Level
    """An error breaks a promise of the deployment; a warning is a risk that an operator should have accepted."""
    check: str
    hint: str
    """Problem and remedy, in sentences."""

    @property
    def title(self) -> str:
        """The first sentence of the hint."""
        return self.hint.partition(". ")[0].removesuffix(".")

    @property
    def rest(self) -> str:
        """The sentences after the first one."""
        return self.hint.partition(". ")[2]
