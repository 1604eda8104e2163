"""Runs in the command palette."""

from __future__ import annotations

from collections.abc import Iterable

from memadmin.runs.models import Run
from memadmin.web.palette import FINDERS, Option, OptionGroup, number_in
from memadmin.web.requests import OperatorRequest


def numbered(request: OperatorRequest, text: str) -> Iterable[Option]:
    """The run with this number. At most one query."""
    number = number_in(text, "R")
    if number and request.user.has_perm("runs.view_run"):
        for run in Run.objects.filter(pk=number):
            yield Option(OptionGroup.NUMBERED, str(run), run.get_absolute_url(), "circle-dashed", "run")


FINDERS.append(numbered)
