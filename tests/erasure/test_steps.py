"""The graph of the steps."""

from __future__ import annotations

import pytest

from memadmin.erasure.steps import STEPS, WrongOrder, checked
from memadmin.erasure.steps.base import Step


def make_step(named: str, *needs: str) -> Step:
    step = Step()
    step.name, step.after = named, needs  # type: ignore[misc]
    return step


def test_a_step_before_one_that_it_needs_is_refused() -> None:
    a, b = make_step("a"), make_step("b", "a")
    assert checked([a, b]) == [a, b]
    for steps in ([b, a], [make_step("a", "b"), b], [make_step("a", "a")], [make_step("a", "c")]):
        with pytest.raises(WrongOrder, match="must come after"):
            checked(steps)


def test_ids_go_after_every_step_that_finds_its_rows_by_them() -> None:
    names = [step.name for step in STEPS]
    assert names[-2:] == ["identity", "audit_details"]
