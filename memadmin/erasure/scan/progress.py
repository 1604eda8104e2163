"""Progress of a scan: which places it has read, how far it is in the present one, and what it has found.

Kept in the run's cursor, so a scan that was killed goes on within the place. It holds names, counts and, within a
store, the session id it has come to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from memadmin.runs.engine import Lease

SAVE_SECONDS = 2.0
"""At most so long since the last position that was stored."""

KEY, CLEAN = "scan", "clean"
"""Keys of the run's cursor: this progress; the number of scans when one found nothing more to erase."""


class Progress:
    """Progress in memory: for scans without a run. `keep` is called often."""

    def __init__(self, keep: Callable[[], object] = lambda: None) -> None:
        self._keep = keep
        self.state: dict[str, Any] = {
            "done": [],
            "part": "",
            "at": None,
            "rows": 0,
            "places": [],
            "hidden": [],
            "before": {},
        }
        # What was found since the last position: it is found again if the scan goes on from there.
        self._found: list[tuple[str, str, int]] = []

    @property
    def rows(self) -> int:
        return int(self.state["rows"])

    def is_done(self, part: str) -> bool:
        return part in self.state["done"]

    def begin(self, part: str) -> Any:
        """Position from which this part of the scan goes on; None at its beginning."""
        if self.state["part"] != part:
            before = {"rows": self.state["rows"], "places": self.state["places"]}
            self.state |= {"part": part, "at": None, "before": before}
        self._found = []
        return self.state["at"]

    def found(self, place: str, *, code: str = "", count: int = 1) -> None:
        """Counts rows found at a place since the last position. Without a code another round can erase them."""
        if count:
            self._found.append((place, code, count))

    def move(self, at: Any, *, rows: int) -> None:
        """Everything before this position was read, and so many rows more than before."""
        self._count_found()
        self.state["at"] = at
        self.state["rows"] += rows
        self.keep()

    def keep(self) -> None:
        """Between reads, as often as one likes."""
        self._keep()

    def finish(self, part: str) -> None:
        self._count_found()
        self.state |= {"done": [*self.state["done"], part], "part": "", "at": None}

    def give_up(self, part: str) -> None:
        """Forgets what was read of this part, which begins again later."""
        if self.state["part"] == part:
            self.state |= self.state["before"] | {"part": "", "at": None}
        self._found = []

    def _count_found(self) -> None:
        counts = {(row["place"], row["code"]): row["found"] for row in self.state["places"]}
        for place, code, count in self._found:
            counts[place, code] = counts.get((place, code), 0) + count
        self.state["places"] = [
            {"place": place, "code": code, "found": count} for (place, code), count in counts.items()
        ]
        self._found = []

    def note_hidden(self, place: str) -> None:
        """Notes a table of which this role may not read every column."""
        if place not in self.state["hidden"]:
            self.state["hidden"].append(place)


class RunProgress(Progress):
    """Progress of a scan that is part of a run; stored in chunks of its lease, and handed over between them."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(lease.keep)
        self._lease = lease
        self.state |= lease.run.cursor.get(KEY, {})
        self._saved_at = time.monotonic()

    def move(self, at: Any, *, rows: int) -> None:
        super().move(at, rows=rows)
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            self.save()

    def finish(self, part: str) -> None:
        super().finish(part)
        self.save()

    def save(self) -> None:
        with self._lease.chunk() as run:
            run.cursor = {**run.cursor, KEY: self.state}
        self._saved_at = time.monotonic()
        self._lease.checkpoint()
