"""What the documents say is there, is there."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
from django.conf import settings

ROOT: Path = settings.CHECKOUT_DIR
SECURITY = (ROOT / "docs" / "security.md").read_text()
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
README = (ROOT / "README.md").read_text()
SETTING = re.compile(r"environment\.\w+\(\s*\"([A-Z_]+)\"")
ROW = re.compile(r"^\| ([AS]-\d+) \|.*$", re.MULTILINE)


def names_in(path: Path) -> set[str]:
    """Names of the tests of a file, also of those in classes."""
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def constants_in(path: Path) -> set[str]:
    """Names in capitals to which a module gives a value."""
    targets = [
        target for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign) for target in node.targets
    ]
    return {target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()}


@pytest.mark.parametrize(("path", "name"), sorted(set(TEST.findall(SECURITY))))
def test_a_test_that_shows_a_requirement_exists(path: str, name: str) -> None:
    assert name in names_in(ROOT / path)


def test_every_requirement_has_one_row() -> None:
    expected = [f"A-{number}" for number in range(1, 19)] + [f"S-{number}" for number in range(1, 25)]
    assert ROW.findall(SECURITY) == expected


def test_what_is_met_is_shown_and_what_waits_says_for_what() -> None:
    for row in ROW.finditer(SECURITY):
        stands = row[0].split("|")[3].strip()
        if stands.startswith("met"):
            assert TEST.search(row[0]), f"{row[1]} is said to be met, and no test is named"
        elif "missed" not in stands:
            assert "wait" in stands, f"{row[1]} says neither that it is met nor what it waits for"


def test_every_variable_that_the_settings_read_is_in_the_readme() -> None:
    read = set(SETTING.findall((ROOT / "memadmin" / "settings.py").read_text()))
    assert {name for name in read if f"`{name}`" not in README} <= {"MEMADMIN_DEBUG"}, "say in README.md what it means"


def test_what_the_architecture_calls_pure_is_held_to_it() -> None:
    rooms = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1]
    called_pure = {
        f"sessions_app.{room[1]}" for room in re.finditer(r"^  (\w+)/ (?:(?!^  \w).)*?; pure$", rooms, re.M | re.S)
    }
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (held,) = [set(each["source_modules"]) for each in contracts if each["name"].endswith("are pure")]
    assert called_pure == held


def test_what_all_stores_share_is_written_once() -> None:
    app = ROOT / "sessions_app"
    shared = constants_in(app / "stores" / "base.py") | constants_in(app / "items.py")
    assert {"COUNTED_EXACTLY", "IN_DOUBT", "LONGEST_ID_BYTES"} <= shared
    for path in (*app.glob("stores/*/*.py"), *app.glob("registry/*.py")):
        assert not constants_in(path) & shared, path


def test_a_word_has_one_entry_in_the_glossary() -> None:
    entries = re.findall(r"^- \*\*([^*]+)\*\*", (ROOT / "docs" / "glossary.md").read_text(), re.M)
    assert len(entries) > 50
    assert sorted(entries) == sorted(set(entries))


def commands() -> set[str]:
    return {path.stem for path in ROOT.glob("**/management/commands/[a-z]*.py") if ".venv" not in path.parts}


def test_security_says_as_whom_each_command_runs() -> None:
    untold = {name for name in commands() if f"`{name}" not in SECURITY}
    # The worker is a part of its own there; the others are for who tries memadmin or works on it.
    assert untold <= {"audit_events", "demo", "worker"}


def test_every_command_is_in_the_readme() -> None:
    missing = {name for name in commands() if f"`{name}" not in README}
    assert missing <= {"audit_events"}, "say in README.md what it does"  # which is for who works on this
