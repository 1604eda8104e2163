"""Pages of sweeps: the ledger of all runs, one run, and the tables from which they delete."""

from __future__ import annotations

from django.http import HttpResponse

from memadmin.home.saved_views import has_saved_views
from memadmin.retention.models import SweptTable
from memadmin.retention.sweep import access
from memadmin.retention.sweep.filters import LedgerFilter
from memadmin.retention.sweep.metrics import metrics_of, recent_runs
from memadmin.retention.sweep.silence import silence
from memadmin.retention.sweep.view_models import ledger_rows, result_views, table_views
from memadmin.runs.view_models import view_of
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

VIEW = "retention.view_policy"

LEDGER = ListPage("retention/runs.html", salt="sweeps", fragment="ledger")


@operator_page(VIEW)
@has_saved_views("sweeps:list", VIEW, lambda query, _: LedgerFilter(query))
def run_list(request: OperatorRequest) -> HttpResponse:
    """The ledger: figures of the newest runs, warnings, and all runs by page."""
    filters = LedgerFilter(request.GET)
    page = LEDGER.page(request, filters.queryset().select_related("reason_by"))
    rows = ledger_rows(page.rows, request.user)
    context = {
        "filters": filters,
        "rows": rows,
        "metrics": metrics_of(recent_runs()),
        "silence": silence(),
        # A page of the past does not change.
        "is_live": any(not row.run.is_finished for row in rows),
    }
    return LEDGER.render(request, context, page, status=400 if filters.problems else 200)


@operator_page(VIEW)
def run(request: OperatorRequest, run_number: int) -> HttpResponse:
    """One run, which refreshes itself: results by policy and place, and the tables that it vacuumed."""
    shown = access.sweep_for(request.user, run_number)
    context = {
        "item": view_of(shown, request.user),
        "results": result_views(shown),
        "tables": SweptTable.objects.filter(run=shown).order_by("name"),
    }
    return render_page_or_fragment(request, "retention/run.html", context, fragment="state")


@operator_page(VIEW)
def tables(request: OperatorRequest) -> HttpResponse:
    """Sizes and dead rows of the tables from which sweeps delete, and what to do about them."""
    return render_page_or_fragment(request, "retention/tables.html", {"tables": table_views()}, fragment="tables")
