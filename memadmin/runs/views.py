"""The list of runs, one run, and the verbs about it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpResponse
from django.shortcuts import redirect

from memadmin.home.saved_views import has_saved_views
from memadmin.runs import services
from memadmin.runs.access import CONTROL, VIEW, run_for
from memadmin.runs.forms import FinishedRuns, SpeedLimit
from memadmin.runs.models import Run
from memadmin.runs.view_models import view_of
from memadmin.web import job_queue
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

RUNS = ListPage("runs/list.html", salt="runs", fragment="unfinished")
MOST_UNFINISHED = 100
LOG_LINES = 100


@operator_page(VIEW)
@has_saved_views("runs:list", VIEW, lambda query, _: FinishedRuns(query))
def run_list(request: OperatorRequest) -> HttpResponse:
    """Unfinished runs, which refresh themselves, and finished ones by page."""
    filters = FinishedRuns(request.GET)
    unfinished = Run.objects.unfinished().select_related("reason_by")[:MOST_UNFINISHED]
    page = RUNS.page(request, filters.apply().select_related("requested_by"))
    context = {
        "filters": filters,
        "unfinished": [view_of(run, request.user) for run in unfinished],
        "finished": [view_of(run, request.user) for run in page.rows],
        # Called by the whole page, not by the part that refreshes itself.
        "job_problems": job_queue.problems,
    }
    return RUNS.render(request, context, page, status=400 if filters.problems else 200)


@operator_page()
def run(request: OperatorRequest, run_id: int) -> HttpResponse:
    """One run: its progress, which refreshes itself, its counters, exceptions and log."""
    return run_page(request, run_for(request.user, run_id))


def run_page(
    request: OperatorRequest, shown: Run, *, problem: str = "", status: int = 200, form: SpeedLimit | None = None
) -> HttpResponse:
    context = {
        "item": view_of(shown, request.user),
        "log": shown.log.all()[:LOG_LINES],
        "problem": problem,
        "speed_limit": form or SpeedLimit(initial={"rows_per_second": shown.rows_per_second}),
    }
    return render_page_or_fragment(request, "runs/detail.html", context, fragment="state", status=status)


@operator_page(CONTROL, methods="POST")
def pause(request: OperatorRequest, run_id: int) -> HttpResponse:
    note = request.POST.get("note", "").strip()[:200]
    return change(request, run_id, lambda run: services.pause_run(run, by=request.user, note=note))


@operator_page(CONTROL, methods="POST")
def resume(request: OperatorRequest, run_id: int) -> HttpResponse:
    return change(request, run_id, lambda run: services.resume_run(run, by=request.user))


@operator_page(CONTROL, methods="POST")
def cancel(request: OperatorRequest, run_id: int) -> HttpResponse:
    return change(request, run_id, lambda run: services.cancel_run(run, by=request.user))


@operator_page(CONTROL, methods="POST")
def limit_speed(request: OperatorRequest, run_id: int) -> HttpResponse:
    form = SpeedLimit(request.POST)
    if form.problem:
        return run_page(request, run_for(request.user, run_id), problem=form.problem, status=422, form=form)
    limit = form.cleaned_data["rows_per_second"]
    return change(request, run_id, lambda run: services.limit_speed(run, by=request.user, rows_per_second=limit))


def change(request: OperatorRequest, run_id: int, verb: Callable[[Run], Run]) -> HttpResponse:
    """The run after a verb, or with the reason why nothing was changed."""
    problem, status = "", 200
    shown = run_for(request.user, run_id)
    try:
        verb(shown)
    except (services.InvalidRunState, services.ChunkUnderWay) as refused:
        problem, status = str(refused), 409
    if not problem and not request.htmx:
        return redirect(shown)
    return run_page(request, run_for(request.user, run_id), problem=problem, status=status)
