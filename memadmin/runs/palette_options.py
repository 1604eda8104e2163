"""Runs in the command palette."""

from __future__ import annotations

from collections.abc import Iterable

from memadmin.runs.access import may_view
from memadmin.runs.models import Run
from memadmin.web.palette import FINDERS, Option, OptionGroup, number_in
from memadmin.web.requests import OperatorRequest


def numbered(request: OperatorRequest, text: str) -> Iterable[Option]:
    """The run with this number, if the person may view it. At most one query."""
    number = number_in(text, "R")
    for run in Run.objects.filter(pk=number) if number else ():
        if may_view(request.user, run):
            yield Option(OptionGroup.NUMBERED, str(run), run.get_absolute_url(), "circle-dashed", "run")


FINDERS.append(numbered)
