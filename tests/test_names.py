"""What the cases of tests are called: the same in every process, or two of them could not share the suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memadmin.settings import CHECKOUT_DIR

CHOSEN_BY_HASH = """
import pytest

@pytest.mark.parametrize("word", {"milk", "tea", "water", "honey", "bread", "salt"})
def test_it(word): ...
"""


def names_in(place: Path, seed: int) -> list[str]:
    """The cases that are found there, in order, by a process that puts sets in an order of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--collect-only", str(place)]
    found = subprocess.run(
        command,
        cwd=CHECKOUT_DIR,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in found.stdout.splitlines() if "::" in line]


def test_every_case_has_the_same_name_in_every_process(request: pytest.FixtureRequest) -> None:
    here = {item.nodeid for item in request.session.items}
    assert here - {*names_in(CHECKOUT_DIR / "tests", seed=1)} == set()


def test_a_name_that_changes_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "test_chosen.py").write_text(CHOSEN_BY_HASH)
    first, second = (names_in(tmp_path / "test_chosen.py", seed) for seed in (1, 2))
    assert sorted(first) == sorted(second)
    assert first != second
