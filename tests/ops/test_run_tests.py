"""`tools/run_tests.py`, on suites of a few tests: what failed runs once more, and only chance is forgiven, twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memadmin.settings import CHECKOUT_DIR

pytestmark = pytest.mark.release

PASSING = """
def test_sound():
    pass
"""
FLAKY = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("word", {words})
def test_flaky(word):
    try:
        Path(__file__).with_name(f"{{hash(word)}}").touch(exist_ok=False)
    except FileExistsError:
        return
    raise AssertionError(word)
"""
FAILING = """
def test_broken():
    raise AssertionError
"""
LATE = """
import pytest

@pytest.fixture
def cup():
    yield
    raise AssertionError

def test_late(cup):
    pass
"""
SKIPPED_LATER = """
from pathlib import Path
import pytest

def test_gone():
    mark = Path(__file__).with_name("mark")
    if mark.exists():
        pytest.skip("gone")
    mark.touch()
    raise AssertionError
"""
UNREADABLE = "import nothing_of_this_name"
KILLED = """
import os, signal

def test_killed():
    os.kill({pid}, signal.SIGKILL)
"""


def run(folder: Path, *arguments: str, **files: str) -> tuple[int, str]:
    """With only xdist for a plugin."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    left_out = ("PYTEST_", "DJANGO_", "RECORD_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    only_xdist = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "yes", "PYTEST_ADDOPTS": "-p xdist", "PYTHONHASHSEED": "1"}
    ended = subprocess.run(
        [sys.executable, str(CHECKOUT_DIR / "tools/run_tests.py"), *arguments],
        cwd=folder,
        # A folder of its own: pytest closes the usual one to others, and servers under another user work in it.
        env={**environment, **only_xdist, "PYTEST_DEBUG_TEMPROOT": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout


def test_sound_suite_passes_and_runs_once(tmp_path: Path) -> None:
    code, said = run(tmp_path, sound=PASSING)
    assert code == 0
    assert said.count("1 passed in") == 1
    assert "UNSTABLE" not in said


@pytest.mark.parametrize("processes", ["0", "2"])
def test_unstable_test_is_named(tmp_path: Path, processes: str) -> None:
    words = ["tea :: with [milk]", "coffee / black"]
    code, said = run(tmp_path, "-n", processes, sound=PASSING, flaky=FLAKY.format(words=words))
    assert code == 0, said
    assert "2 failed, 1 passed in" in said
    assert "2 passed in" in said
    for word in words:
        assert f"UNSTABLE test_flaky.py::test_flaky[{word}]" in said
    assert "FAILED AGAIN" not in said


def test_three_unstable_tests_are_too_many(tmp_path: Path) -> None:
    code, said = run(tmp_path, flaky=FLAKY.format(words=["tea", "milk", "water"]))
    assert code == 1
    assert said.count("\nUNSTABLE ") == 3
    assert "3 tests are unstable" in said


def test_what_does_not_pass_the_second_time_fails_the_run(tmp_path: Path) -> None:
    bad = {"broken": FAILING, "late": LATE, "gone": SKIPPED_LATER}
    code, said = run(tmp_path, sound=PASSING, **bad, flaky=FLAKY.format(words=["tea"]))
    assert code == 1
    assert "UNSTABLE test_flaky.py::test_flaky[tea]" in said
    for name in bad:
        assert said.count(f"\nFAILED AGAIN test_{name}.py::") == 1


@pytest.mark.parametrize("processes", ["0", "2"])
def test_file_that_cannot_be_collected_fails_the_run(tmp_path: Path, processes: str) -> None:
    code, said = run(tmp_path, "-n", processes, sound=PASSING, unreadable=UNREADABLE, flaky=FLAKY.format(words=["tea"]))
    assert code != 0
    assert "UNSTABLE" not in said


def test_suite_that_is_not_run_to_its_end_fails(tmp_path: Path) -> None:
    code, said = run(tmp_path, "-x", a=FLAKY.format(words=["tea"]), b=PASSING)
    assert code == 1
    assert "did not run every test" in said


def test_suite_without_tests_fails(tmp_path: Path) -> None:
    assert run(tmp_path, nothing="")[0] == pytest.ExitCode.NO_TESTS_COLLECTED


def test_pytest_that_was_killed_fails_the_run(tmp_path: Path) -> None:
    code, said = run(tmp_path, a=FLAKY.format(words=["tea"]), killed=KILLED.format(pid="os.getpid()"))
    assert code == 128 + signal.SIGKILL
    assert "UNSTABLE" not in said


def test_test_that_kills_its_process_is_tried_again_and_fails_the_run(tmp_path: Path) -> None:
    """Killed with the process of xdist that runs it, another one runs the others."""
    code, said = run(tmp_path, "-n", "2", sound=PASSING, killed=KILLED.format(pid="os.getpid()"))
    assert code == 1
    assert "FAILED AGAIN test_killed.py::test_killed" in said
