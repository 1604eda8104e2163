"""What the cases of tests are called: the same in every process, or two of them could not share the suite.

pytest-xdist compares what its processes collected before it runs anything. `make test` gives each of them another order
of sets, so that a name which depends on it differs.
"""

from __future__ import annotations

import os
import re
import shlex
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
CHOSEN_IN_ORDER = CHOSEN_BY_HASH.replace("{", "sorted({").replace("})", "}))")


def side_by_side() -> list[str]:
    """The options with which `make test` shares the suite among processes."""
    (options,) = re.findall("^SIDE_BY_SIDE = (.+)$", (CHECKOUT_DIR / "Makefile").read_text(), re.MULTILINE)
    return shlex.split(options)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "outcome"), [(CHOSEN_IN_ORDER, "6 passed"), (CHOSEN_BY_HASH, "error")])
def test_a_name_that_changes_is_noticed(tmp_path: Path, text: str, outcome: str) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]")
    (tmp_path / "test_chosen.py").write_text(text)
    left_out = ("PYTEST_", "DJANGO_", "PYTHONHASHSEED")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", *side_by_side()],
        cwd=tmp_path,
        # A folder of its own: pytest closes the usual one to others, and servers under another user work in it.
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "yes", "PYTEST_DEBUG_TEMPROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in ended.stdout
    assert (ended.returncode == 0) == ("passed" in outcome)
    assert ("Different tests were collected" in ended.stdout) == ("error" in outcome)
