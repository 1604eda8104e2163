"""Views of feedback and learning stops: the verbs of panels on pages of sessions and subjects."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from memadmin.web.filters import sentences
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.learning import signals
from memories_app.learning.access import feedback_of
from memories_app.learning.forms import FeedbackForm
from memories_app.learning.remarks import remarks_on
from memories_app.services.refusals import MemoryActionRefused
from sessions_app import access
from sessions_app.masked_reader import reader_for
from sessions_app.models import SessionRecord
from sessions_app.services.deletion_guards import DeletionRefused
from sessions_app.stores.base import StoreUnavailable, UnknownItem
from sessions_app.views.refusals import refused


@operator_page("sessions_app.read_content", methods="GET, POST")
def feedback(request: OperatorRequest, record_id: UUID, item_id: str) -> HttpResponse:
    """Stores feedback on an item. For htmx it answers with the feedback at the item, on GET with its form."""
    record = access.session_for(request.user, record_id)
    if request.method == "GET":
        return at_item(request, record, item_id, form=None if "closed" in request.GET else FeedbackForm())
    form = FeedbackForm(request.POST)
    if not form.is_valid():
        return answer(request, record, item_id, form=form, problem=" ".join(sentences(form)), status=422)
    try:
        reader_for(record.store).require_item(record.session_id, item_id)
        signals.give_feedback(
            record, item_id, by=request.user, value=form.cleaned_data["value"], note=form.cleaned_data["note"]
        )
    except UnknownItem as unknown:
        raise Http404("No such item.") from unknown
    except StoreUnavailable as away:
        return answer(request, record, item_id, form=form, problem=str(away), status=503)
    except (MemoryActionRefused, DeletionRefused) as problem:
        return answer(request, record, item_id, form=form, problem=str(problem), status=409)
    if not request.htmx:
        messages.success(request, "Saved. Distillers use it when they learn from this session.")
    return answer(request, record, item_id)


@operator_page("sessions_app.read_content", methods="POST")
def withdraw_feedback(request: OperatorRequest, signal_id: UUID) -> HttpResponse:
    """Deletes feedback of this person; of others it is not found."""
    signal = feedback_of(request.user, signal_id)
    assert signal.record_id
    record = access.session_for(request.user, signal.record_id)
    try:
        signals.withdraw_feedback(signal, record)
    except DeletionRefused as problem:
        return answer(request, record, signal.item_id, problem=str(problem), status=409)
    if not request.htmx:
        messages.success(request, "Your feedback was removed. Memories already proposed from it stay.")
    return answer(request, record, signal.item_id)


def answer(
    request: OperatorRequest,
    record: SessionRecord,
    item_id: str,
    *,
    form: FeedbackForm | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    if request.htmx:
        return at_item(request, record, item_id, form=form, problem=problem, status=status)
    return refused(request, problem, status=status) if problem else redirect("sessions:item", record.pk, item_id)


def at_item(
    request: OperatorRequest,
    record: SessionRecord,
    item_id: str,
    *,
    form: FeedbackForm | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    """The feedback at an item in the timeline, with or without a form."""
    remarks = remarks_on(record, [item_id], reader=request.user).get(item_id, [])
    context = {"record": record, "item_id": item_id, "remarks": remarks, "form": form, "problem": problem}
    return render(request, "memories/_answer_feedback.html", context, status=status)


@operator_page("memories_app.stop_learning", methods="POST")
def stop_learning(request: OperatorRequest, subject_id: UUID) -> HttpResponse:
    subject = access.subject_for(request.user, subject_id)
    if signals.stop_learning(subject, by=request.user):
        messages.success(request, "Learning is stopped for this subject.")
    return redirect(subject)


@operator_page("memories_app.stop_learning", methods="POST")
def allow_learning(request: OperatorRequest, subject_id: UUID) -> HttpResponse:
    subject = access.subject_for(request.user, subject_id)
    if signals.allow_learning(subject, by=request.user):
        messages.success(request, "Learning is allowed again for this subject.")
    return redirect(subject)
