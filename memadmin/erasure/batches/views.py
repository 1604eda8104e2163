"""Pages of batches: list, upload, one batch, its broken lines, and the files about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Q, Sum
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from memadmin import audit
from memadmin.accounts.approvals.services import steps_for
from memadmin.counting import counted
from memadmin.erasure.batches import access, audit_events, outcomes, services
from memadmin.erasure.batches.forms import OutcomeFilters, UploadForm
from memadmin.erasure.batches.outcomes import LineOutcome
from memadmin.erasure.batches.parsing import MOST_BYTES, BadFile
from memadmin.erasure.batches.view_models import BatchView, line_views, rows_per_second
from memadmin.erasure.forms import ApprovalForm, ExtendForm
from memadmin.erasure.models import BatchLine, ErasureStep, RequestBatch
from memadmin.erasure.permissions import HANDLE, VIEW
from memadmin.erasure.services import latest_due_date, may_extend
from memadmin.erasure.view_models import length_in_words
from memadmin.runs.models import Run
from memadmin.runs.view_models import view_of
from memadmin.web.downloads import as_download, csv_lines
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

State, Problem = RequestBatch.State, BatchLine.Problem

BATCHES = ListPage("erasure/batches/batches.html", salt="batches")
BROKEN = ListPage("erasure/batches/broken.html", salt="broken-lines")
OUTCOMES = ListPage("erasure/batches/batch.html", salt="batch-outcomes", fragment="state", size=25)

BROKEN_SHOWN = 6


@operator_page(VIEW)
def batch_list(request: OperatorRequest) -> HttpResponse:
    batches = RequestBatch.objects.select_related(*access.PEOPLE, "run", "preview_run")
    page = BATCHES.page(request, batches.order_by("-number"))
    numbers = numbers_of([batch.pk for batch in page.rows])
    views = [BatchView(batch, request.user, *numbers[batch.pk]) for batch in page.rows]
    return BATCHES.render(request, {"views": views}, page)


def numbers_of(batches: list[int]) -> dict[int, tuple[int, int, int]]:
    """Numbers of lines of each batch: all, accepted, held. One query."""
    rows = (
        BatchLine.objects.filter(batch__in=batches)
        .order_by()
        .values_list("batch")
        .annotate(
            lines=Count("pk"),
            accepted=Count("pk", filter=Q(problem__in=outcomes.APPROVED)),
            held=Count("pk", filter=Q(problem=Problem.HELD)),
        )
    )
    return dict.fromkeys(batches, (0, 0, 0)) | {batch: (lines, accepted, held) for batch, lines, accepted, held in rows}


@operator_page(HANDLE, VIEW, methods="GET, POST")
def new(request: OperatorRequest) -> HttpResponse:
    """The form of a new batch."""
    form = UploadForm(request.POST, request.FILES) if request.method == "POST" else UploadForm()
    if form.is_valid():
        values = form.cleaned_data
        file = values.pop("file")
        try:
            batch = services.upload(file.read(MOST_BYTES + 1), name=file.name, **values, by=request.user)
        except BadFile as problem:
            form.add_error("file", str(problem))
        except services.AlreadyUploaded as problem:
            messages.info(request, str(problem))
            return redirect(problem.batch)
        else:
            messages.success(request, f"Batch {batch} was uploaded. Nothing is erased yet.")
            return redirect(batch)
    return render(request, "erasure/batches/new.html", {"form": form}, status=422 if form.is_bound else 200)


@operator_page(VIEW)
def batch(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    """One batch: its progress, which refreshes itself, and what can be done."""
    return batch_page(request, access.batch_for(request.user, batch_id))


def batch_page(
    request: OperatorRequest,
    shown: RequestBatch,
    *,
    problem: str = "",
    status: int = 200,
    sent: Mapping[str, forms.Form] | None = None,
) -> HttpResponse:
    """The page of a batch, with the reason why nothing was changed, and with the form that was sent, by its name."""
    (numbers,) = numbers_of([shown.pk]).values()
    view = BatchView(shown, request.user, *numbers, outcomes.counts(shown))
    may_handle = request.user.has_perm(HANDLE)
    context: dict[str, Any] = {
        "batch": shown,
        "view": view,
        "problem": problem,
        # A refresh would take the reason away while it is read.
        "refresh": 0 if problem else seconds_to_refresh(shown, view),
        "cancel_window": length_in_words(settings.CANCEL_WINDOW),
        "may_change": may_handle and shown.state == State.UPLOADED,
        "may_count": may_handle and shown.state in (State.UPLOADED, State.AWAITING),
        "may_cancel": may_handle and not shown.is_started and not shown.is_closed,
        "item": view_of(shown.run, request.user) if shown.run else None,
    }
    if may_handle and may_extend(shown):
        context["extend_form"] = ExtendForm(auto_id="extend-%s", initial={"until": latest_due_date(shown)})
    if view.is_counting and shown.preview_run:
        context["counting"] = view_of(shown.preview_run, request.user)
    if shown.state == State.AWAITING:
        context["steps"] = steps_for(shown, request.user)
        context["approval_form"] = approval_form(shown)
    # It takes the place of the empty one, if the state still has that.
    context |= {name: form for name, form in (sent or {}).items() if name in context}
    if shown.is_started:
        return outcomes_page(request, shown, context, status=status)
    broken = services.broken_lines(shown).exclude(problem=Problem.HELD)
    context["broken"] = line_views(broken[:BROKEN_SHOWN])
    return render_page_or_fragment(request, "erasure/batches/batch.html", context, fragment="state", status=status)


def approval_form(shown: RequestBatch, *data: Any) -> ApprovalForm:
    broken = services.broken_lines(shown).exclude(problem=Problem.HELD).count()
    return ApprovalForm(
        *data,
        auto_id="approval-%s",
        read=f"I read the preview and the {counted(broken, 'broken lines')}" if broken else "I read the preview",
        confirmation=f"Type {services.confirmation(services.accepted_lines(shown).count())} to approve",
    )


def outcomes_page(
    request: OperatorRequest, shown: RequestBatch, context: dict[str, Any], *, status: int
) -> HttpResponse:
    """The page with the list of outcomes, rows that were erased, and the stores for which cases wait."""
    filters = OutcomeFilters(request.GET)
    found = outcomes.with_rows(filters.apply(shown)).select_related("request", "request__run")
    page = OUTCOMES.page(request, found, of=shown.pk)
    steps = ErasureStep.objects.filter(request__batch_lines__batch=shown).order_by()
    rows = steps.aggregate(rows=Sum("erased"))["rows"] or 0
    waiting = steps.filter(state=ErasureStep.State.WAITING).values_list("place").order_by("place")
    context |= {
        "filters": filters,
        "lines": line_views(page.rows),
        "rows_per_second": rows_per_second(rows, shown.run),
        "rows": rows,
        "waiting": [] if shown.is_closed else waiting.annotate(subjects=Count("request", distinct=True)),
        "address": shown.get_absolute_url(),
    }
    return OUTCOMES.render(request, context, page, status=400 if filters.problems else status)


def seconds_to_refresh(shown: RequestBatch, view: BatchView) -> int:
    """Seconds after which the page asks again; 0 if nothing happens by itself."""
    if view.is_counting:
        return 2
    if shown.run is None or shown.is_closed:
        return 0
    is_busy = shown.state == State.RUNNING and shown.run.state == Run.State.RUNNING
    return 3 if is_busy else 30


@operator_page(VIEW)
def broken(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    """All lines of a batch that are not part of it."""
    shown = access.batch_for(request.user, batch_id)
    page = BROKEN.page(request, services.broken_lines(shown), of=shown.pk)
    context = {
        "batch": shown,
        "broken": line_views(page.rows),
        "may_change": shown.state == State.UPLOADED and request.user.has_perm(HANDLE),
        "address": request.path,
    }
    return BROKEN.render(request, context, page)


@operator_page(VIEW)
def broken_file(request: OperatorRequest, batch_id: UUID) -> HttpResponseBase:
    """Number and problem of each broken line, without keys."""
    shown = access.batch_for(request.user, batch_id)
    audit.record_alone(audit_events.BATCH_OUTCOME_DOWNLOADED, by=request.user, target=shown)
    lines = services.broken_lines(shown).values_list("number", "problem", "other").iterator()
    rows = ((number, problem, Problem(problem).label, other) for number, problem, other in lines)
    header = ("line", "problem", "sentence", "line, case or hold that it names")
    return as_download(csv_lines(header, rows), f"{shown}-broken.csv", "text/csv")


@operator_page(VIEW)
def outcome_file(request: OperatorRequest, batch_id: UUID) -> HttpResponseBase:
    """Line, case, outcome and rows of each line, without keys."""
    shown = access.batch_for(request.user, batch_id)
    audit.record_alone(audit_events.BATCH_OUTCOME_DOWNLOADED, by=request.user, target=shown)
    header = ("line", "case", "outcome", "rows erased", "rows expected", "closed")
    return as_download(csv_lines(header, outcome_rows(shown)), f"{shown}-outcome.csv", "text/csv")


def outcome_rows(shown: RequestBatch) -> Iterator[tuple[object, ...]]:
    lines = outcomes.with_rows(outcomes.lines_with_outcome(shown)).order_by("number")
    columns = ("number", "request__number", "outcome", "rows_erased", "rows_expected", "request__closed_at")
    for number, case, outcome, erased, expected, closed in lines.values_list(*columns).iterator():
        label = LineOutcome(outcome).label
        yield number, f"DSR-{case:04}" if case else "", label, erased, expected, closed and closed.isoformat()
