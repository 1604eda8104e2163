"""Order and columns of the ledger of retention runs."""

from __future__ import annotations

from memadmin.retention.sweep.starting import RUN_KIND
from memadmin.runs.models import Run
from memadmin.runs.querysets import RunQuerySet
from memadmin.web.columns import ListColumn, ListTable
from memadmin.web.filters import FilterForm


class LedgerFilter(FilterForm):
    """Order and columns of the ledger. Its figures are summed for the runs of a page, so they sort nothing."""

    table = ListTable(
        (
            ListColumn("started", "Started", ("number",), is_fixed=True, begins_descending=True),
            ListColumn("state", "State"),
            ListColumn("preview", "Preview", classes="num d-none d-sm-table-cell"),
            ListColumn("taken", "Taken", classes="num"),
            ListColumn("held", "Held", classes="num d-none d-md-table-cell"),
            ListColumn("live", "Live", classes="num d-none d-md-table-cell"),
            ListColumn("took", "Took", classes="d-none d-lg-table-cell"),
            ListColumn("policies", "Policies", classes="d-none d-lg-table-cell"),
        ),
        sort="-started",
    )

    def queryset(self) -> RunQuerySet:
        runs: RunQuerySet = self.ordered(Run.objects.filter(kind=RUN_KIND))
        return runs.none() if self.errors else runs
