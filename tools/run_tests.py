"""pytest, and what failed once more, alone: `tools/run_tests.py [ARGUMENT OF PYTEST]...`.

A test that passes then is unstable, and is named. The run fails if one fails again, if there are more than two unstable
ones, and if pytest did not come to its end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

MOST_UNSTABLE = 2
RECORD = "RECORD_OF_TESTS"
"""The environment variable with the file in which pytest, with this module for a plugin, notes what came of tests."""


@dataclass
class Record:
    """What a run of pytest noted."""

    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    not_collected: set[str] = field(default_factory=set)
    expected: int = -1
    """How many tests there were to run; -1 where pytest ended before its end."""

    @classmethod
    def read(cls, file: Path) -> Record:
        record = cls()
        for line in file.read_text().splitlines() if file.exists() else []:
            noted = json.loads(line)
            if noted["what"] == "end":
                record.expected = noted["count"]
            else:
                getattr(record, noted["what"]).add(noted["name"])
        # A test passes by its call, and may yet fail when what it used is taken down.
        record.passed -= record.failed
        return record

    @property
    def is_whole(self) -> bool:
        return len(self.passed | self.failed | self.skipped) == self.expected and not self.not_collected


def main(arguments: Sequence[str]) -> int:
    code, first = run(arguments)
    if code != pytest.ExitCode.TESTS_FAILED:
        return code
    if not (first.failed and first.is_whole):
        return complain("pytest did not run every test; nothing is tried again.")
    print(f"\n{count(first.failed)} failed; once more, alone:", flush=True)
    _, second = run(["-n", "0", *sorted(first.failed)])
    unstable = first.failed & second.passed
    for name in sorted(unstable):
        print(f"UNSTABLE {name}")
    if again := first.failed - unstable:
        return complain(*(f"FAILED AGAIN {name}" for name in sorted(again)))
    if len(unstable) > MOST_UNSTABLE:
        return complain(f"{count(unstable)} are unstable, and no more than {MOST_UNSTABLE} may be.")
    print(f"Passed, with {count(unstable)} unstable.")
    return 0


def run(arguments: Sequence[str]) -> tuple[int, Record]:
    """The exit code as a shell has it, and what was noted."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "record")
        here = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", Path(__file__).stem, *arguments],
            env={**os.environ, "PYTHONPATH": here, RECORD: str(record)},
            check=False,
        )
        return ended.returncode if ended.returncode >= 0 else 128 - ended.returncode, Record.read(record)


def complain(*lines: str) -> int:
    print(*lines, sep="\n")
    return int(pytest.ExitCode.TESTS_FAILED)


def count(tests: set[str]) -> str:
    return f"{len(tests)} test{'' if len(tests) == 1 else 's'}"


# --- as a plugin of pytest --------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    # Processes of xdist tell theirs to the one that they work for.
    if RECORD in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Notes(Path(os.environ.pop(RECORD))))


class Notes:
    def __init__(self, file: Path) -> None:
        self.file = file

    def note(self, **what: object) -> None:
        """At once: pytest may be killed."""
        with self.file.open("a") as record:
            record.write(json.dumps(what) + "\n")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.note(what="not_collected", name=report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped or report.when == "call":
            self.note(what=report.outcome, name=report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.note(what="end", count=session.testscollected)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
