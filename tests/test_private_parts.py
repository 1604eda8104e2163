"""The product uses public names of Python, Django, Jinja2 and libraries; exceptions are listed here with reasons.

An exception fails with a sentence when an upgrade moves what it relies on, and when the product no longer needs it.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from agents import trace
from jinja2.compiler import CodeGenerator

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGES = ("memadmin", "sessions_app", "memories_app")
STARTS_SOMETHING = ("memadmin.__main__", "memadmin.wsgi")
"""Modules that act when they are imported."""

DOCUMENTED = {
    "_meta": "Django: Model._meta API",
    "_state": "Django: instances of models, Model._state",
    "_default_manager": "Django: managers, default managers",
    "_make": "Python: collections.namedtuple",
    "_value_": "Python: enum, supported sunder names",
}
"""Names that begin with an underscore and are public: who documents them."""


@dataclass(frozen=True, slots=True)
class Exempt:
    """Private access that stays."""

    path: str
    code: str
    reason: str
    is_still_there: Callable[[], bool]
    sentence: str
    """What to do when it is not."""


ALLOWED = [
    Exempt(
        "memadmin/client/runs.py",
        "getattr(trace, '_prev_context_token')",
        "The SDK has no public way to ask whether a trace has ended; without the name, the current trace decides.",
        lambda: all(hasattr(trace("probe", disabled=off), "_prev_context_token") for off in (False, True)),
        "The SDK's traces no longer have _prev_context_token: look in agents/tracing/traces.py how a trace tells that "
        "it has ended, and change _goes_on in memadmin/client/runs.py.",
    ),
]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_" and name not in DOCUMENTED


def is_internal(module: str) -> bool:
    """Whether a module of others is not meant to be imported."""
    parts = module.split(".")
    return parts[0] not in PACKAGES and any(part in ("internal", "_internal") or is_private(part) for part in parts)


@cache
def modules() -> dict[str, ast.Module]:
    """The product's modules, by path."""
    files = sorted(file for package in PACKAGES for file in (CHECKOUT / package).rglob("*.py"))
    return {file.relative_to(CHECKOUT).as_posix(): ast.parse(file.read_text()) for file in files}


def names_of_its_own(module: ast.Module) -> set[str]:
    """Private names that a module's classes and functions define."""
    own = set()
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                own.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                own.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Store()):
                own.add(name)
    return own


def private_access(module: ast.Module, *, methods: set[str]) -> Iterator[str]:
    """What a module touches that is private to others, as code. `methods` are private ones that the product defines."""
    own = names_of_its_own(module)
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name) if is_private(name):
                if name not in methods:
                    yield ast.unparse(node)
            case ast.Attribute(attr=name) if is_private(name):
                if name not in own:
                    yield ast.unparse(node)
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr" | "hasattr" | "delattr" as function),
                args=[of, ast.Constant(value=str(name)), *_],
            ) if is_private(name):
                yield f"{function}({ast.unparse(of)}, {name!r})"
            case ast.Import(names=names):
                yield from (f"import {each.name}" for each in names if is_internal(each.name))
            case ast.ImportFrom(module=str(name), level=0, names=names):
                taken = [each.name for each in names]
                if is_internal(name) or any(is_internal(f"{name}.{each}") for each in taken):
                    yield f"from {name} import {', '.join(taken)}"
            case ast.Constant(value=str(text)) if text.count(".") and "\n" not in text and " " not in text:
                is_path = not text.startswith("_") and all(part.isidentifier() for part in text.split("."))
                if is_path and is_internal(text):
                    yield text


def methods_of(parsed: dict[str, ast.Module]) -> set[str]:
    nodes = (node for module in parsed.values() for node in ast.walk(module))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef) and is_private(node.name)}


def overrides() -> Iterator[tuple[str, str]]:
    """Private methods of others that classes of the product replace: the path, and class and name."""
    for package in PACKAGES:
        for info in pkgutil.walk_packages([str(CHECKOUT / package)], f"{package}."):
            if info.name in STARTS_SOMETHING:
                continue
            module = importlib.import_module(info.name)
            for cls in vars(module).values():
                if isinstance(cls, type) and cls.__module__ == info.name:
                    for name in overridden_by(cls):
                        yield f"{info.name.replace('.', '/')}.py", f"{cls.__name__}.{name}"


def overridden_by(cls: type[Any]) -> Iterator[str]:
    for name, value in vars(cls).items():
        function = getattr(value, "fget", None) or getattr(value, "__func__", value)
        # A metaclass writes further names into each class; those are no functions of this module and this name.
        is_ours = getattr(function, "__module__", "") == cls.__module__ and getattr(function, "__name__", "") == name
        if not is_private(name) or not is_ours:
            continue
        for base in cls.__mro__[1:]:
            if name in vars(base) and base.__module__.split(".")[0] not in PACKAGES:
                yield name
                break


@pytest.mark.release
def test_the_product_touches_nothing_private_but_what_is_listed() -> None:
    allowed = {(each.path, each.code) for each in ALLOWED}
    methods = methods_of(modules())
    found = {(path, code) for path, module in modules().items() for code in private_access(module, methods=methods)}
    found |= set(overrides())
    new = sorted(found - allowed)
    assert not new, f"Private parts of others; use what is public, or add it to ALLOWED with a reason: {new}"
    unused = sorted({(each.path, each.code) for each in ALLOWED} - found)
    assert not unused, f"The product no longer touches these; take them off ALLOWED: {unused}"


@pytest.mark.parametrize("each", ALLOWED, ids=lambda each: each.code)
def test_what_is_listed_is_still_there(each: Exempt) -> None:
    assert each.is_still_there(), each.sentence


@pytest.mark.parametrize(
    "code",
    [
        "user._perm_cache",
        "queryset._result_cache = []",
        "super()._get_login_attempts_cache_key()",
        "getattr(request, '_messages')",
        "setattr(user, '_standing', 1)",
        "from allauth.mfa.internal import flows",
        "from allauth.mfa.webauthn.internal.auth import begin_authentication",
        "from allauth.mfa import internal",
        "import django._private",
        "from django.db import _private",
        "import_module('allauth.mfa.internal.flows')",
    ],
)
def test_private_access_is_noticed(code: str) -> None:
    assert list(private_access(ast.parse(code), methods=set()))


@pytest.mark.parametrize(
    "code",
    [
        "self._kept",
        "model._meta.db_table",
        "from memadmin.accounts.views import login",
        "from __future__ import annotations",
        "class Key:\n    def __init__(self): self._text = ''\n    def is_same(self, other): return other._text",
    ],
)
def test_public_access_is_left_alone(code: str) -> None:
    assert not list(private_access(ast.parse(code), methods=set()))


def test_an_override_of_a_private_method_is_noticed() -> None:
    class Compiler(CodeGenerator):
        def _output_child_pre(self, *given: Any) -> None:
            pass

    assert list(overridden_by(Compiler)) == ["_output_child_pre"]
