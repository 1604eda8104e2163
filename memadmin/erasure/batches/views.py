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
from memadmin.erasure.batches import access, audit_events, outcomes, services
from memadmin.erasure.batches.forms import BatchApprovalForm, OutcomeFilters, SendBackForm, UploadForm
from memadmin.erasure.batches.outcomes import LineOutcome
from memadmin.erasure.batches.parsing import BadFile
from memadmin.erasure.batches.view_models import BatchView, line_views, rows_per_second
from memadmin.erasure.models import BatchLine, ErasureStep, RequestBatch
from memadmin.erasure.view_models import length_in_words
from memadmin.runs.models import Run
from memadmin.runs.view_models import view_of
from memadmin.web.downloads import as_download, csv_lines
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

VIEW, HANDLE, APPROVE = "erasure.view_request", "erasure.handle_request", "erasure.approve_request"

State, Problem = RequestBatch.State, BatchLine.Problem

BATCHES = ListPage("erasure/batches/batches.html", salt="batches")
BROKEN = ListPage("erasure/batches/broken.html", salt="broken-lines")
OUTCOMES = ListPage("erasure/batches/batch.html", salt="batch-outcomes", fragment="state", size=25)

BROKEN_SHOWN = 6


@operator_page(VIEW)
def batch_list(request: OperatorRequest) -> HttpResponse:
    batches = RequestBatch.objects.select_related("uploaded_by", "requested_by", "approved_by", "run", "preview_run")
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
            accepted=Count("pk", filter=Q(problem="")),
            held=Count("pk", filter=Q(problem=Problem.HELD)),
        )
    )
    return dict.fromkeys(batches, (0, 0, 0)) | {batch: (lines, accepted, held) for batch, lines, accepted, held in rows}


@operator_page(HANDLE, VIEW, methods="GET, POST")
def new(request: OperatorRequest) -> HttpResponse:
    """The form of a new batch."""
    form = UploadForm(request.POST or None, request.FILES or None) if request.method == "POST" else UploadForm()
    if request.method == "POST":
        form = UploadForm(request.POST, request.FILES)
        if form.is_valid():
            values = form.cleaned_data
            try:
                batch = services.upload(
                    values["file"].read(),
                    name=values["file"].name,
                    ground=values["ground"],
                    note=values["note"],
                    received_on=values["received_on"],
                    by=request.user,
                )
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
    counts = outcomes.counts(shown) if shown.approved_at else {}
    view = BatchView(shown, request.user, *numbers, counts=counts)
    context: dict[str, Any] = {
        "batch": shown,
        "view": view,
        "problem": problem,
        "refresh": seconds_to_refresh(shown, view),
        "cancel_window": length_in_words(settings.CANCEL_WINDOW),
        "may_cancel": request.user.has_perm(HANDLE) and not shown.is_started and not shown.is_closed,
    }
    page = None
    if shown.is_started:
        page, extra = outcome_context(request, shown, view)
        context |= extra
        if extra["filters"].problems:
            status = 400
    else:
        broken = BatchLine.objects.filter(batch=shown).exclude(problem="").exclude(problem=Problem.HELD)
        context["broken"] = line_views(list(broken.order_by("number")[:BROKEN_SHOWN]))
        context["may_correct"] = shown.state == State.UPLOADED and request.user.has_perm(HANDLE)
        context["may_count"] = shown.state in (State.UPLOADED, State.AWAITING) and request.user.has_perm(HANDLE)
    if shown.run:
        context["item"] = view_of(shown.run, request.user)
    if view.is_counting and shown.preview_run:
        context["counting"] = view_of(shown.preview_run, request.user)
    context["may_ask"] = shown.state == State.UPLOADED and request.user.has_perm(HANDLE)
    if shown.state == State.AWAITING:
        context["is_second_person"] = services.is_second_person(shown, request.user)
        context["confirmation"] = services.confirmation(view.accepted)
        if request.user.has_perm(APPROVE):
            context["approval_form"] = BatchApprovalForm(auto_id="approval-%s")
            context["send_back_form"] = SendBackForm(auto_id="send-back-%s")
    # It takes the place of the empty one, if the state still has that.
    context |= {name: form for name, form in (sent or {}).items() if name in context}
    if page is not None:
        return OUTCOMES.render(request, context, page, status=status)
    return render_page_or_fragment(request, "erasure/batches/batch.html", context, fragment="state", status=status)


def seconds_to_refresh(shown: RequestBatch, view: BatchView) -> int:
    """Seconds after which the page asks again; 0 if nothing happens by itself."""
    if view.is_counting:
        return 2
    if shown.run is None or shown.is_closed:
        return 0
    is_busy = shown.state == State.RUNNING and shown.run.state == Run.State.RUNNING
    return 3 if is_busy else 30


def outcome_context(request: OperatorRequest, shown: RequestBatch, view: BatchView) -> tuple[Any, dict[str, Any]]:
    """The list of outcomes, rows that were erased, and the stores for which cases wait."""
    filters = OutcomeFilters(request.GET)
    found = outcomes.with_rows(filters.apply(shown)).select_related("request", "request__run")
    page = OUTCOMES.page(request, found, of=shown.pk)
    steps = ErasureStep.objects.filter(request__batch_lines__batch=shown).order_by()
    rows = steps.aggregate(rows=Sum("erased"))["rows"] or 0
    waiting = steps.filter(state=ErasureStep.State.WAITING).values_list("place").order_by("place")
    return page, {
        "filters": filters,
        "lines": line_views(page.rows),
        "rows_per_second": rows_per_second(rows, shown.run),
        "rows": rows,
        "waiting": [] if shown.is_closed else list(waiting.annotate(subjects=Count("request", distinct=True))),
        "address": shown.get_absolute_url(),
    }


@operator_page(VIEW)
def broken(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    """All lines of a batch that are not part of it."""
    shown = access.batch_for(request.user, batch_id)
    lines = BatchLine.objects.filter(batch=shown).exclude(problem="").order_by("number", "id")
    page = BROKEN.page(request, lines, of=shown.pk)
    context = {
        "batch": shown,
        "broken": line_views(page.rows),
        "may_correct": shown.state == State.UPLOADED and request.user.has_perm(HANDLE),
        "address": request.path,
    }
    return BROKEN.render(request, context, page)


@operator_page(VIEW)
def broken_file(request: OperatorRequest, batch_id: UUID) -> HttpResponseBase:
    """Number and problem of each broken line, without keys."""
    shown = access.batch_for(request.user, batch_id)
    audit.record_alone(audit_events.BATCH_OUTCOME_DOWNLOADED, by=request.user, target=shown)
    lines = BatchLine.objects.filter(batch=shown).exclude(problem="").order_by("number")
    rows = (
        (line.number, line.problem, Problem(line.problem).label, line.other)
        for line in lines.only("number", "problem", "other").iterator()
    )
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
