"""Erasure of an event's details or of its actor's name, from the event's page."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from memadmin.audit.log import erasing
from memadmin.audit.models import AuditEvent
from memadmin.audit.pages import access
from memadmin.audit.pages.views.event import event_page
from memadmin.counting import counted
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest

ERASE = "audit.erase_beside_log"


class ErasureForm(forms.Form):
    """Reason of an erasure."""

    reason = forms.ChoiceField(
        choices=erasing.ErasureReason,
        error_messages={
            "required": "Choose a reason for the erasure.",
            "invalid_choice": "This reason does not exist. Choose one from the list.",
        },
    )


@operator_page(ERASE, methods="POST")
@recently_authenticated(doing="erase details")
def erase_details(request: OperatorRequest, event_id: UUID) -> HttpResponse:
    def erase(shown: AuditEvent, reason: str) -> str:
        count = erasing.erase_details(shown, by=request.user, reason=reason)
        return f"Details of {counted(count, 'events')} erased."

    return answer(request, access.event_for(request.user, event_id), erase)


@operator_page(ERASE, methods="POST")
@recently_authenticated(doing="erase a name")
def erase_name(request: OperatorRequest, event_id: UUID) -> HttpResponse:
    """Erases the actor's name, for all their events."""

    def erase(shown: AuditEvent, reason: str) -> str:
        erasing.erase_name(shown.actor_ref, by=request.user, reason=reason)
        return "The name is erased. The events remain under an anonymous ID."

    return answer(request, access.event_for(request.user, event_id), erase)


def answer(request: OperatorRequest, shown: AuditEvent, erase: Callable[[AuditEvent, str], str]) -> HttpResponse:
    form = ErasureForm(request.POST)
    if not form.is_valid():
        return event_page(request, shown, problem=str(form.errors["reason"][0]), status=422)
    try:
        done = erase(shown, form.cleaned_data["reason"])
    except erasing.CannotErase as problem:
        return event_page(request, shown, problem=str(problem), status=409)
    messages.success(request, done)
    return redirect(shown)
