"""The graph of the steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memadmin.erasure.steps import STEPS, Step, WrongGraph, in_order


def make_step(named: str, *needs: str) -> Step:
    step = Step()
    step.name, step.after = named, needs  # type: ignore[misc]
    return step


@given(st.lists(st.sets(st.integers(0, 20)), max_size=20), st.randoms())
def test_no_step_comes_before_those_that_it_needs_and_each_comes_once(needs: list[set[int]], chance: object) -> None:
    steps = [
        make_step(str(number), *(str(need) for need in needed if need < number)) for number, needed in enumerate(needs)
    ]
    chance.shuffle(steps)  # type: ignore[attr-defined]
    ordered = [step.name for step in in_order(steps)]
    assert sorted(ordered) == sorted(step.name for step in steps)
    for step in steps:
        assert all(ordered.index(need) < ordered.index(step.name) for need in step.after)


def test_a_circle_and_an_unknown_step_are_refused() -> None:
    with pytest.raises(WrongGraph, match="These steps need one another"):
        in_order([make_step("a", "b"), make_step("b", "a")])
    with pytest.raises(WrongGraph, match="no step c"):
        in_order([make_step("a", "c")])


def test_ids_go_after_every_step_that_finds_its_rows_by_them() -> None:
    names = [step.name for step in STEPS]
    assert names[-2:] == ["identity", "audit_details"]
