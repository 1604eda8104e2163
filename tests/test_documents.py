"""The documentation against the code: links, paths, commands, settings, events and requirements that it names exist."""

from __future__ import annotations

import ast
import importlib
import posixpath
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandParser

from memadmin.variables import VARIABLES

ROOT: Path = settings.CHECKOUT_DIR
PACKAGES = ("memadmin", "sessions_app", "memories_app")
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
HISTORY = {"CHANGELOG.md", "docs/performance-history.md"}
"""Documents that name what is gone."""
DOCUMENTS = sorted(path for path in TRACKED if path.endswith(".md") and "static/vendor" not in path)
GENERATED = {"docs/settings.md", "docs/commands.md", "docs/glossary.md"}
"""Pages of the site that `tools/documentation.py` adds, and to which pages of docs/ link."""
REQUIREMENTS = (ROOT / "docs" / "requirements.md").read_text()
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ROW = re.compile(r"^\| ([AS]-\d+) \|.*$", re.MULTILINE)


def text_of(path: str) -> str:
    return (ROOT / path).read_text()


def prose_of(path: str) -> str:
    """The document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text_of(path), flags=re.MULTILINE | re.DOTALL)


@cache
def names_in(path: Path) -> set[str]:
    """Names of the tests of a file, also of those in classes."""
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def constants_in(path: Path) -> set[str]:
    """Names in capitals to which a module gives a value."""
    targets = [
        target for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign) for target in node.targets
    ]
    return {target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()}


def anchors_of(path: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", prose_of(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


# --- what documents name


def test_links_lead_somewhere() -> None:
    faults = []
    for path in DOCUMENTS:
        for target, anchor in re.findall(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)", prose_of(path)):
            if ":" in target:
                continue
            named = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            is_ours = named.endswith(".md") and named not in GENERATED
            if not (named in GENERATED or (ROOT / named).exists()):
                faults.append(f"{path} links to {target}")
            elif anchor and is_ours and anchor not in anchors_of(named):
                faults.append(f"{path} links to {target}#{anchor}")
    assert faults == []


def test_paths_of_code_exist() -> None:
    """Paths in backticks begin at the root of the repository, or in a README at its own folder."""
    at_the_root = {each.split("/")[0] for each in TRACKED}
    faults = []
    for path in DOCUMENTS:
        folder = posixpath.dirname(path) if path.endswith("README.md") else ""
        for named in re.findall(r"`([\w.-]+(?:/[\w.-]*)+|[\w-]+\.(?:py|toml))(?:::\w+)?`", prose_of(path)):
            first = named.split("/")[0]
            is_elsewhere = first not in at_the_root and not folder
            if path in HISTORY or is_elsewhere or first in {".memadmin", "build", "test-results"}:
                continue
            if not ((ROOT / named).exists() or (ROOT / folder / named).exists()):
                faults.append(f"{path} names {named}")
    assert faults == []


def test_settings_exist() -> None:
    outside = {"MEMADMIN_TRANSCRIPTS", "MEMADMIN_FAULT_SECONDS"}  # of the tests
    faults = []
    for path in DOCUMENTS:
        for name in re.findall(r"\b(?:MEMADMIN|AGENT)_[A-Z0-9_]+\b", text_of(path)):
            is_prefix = any(each.startswith(name) for each in VARIABLES) and name.endswith("_")
            is_key = name.startswith("MEMADMIN_SESSION_KEY_")
            if not (is_prefix or is_key or name.removesuffix("_FILE") in VARIABLES.keys() | outside):
                faults.append(f"{path} names {name}")
    assert faults == []


def test_commands_and_targets_exist() -> None:
    known, targets = get_commands().keys(), set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    faults = []
    for path in DOCUMENTS:
        text = text_of(path)
        commands = set(re.findall(r"(?:manage\.py|\bmemadmin) ([a-z]\w*_\w+|worker|demo|distil|consolidate)\b", text))
        faults += [f"{path} names the command {name}, which is not there" for name in commands - known]
        named = set(re.findall(r"`make ([a-z]+(?:-[a-z]+)*)", text))
        faults += [f"{path} names the target {name}, which is not there" for name in named - targets]
    assert faults == []


def test_imports_of_examples_exist() -> None:
    faults = []
    for path in DOCUMENTS:
        for block in re.findall(r"^```python\n(.*?)^```", text_of(path), re.MULTILINE | re.DOTALL):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
                    module = importlib.import_module(node.module or "")
                    missing = [name.name for name in node.names if not hasattr(module, name.name)]
                    faults += [f"{path} imports {name} from {node.module}" for name in missing]
    assert faults == []


# --- what the code has to say for the generated pages


def own_commands() -> Iterator[tuple[str, str]]:
    for name, app in get_commands().items():
        if app.split(".")[0] in PACKAGES:
            yield name, app


def test_every_command_and_argument_has_help() -> None:
    faults = []
    for name, app in own_commands():
        command, parser = load_command_class(app, name), CommandParser()
        command.add_arguments(parser)
        if not command.help.strip().endswith("."):
            faults.append(f"{name} has no help")
        faults += [f"{name} {action.dest} has no help" for action in parser._actions if not action.help]
    assert faults == []


def test_every_command_has_its_database_role() -> None:
    roles = text_of("docs/database-roles.md")
    missing = {name for name, _ in own_commands() if f"`{name}" not in roles}
    # Worker and web server are processes of their own there; the others are for who tries memadmin or works on it.
    assert missing <= {"audit_events", "demo", "serve", "worker"}


def test_a_term_has_one_entry_in_the_glossary() -> None:
    groups = tomllib.loads(text_of("memadmin/web/glossary.toml"))["group"]
    names = [term["name"] for group in groups for term in group["term"]]
    assert len(names) > 50
    assert len({name.lower() for name in names}) == len(names)
    assert all(term["text"].strip().endswith(".") for group in groups for term in group["term"])


def test_every_page_of_the_documentation_is_in_its_navigation() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", text_of("mkdocs.yml"), re.MULTILINE))
    pages = {path.removeprefix("docs/") for path in DOCUMENTS if path.startswith("docs/") and "/adr/" not in path}
    assert pages <= listed


def test_decisions_are_numbered_and_have_the_same_parts() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    assert [path.name[:4] for path in decisions] == [f"{number:04}" for number in range(1, len(decisions) + 1)]
    for path in decisions:
        parts = re.findall(r"^## (.*)$", path.read_text(), re.MULTILINE)
        assert parts == ["Context", "Decision", "Rejected alternatives", "Consequences"], path.name


# --- what documents promise


def test_a_test_that_shows_a_requirement_exists() -> None:
    shown = sorted(set(TEST.findall(REQUIREMENTS)))
    assert len(shown) > 50
    assert [f"{path}::{name}" for path, name in shown if name not in names_in(ROOT / path)] == []


def test_every_requirement_has_one_row() -> None:
    expected = [f"A-{number}" for number in range(1, 19)] + [f"S-{number}" for number in range(1, 25)]
    assert ROW.findall(REQUIREMENTS) == expected


def test_what_is_met_is_shown_and_what_waits_says_for_what() -> None:
    for row in ROW.finditer(REQUIREMENTS):
        state = row[0].split("|")[3].strip()
        if state.startswith("met"):
            assert TEST.search(row[0]), f"{row[1]} is said to be met, and no test is named"
        elif "missed" not in state:
            assert "wait" in state, f"{row[1]} says neither that it is met nor what it waits for"


def test_what_is_called_pure_is_held_to_it() -> None:
    readme = text_of("sessions_app/README.md")
    rows = re.findall(r"^\| `(\w+)/` \| pure: ", readme, re.MULTILINE)
    for line in re.findall(r"^\|.* are pure \|$", readme, re.MULTILINE):
        rows += [f"{folder}.{module}" for folder, module in re.findall(r"`(\w+)/(\w+)\.py`", line)]
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (held,) = [set(each["source_modules"]) for each in contracts if each["name"].endswith("are pure")]
    assert {f"sessions_app.{row}" for row in rows} == held


def test_what_all_stores_share_is_written_once() -> None:
    app = ROOT / "sessions_app"
    shared = constants_in(app / "stores" / "base.py") | constants_in(app / "items.py")
    assert {"COUNTED_EXACTLY", "IN_DOUBT", "LONGEST_ID_BYTES"} <= shared
    for path in (*app.glob("stores/*/*.py"), *app.glob("registry/*.py")):
        assert not constants_in(path) & shared, path
