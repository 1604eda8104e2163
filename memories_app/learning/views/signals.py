"""Views of feedback and learning stops: the verbs of panels on pages of sessions and subjects."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect

from memadmin.web.filters import sentences
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.learning import signals
from memories_app.learning.forms import FeedbackForm
from memories_app.services.refusals import NothingLearnedHere
from sessions_app import access
from sessions_app.masked_reader import reader_for
from sessions_app.stores.base import StoreUnavailable, UnknownItem
from sessions_app.views.refusals import refused


@operator_page("sessions_app.read_content", methods="POST")
def feedback(request: OperatorRequest, record_id: UUID, item_id: str) -> HttpResponse:
    record = access.session_for(request.user, record_id)
    form = FeedbackForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    try:
        reader_for(record.store).item(record.session_id, item_id)
        signals.give_feedback(
            record, item_id, by=request.user, value=form.cleaned_data["value"], note=form.cleaned_data["note"]
        )
    except UnknownItem as unknown:
        raise Http404("No such item.") from unknown
    except StoreUnavailable as away:
        return refused(request, str(away), status=503)
    except NothingLearnedHere as problem:
        return refused(request, str(problem), status=409)
    messages.success(request, "Saved. Distillers use it when they learn from this session.")
    return redirect("sessions:item", record.pk, item_id)


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
