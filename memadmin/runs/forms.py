"""Filters of the list of finished runs, and the speed limit of a run."""

from __future__ import annotations

from datetime import timedelta

from django import forms
from django.http import QueryDict
from django.utils.timezone import now

from memadmin.runs.kinds import all_kinds
from memadmin.runs.models import Run
from memadmin.runs.querysets import RunQuerySet
from memadmin.web.columns import ListColumn, ListTable
from memadmin.web.filters import FilterForm
from memadmin.web.widgets import select

ENDED = [(state.value, state.label) for state in Run.State if state not in Run.UNFINISHED]


class FinishedRuns(FilterForm):
    """Filters of finished runs. There are thousands at most, so more than one column sorts them."""

    table = ListTable(
        (
            ListColumn("run", "Run", ("number",), is_fixed=True, begins_descending=True),
            ListColumn("state", "State", ("state", "number")),
            ListColumn(
                "done", "Done", ("done", "number"), classes="num d-none d-md-table-cell", begins_descending=True
            ),
            ListColumn("rate", "Per second", classes="num d-none d-lg-table-cell"),
            ListColumn("took", "Took", classes="num d-none d-md-table-cell"),
            ListColumn("by", "Started by", classes="d-none d-lg-table-cell"),
            ListColumn(
                "asked",
                "Requested",
                ("requested_at", "number"),
                classes="d-none d-md-table-cell",
                is_extra=True,
                begins_descending=True,
            ),
            ListColumn("ended", "Ended", classes="text-end d-none d-md-table-cell"),
        ),
        sort="-run",
    )

    kind = forms.ChoiceField(
        required=False, widget=select("Kind"), error_messages={"invalid_choice": "Unknown kind of run."}
    )
    state = forms.ChoiceField(
        required=False,
        widget=select("State"),
        choices=[("", "Any state"), *ENDED],
        error_messages={"invalid_choice": "Unknown state of a run."},
    )
    days = forms.TypedChoiceField(
        required=False,
        widget=select("Period"),
        coerce=int,
        empty_value=None,
        error_messages={"invalid_choice": "Unknown period."},
        choices=[("", "Any time"), ("1", "Last day"), ("7", "Last 7 days"), ("30", "Last 30 days")],
    )

    def __init__(self, query: QueryDict) -> None:
        super().__init__(query)
        kinds = [(kind.name, kind.title) for kind in all_kinds()]
        self.fields["kind"].choices = [("", "Any kind"), *kinds]  # type: ignore[attr-defined]

    def apply(self) -> RunQuerySet:
        """The finished runs that match; none when a filter is wrong."""
        runs: RunQuerySet = self.ordered(Run.objects.finished())
        if not self.is_valid():
            return runs.none()
        active = self.active
        if kind := active.get("kind"):
            runs = runs.filter(kind=kind)
        if state := active.get("state"):
            runs = runs.filter(state=state)
        if days := active.get("days"):
            runs = runs.filter(ended_at__gte=now() - timedelta(days=days))
        return runs


class SpeedLimit(forms.Form):
    rows_per_second = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        widget=forms.NumberInput({"class": "form-control", "placeholder": "No limit", "id": "rows-per-second"}),
    )

    @property
    def problem(self) -> str:
        """Error message about the input; empty if the input is valid."""
        return "" if self.is_valid() else "Enter a whole number from 1 to 1,000,000, or nothing. Nothing was changed."
