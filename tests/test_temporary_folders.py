"""The folders of a test run stay open to its servers, whatever other runs do."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path


def test_another_run_of_the_same_user_closes_no_folder_of_this_one(tmp_path: Path) -> None:
    ours = [tmp_path, *list(tmp_path.parents)[:-2]]
    for folder in ours:
        folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    other = tmp_path / "test_other.py"
    other.write_text("def test_other(tmp_path): assert tmp_path.exists()")
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "--noconftest"]
    subprocess.run(
        [*command, str(other)],
        cwd=tmp_path,
        env={**usual, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "yes"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert all(folder.stat().st_mode & stat.S_IXOTH for folder in ours)
