"""Progress of a scan: which places it has read, how far it is in the present one, and what it has found of whom.

Kept in the run's cursor, so a scan that was killed goes on within the place. It holds names, counts, numbers of cases
and, within a store, the session id it has come to.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from memadmin.runs.engine import Lease

SAVE_SECONDS = 2.0
"""Longest time between two positions that are stored."""

KEY = "scan"
"""Key of the run's cursor."""


class Progress:
    """Progress in memory: for scans without a run. `keep` is called often."""

    def __init__(self, keep: Callable[[], object] = lambda: None, state: Mapping[str, Any] | None = None) -> None:
        self._keep = keep
        self.state: dict[str, Any] = {
            # Pairs of a case and the number of the scan that it waits for. Later cases are not among them.
            "cases": [],
            # Rows of each part that was read.
            "done": {},
            "part": "",
            "at": None,
            "rows": 0,
            # Case, place, code and number of rows.
            "found": [],
            "before": [],
            "hidden": [],
            "not_vacuumed": [],
        }
        self.state |= state or {}
        self._counts: Counter[tuple[int, str, str]] = counter_of(self.state["found"])
        # What was found since the last position: it is found again if the scan goes on from there.
        self._found: Counter[tuple[int, str, str]] = Counter()

    def rows(self, *, without: Collection[str] = ()) -> int:
        """Number of rows that were read, but for those of some parts."""
        done = sum(rows for part, rows in self.state["done"].items() if part not in without)
        return int(self.state["rows"] + done)

    @property
    def places(self) -> int:
        """Number of places that were read."""
        return sum(not part.startswith("vacuum ") for part in self.state["done"])

    def is_done(self, part: str) -> bool:
        return part in self.state["done"]

    def begin(self, part: str) -> Any:
        """Position from which this part of the scan goes on; None at its beginning."""
        if self.state["part"] != part:
            self.state |= {"part": part, "at": None, "rows": 0, "before": rows_of(self._counts)}
        self._found.clear()
        return self.state["at"]

    def found(self, cases: Iterable[int], place: str, *, code: str = "", count: int = 1) -> None:
        """Counts rows found at a place since the last position, for each of these cases.

        Without a code another round can erase them.
        """
        if count:
            for case in cases:
                self._found[case, place, code] += count

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
        self._end(part)

    def _end(self, part: str) -> None:
        self._count_found()
        rows = self.state["rows"] if self.state["part"] == part else 0
        self.state["done"][part] = rows
        self.state |= {"part": "", "at": None, "rows": 0, "before": []}

    def pass_over(self, part: str) -> None:
        """Finishes a part in which there is nothing to read. Costs less than `finish`: a scan that goes on from the
        last stored position looks at it again.
        """
        self._end(part)
        self.keep()

    def give_up(self, part: str) -> None:
        """Forgets what was read of this part, which begins again later."""
        if self.state["part"] == part:
            self._counts = counter_of(self.state["before"])
            self.state |= {"part": "", "at": None, "rows": 0, "before": []}
        self._found.clear()

    def _count_found(self) -> None:
        self._counts.update(self._found)
        self._found.clear()

    def found_by_case(self) -> dict[int, list[dict[str, Any]]]:
        """Place, code and number of rows found there, by case."""
        found: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for (case, place, code), count in self._counts.items():
            found[case].append({"place": place, "code": code, "found": count})
        return found

    def cases_at(self, place: str) -> set[int]:
        """Cases for which something was found at a place."""
        return {case for case, where, _ in self._counts if where == place}

    def note_hidden(self, place: str) -> None:
        """Notes a table of which this role may not read every column."""
        if place not in self.state["hidden"]:
            self.state["hidden"].append(place)

    def saved(self) -> dict[str, Any]:
        """State from which a later process continues."""
        return {**self.state, "found": rows_of(self._counts)}


def counter_of(rows: Iterable[list[Any]]) -> Counter[tuple[int, str, str]]:
    return Counter({(case, place, code): count for case, place, code, count in rows})


def rows_of(counts: Counter[tuple[int, str, str]]) -> list[list[Any]]:
    return [[*key, count] for key, count in counts.items()]


class RunProgress(Progress):
    """Progress of a scan that is part of a run; stored in chunks of its lease, and handed over between them."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(lease.keep, lease.run.cursor.get(KEY))
        self._lease = lease
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
            run.cursor = {**run.cursor, KEY: self.saved()}
        self._saved_at = time.monotonic()
        self._lease.checkpoint()
