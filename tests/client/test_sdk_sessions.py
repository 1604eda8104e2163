"""The SDK's own tests of sessions, in the version that is installed, with every session governed.

They run in a process of their own: they bring plugins of pytest, an event loop and a package `tests`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.conf import settings

FOLDER = Path(sys.prefix) / "sdk-tests"

OF_SESSIONS = ("tests/memory", "tests/extensions/memory", "tests/deferred_session_writes")

AT_LEAST = 1_000
"""There are 1,160 of version 0.24."""

MINUTES = 15

ARGUMENTS = (
    *("-q", "-p", "no:django", "-p", "no:playwright", "-p", "no:xdist"),
    # The SDK leaves these out where time is short, too: they fork processes, whose sessions nobody governs.
    *("-m", "not review_optional"),
)


@dataclass(frozen=True)
class Outcome:
    run_count: int
    failed: list[str]
    said: str


def run(tmp_path: Path, *arguments: str, plugins: tuple[str, ...] = ("governing",)) -> Outcome:
    report = tmp_path / "report.xml"
    report.unlink(missing_ok=True)
    here = [str(settings.CHECKOUT_DIR / "tests/client/sdk"), str(settings.CHECKOUT_DIR), str(FOLDER / "plugins")]
    left_out = ("PYTEST_", "DJANGO_", "MEMADMIN_", "OPENAI_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *ARGUMENTS, *(f"-p{plugin}" for plugin in plugins)),
            *(f"--junit-xml={report}", f"--basetemp={tmp_path / 'of-them'}", "-o", f"cache_dir={tmp_path / 'cache'}"),
            *arguments,
        ],
        cwd=FOLDER / "source",
        env={**environment, "PYTHONPATH": os.pathsep.join(here)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=MINUTES * 60,
    )
    said = ended.stdout[-10_000:]
    assert report.exists(), said
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [
        f"{case.get('classname')}.{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    assert bool(failed) == bool(ended.returncode), said
    return Outcome(sum(case.find("skipped") is None for case in cases), failed, said)


@pytest.fixture
def fetched() -> None:
    """Nothing of this project can bring them where the package index has no source distributions: then not even CI
    fails for it. Once they are here, nothing excuses a failure.
    """
    of = FOLDER / "source/PKG-INFO"
    if not of.exists() or f"\nVersion: {version('openai-agents')}\n" not in of.read_text():
        pytest.skip("NO TESTS OF THE SDK: its source distribution could not be had (tools/install-sdk-tests.sh).")


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
def test_governed_sessions_pass_the_sdks_own_tests_of_sessions(tmp_path: Path) -> None:
    outcome = run(tmp_path, *OF_SESSIONS)
    assert outcome.run_count >= AT_LEAST, outcome.said
    if outcome.failed:
        # Some give a thread or a loop half a second, which a machine with other work does not always have.
        outcome = run(tmp_path, *OF_SESSIONS, "--last-failed")
    assert outcome.failed == [], outcome.said


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
def test_the_sdks_tests_notice_a_governed_session_that_forgets_the_limit(tmp_path: Path) -> None:
    outcome = run(tmp_path, "tests/memory/test_session_limit.py", plugins=("governing", "forgetting"))
    assert outcome.failed
    assert "test_session_limit" in outcome.said
