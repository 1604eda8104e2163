"""Virtual environments with what a lock file names and nothing else, made without a download; and the wheel."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath

from django.conf import settings
from packaging.requirements import Requirement


def built_wheel(folder: Path) -> Path:
    """The wheel of this checkout, built in `folder`."""
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)],
        check=True,
        cwd=settings.CHECKOUT_DIR,
        stdout=subprocess.DEVNULL,
    )
    (built,) = folder.glob("memadmin-*.whl")
    return built


def locked_requirements(lock: str = "requirements.txt") -> Iterator[Requirement]:
    """What a lock file names for this machine."""
    lines = (settings.CHECKOUT_DIR / lock).read_text().splitlines()
    for line in lines:
        if re.match(r"\w", line):
            requirement = Requirement(line.rstrip("\\ "))
            if requirement.marker is None or requirement.marker.evaluate():
                yield requirement


def linked_environment(folder: Path, lock: str = "requirements.txt") -> list[str]:
    """Makes an environment in `folder` whose packages are links to those that are installed here.

    Returns the command of a pip that installs into it.
    """
    venv.create(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    for requirement in locked_requirements(lock):
        package = distribution(requirement.name)
        for name in {PurePosixPath(file).parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(package.locate_file(name))  # type: ignore[arg-type]
    return [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--isolated", "--quiet"]


PIP = """#!/bin/sh
case "$*" in
"install --require-hashes --requirement requirements.txt") [ -s requirements.txt ] ;;
"install --no-deps "*.whl) exec {pip} install --no-index --no-deps "$3" ;;
*) exit 1 ;;
esac
"""


def main() -> None:
    """Makes an environment in the folder named, with a `pip` that installs wheels of memadmin and nothing else."""
    folder = Path(sys.argv[1])
    pip = folder / "bin/pip"
    command = shlex.join(linked_environment(folder))
    pip.write_text(PIP.format(pip=command))
    pip.chmod(0o755)


if __name__ == "__main__":
    main()
