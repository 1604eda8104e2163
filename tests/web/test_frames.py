"""The frames of a request lie in one piece of memory: no call in it has to ask the kernel for more."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable
from typing import Any, cast

from memadmin.web.frames import Application, in_one_piece

CALLS = 500
DEEPEST = 200
"""A page is written some sixty calls deep, and at each depth up to here the calls of a loop are looked at."""
WIDEST = 24
"""Variables of a frame below, a word each: so the frames above lie in as many ways, one of which meets the edge."""


def most_faults(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """How many pages of memory a loop of CALLS calls had to be given, at the place where these are most."""
    return [str(max(wide_frame(width)(faults_somewhere) for width in range(WIDEST))).encode()]


def wide_frame(width: int) -> Callable[[Callable[[], int]], int]:
    names: dict[str, Any] = {}
    variables = "".join(f"v{number} = " for number in range(width))
    exec(f"def call(inner):\n    {variables}None\n    return inner()", names)
    return cast(Callable[[Callable[[], int]], int], names["call"])


def faults_somewhere() -> int:
    return max(faults_at(depth) for depth in range(DEEPEST))


def faults_at(depth: int) -> int:
    if depth:
        return faults_at(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        nothing()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def nothing() -> None:
    pass


def asked(application: Application) -> int:
    (answer,) = application({}, print)
    return int(answer)


def test_no_call_of_a_request_asks_for_memory() -> None:
    assert asked(in_one_piece(most_faults)) < CALLS


def test_without_that_some_loop_asks_at_every_call() -> None:
    assert asked(most_faults) >= CALLS
