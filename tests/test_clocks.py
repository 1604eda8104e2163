"""No module reads a clock when it is imported: what it then computes is old by the time that it is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from memadmin.settings import CHECKOUT_DIR

CLOCKS = {"now", "today", "utcnow", "localdate", "localtime", "time", "time_ns", "monotonic", "perf_counter", "gmtime"}
FOLDERS = ("memadmin", "memories_app", "sessions_app", "tests", "tools")


def clocks_read_at_import(code: str) -> Iterator[str]:
    """Calls of a clock with their lines, outside of functions; decorators and default values are outside."""
    if not re.search(rf"\b({'|'.join(CLOCKS)})\(", code):
        return
    waiting: list[ast.AST] = [ast.parse(code)]
    while waiting:
        match node := waiting.pop():
            case ast.FunctionDef(args=given) | ast.AsyncFunctionDef(args=given):
                waiting += [*node.decorator_list, *given.defaults, *filter(None, given.kw_defaults)]
                continue
            case ast.Lambda():
                continue
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CLOCKS:
                yield f"{node.lineno}: {ast.unparse(node)}"
        waiting += ast.iter_child_nodes(node)


def test_no_clock_is_read_at_import() -> None:
    files = [file for folder in FOLDERS for file in (CHECKOUT_DIR / folder).rglob("*.py")]
    found = [f"{file}:{clock}" for file in files for clock in clocks_read_at_import(file.read_text())]
    assert len(files) > 1000
    assert found == []


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("TODAY = now().date()", 1),
        ("@parametrize('day', [timezone.now() - DAY])\ndef test(day): ...", 1),
        ("def late(at=datetime.now(UTC)): ...", 1),
        ("class Story:\n    began = time.monotonic()", 1),
        ("def late():\n    return now()", 0),
        ("CASES = {'late': lambda: now()}", 0),
    ],
)
def test_each_way_to_read_one_is_found(code: str, count: int) -> None:
    assert len(list(clocks_read_at_import(code))) == count
