"""Tests of many short cases that run as one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def for_each(
    names: str | Sequence[str], cases: Iterable[Any], ids: Iterable[str] | Callable[[Any], Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a test run for all cases, written as for `pytest.mark.parametrize`, and fail with those that fail.

    For cases that need no fixtures of their own: to set up hundreds of tests takes longer than to run them.
    """
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    all_cases = list(cases)
    called = ids if callable(ids) or ids is None else list(ids)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            problems: list[BaseException] = []
            for number, case in enumerate(all_cases):
                values = dict(zip(parameters, (case,) if len(parameters) == 1 else case, strict=True))
                try:
                    test(*args, **fixtures, **values)
                except (Exception, pytest.fail.Exception) as problem:
                    problem.add_note(f"Case {number}: {name_of(values, called, number)}")
                    problems.append(problem)
            if problems:
                raise BaseExceptionGroup(f"{len(problems)} of {len(all_cases)} cases failed", problems)

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in parameters]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate


def name_of(values: dict[str, Any], ids: Sequence[str] | Callable[[Any], Any] | None, number: int) -> str:
    if callable(ids):
        return "-".join(str(ids(value)) for value in values.values())
    return ids[number] if ids else f"{values!r:.200}"
