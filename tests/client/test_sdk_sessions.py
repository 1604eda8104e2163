"""The SDK's own tests of sessions, in the version that is installed, with every session governed.

They run in a process of their own: they bring plugins of pytest, an event loop and a package `tests`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp
from xml.etree import ElementTree

import pytest
from django.conf import settings

FOLDER = Path(sys.prefix) / "sdk-tests"

OF_SESSIONS = ("tests/memory", "tests/extensions/memory", "tests/deferred_session_writes/test_compaction.py")
"""The other files about deferred writes bring a class of sessions of their own, which is not governed."""

OF_LIMITS = "tests/memory/test_session_limit.py"

AT_LEAST = 750
"""Version 0.24 has 804 such tests that make a governed session."""

MINUTES = 15

ARGUMENTS = (
    *("-q", "-p", "no:django", "-p", "no:playwright", "-p", "no:xdist", "-p", "governing"),
    # The SDK leaves these out where time is short, too: they fork processes, whose sessions nobody governs.
    *("-m", "not review_optional"),
)

RUNS_PYTEST = """
import json
import os
import sys

import agents.extensions.memory
import pytest

for said, *arguments in json.loads(sys.argv[1]):
    if not os.fork():
        written = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(written, 1)
        os.dup2(written, 2)
        sys.exit(pytest.main(arguments))
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
"""Runs of pytest, one after the other, each in a new process in which the SDK is loaded already."""


@dataclass(frozen=True)
class Outcome:
    governed: int
    failed: list[str]
    said: str


def run(folder: Path, *runs: Sequence[str]) -> list[Outcome]:
    """What came of several runs of the SDK's tests with these arguments."""
    folders = [Path(mkdtemp(dir=folder)) for _ in runs]
    here = [str(settings.CHECKOUT_DIR / "tests/client/sdk"), str(settings.CHECKOUT_DIR), str(FOLDER / "plugins")]
    left_out = ("PYTEST_", "DJANGO_", "MEMADMIN_", "OPENAI_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    commands = [
        [
            *(str(each / "said"), *ARGUMENTS, f"--junit-xml={each / 'report.xml'}", f"--basetemp={each / 'of-them'}"),
            *("-o", f"cache_dir={folder / 'cache'}", *arguments),
        ]
        for each, arguments in zip(folders, runs, strict=True)
    ]
    ended = subprocess.run(
        [sys.executable, "-c", RUNS_PYTEST, json.dumps(commands)],
        cwd=FOLDER / "source",
        env={**environment, "PYTHONPATH": os.pathsep.join(here)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=MINUTES * 60,
    )
    return [outcome(each, int(code)) for each, code in zip(folders, ended.stdout.split(), strict=True)]


def outcome(folder: Path, exit_code: int) -> Outcome:
    said, report = (folder / "said").read_text()[-10_000:], folder / "report.xml"
    assert report.exists(), said
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [
        f"{case.get('classname')}.{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    assert bool(failed) == bool(exit_code), said
    governed = sum(case.find("properties/property[@name='governed']") is not None for case in cases)
    return Outcome(governed, failed, said)


@pytest.fixture
def fetched() -> None:
    """Nothing of this project can bring them where the package index has no source distributions: then not even CI
    fails for it. Once they are here, nothing excuses a failure.
    """
    of = FOLDER / "source/PKG-INFO"
    if not of.exists() or f"\nVersion: {version('openai-agents')}\n" not in of.read_text():
        pytest.skip("NO TESTS OF THE SDK: its source distribution could not be had (tools/install-sdk-tests.sh).")


@pytest.mark.release
@pytest.mark.usefixtures("fetched")
def test_governed_sessions_pass_the_sdks_own_tests_of_sessions(tmp_path: Path) -> None:
    """A session that forgets the limit does not pass them."""
    forgetful, governed = run(tmp_path, ["-p", "forgetting", OF_LIMITS], OF_SESSIONS)
    assert forgetful.failed
    assert "test_session_limit" in forgetful.said
    assert governed.governed >= AT_LEAST, governed.said
    if governed.failed:
        # Some give a thread or a loop half a second, which a machine with other work does not always have.
        (governed,) = run(tmp_path, [*OF_SESSIONS, "--last-failed"])
    assert governed.failed == [], governed.said
