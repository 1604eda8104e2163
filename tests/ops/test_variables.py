"""Tests of the registry of environment variables: it contains each variable that is read, and no other."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from memadmin import environment
from memadmin.variables import VARIABLES

ROOT: Path = settings.CHECKOUT_DIR
PACKAGES = ("memadmin", "sessions_app", "memories_app")
NOT_OURS = {"DJANGO_SETTINGS_MODULE", "PROMETHEUS_MULTIPROC_DIR", "OTEL_SERVICE_NAME"}


class Recorder:
    """Stands in for the process environment: it contains nothing, and records what it is asked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def get(self, name: str, default: str) -> str:
        self.names.add(name)
        return default


def names_of_settings(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    recorder = Recorder()
    monkeypatch.setattr(environment, "_environment", recorder)
    monkeypatch.setattr(environment, "secret_key", lambda name, kept: environment.text(name) or "unused")
    runpy.run_path(str(ROOT / "memadmin" / "settings.py"))
    return recorder.names


def names_in_code() -> Iterator[tuple[str, str]]:
    """Literal names that product code passes to `environment.*(...)` or looks up in `os.environ`, with their files."""
    for path in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        code = path.read_text()
        for node in ast.walk(ast.parse(code)) if "env" in code else ():
            source = ""
            if isinstance(node, ast.Call):
                source, arguments = ast.unparse(node.func), node.args
            elif isinstance(node, ast.Subscript):
                source, arguments = ast.unparse(node.value), [node.slice]
            if re.match(r"os\.(environ|getenv)|environment\.\w+$", source):
                for argument in arguments[:2]:
                    if isinstance(argument, ast.Constant) and re.fullmatch(r"[A-Z][A-Z_]{3,}", str(argument.value)):
                        yield str(argument.value), str(path.relative_to(ROOT))


def test_every_variable_that_the_settings_read_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_of_settings(monkeypatch) <= set(VARIABLES)


def test_every_variable_that_other_code_reads_is_registered() -> None:
    known = set(VARIABLES) | NOT_OURS | {"MEMADMIN_SESSION_KEY"}
    assert not {(name, path) for name, path in names_in_code() if name not in known}


def test_every_registered_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = names_of_settings(monkeypatch) | {name for name, _ in names_in_code()}
    assert {name for name in VARIABLES if name.removesuffix("_*") not in read} == set()


def test_every_variable_has_a_meaning_and_says_what_happens_without_it() -> None:
    for variable in VARIABLES.values():
        assert variable.meaning.endswith("."), variable.name
        assert not (variable.default and variable.unset), variable.name
        assert not variable.default.isdecimal() or variable.unit or variable.name == "MEMADMIN_PORT", variable.name
