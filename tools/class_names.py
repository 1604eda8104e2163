"""Names of top-level classes that more than one module of the product defines. `make check` fails if there are any."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("memadmin", "sessions_app", "memories_app")
REPEATED = {
    "Command": "Django loads this class from each module of management/commands.",
    "Migration": "Django loads this class from each module of migrations.",
}
"""Names that may be defined more than once, with the reason."""
SAME_MEANING = {
    "Evidence": "The client's value for what the model stores; agents' processes cannot import models.",
    "Subject": "The client's value for what the model stores; agents' processes cannot import models.",
}
"""Names that the client (memadmin/client), which is the interface for agents, may share with one model."""


def class_definitions(root: Path) -> Iterator[tuple[str, str]]:
    """Name and position (path and line) of each top-level class below `root`, by path."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    yield node.name, f"{path.relative_to(root).as_posix()}:{node.lineno}"


def repeated_names(root: Path) -> dict[str, list[str]]:
    """Positions of the definitions by class name, for each name that is defined more than once and is not exempt."""
    positions: dict[str, list[str]] = defaultdict(list)
    for name, position in class_definitions(root):
        if name in REPEATED or (name in SAME_MEANING and position.startswith("memadmin/client/")):
            continue
        positions[name].append(position)
    return {name: found for name, found in sorted(positions.items()) if len(found) > 1}


def main(root: Path = ROOT) -> int:
    """Prints each repeated name with its positions; 1 if there are any."""
    repeated = repeated_names(root)
    for name, positions in repeated.items():
        print(f"{name} is defined more than once: {', '.join(positions)}")
    return 1 if repeated else 0


if __name__ == "__main__":
    sys.exit(main())
