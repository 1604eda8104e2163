"""Requests to unlock sessions: their page, where they are asked for, decided, and withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.timezone import now

from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.forms import ShownForm
from memadmin.accounts.approvals.services import ApprovalError, NotAllowed
from memadmin.accounts.content_access import rules
from memadmin.accounts.grants.services import DECIDE
from memadmin.counting import counted
from memadmin.web.filters import sentences
from memadmin.web.pages import View, operator_page
from memadmin.web.performing import Performer
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.forms import SelectionForm, UnlockForm
from sessions_app.models import SessionRecord, UnlockRequest
from sessions_app.services import unlocking

WAITING_SHOWN = 20

ENDED_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """A request that waits, for one viewer."""

    request: UnlockRequest
    steps: approvals.Steps
    records: list[SessionRecord]
    """Its sessions that are on record."""

    @property
    def is_short(self) -> bool:
        """Whether its sessions are shown without a click."""
        return len(self.records) <= 5

    @property
    def gone(self) -> int:
        return len(self.request.sessions) - len(self.records)

    @property
    def open_already(self) -> int:
        return sum(not record.is_sensitive for record in self.records)


def for_those_involved(view: View) -> View:
    """A view for those who request to unlock, or decide about it."""

    @wraps(view)
    def guarded(request: OperatorRequest, *args: Any, **kwargs: Any) -> Any:
        if not (request.user.has_perm(unlocking.REQUEST) or request.user.has_perm(DECIDE)):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return guarded  # type: ignore[return-value]


@operator_page(methods="GET, POST")
@for_those_involved
@recently_authenticated(doing="request to unlock sessions")
def unlock(request: OperatorRequest) -> HttpResponse:
    """The requests that wait, and the newest others; POST requests to unlock the selected sessions."""
    if request.method != "POST":
        return unlock_page(request)
    if not request.user.has_perm(unlocking.REQUEST):
        raise PermissionDenied
    selection, form = SelectionForm(request.POST), UnlockForm(request.POST)
    if not selection.is_valid():
        return unlock_page(request, problem=" ".join(sentences(selection)), status=422)
    chosen = [record.pk for record in selection.cleaned_data["session"]]
    if not form.is_valid():
        return unlock_page(request, sent={"unlock_form": form, "chosen": chosen}, status=422)
    return ask(request, chosen, form.cleaned_data["reason"])


def ask(request: OperatorRequest, chosen: Iterable[UUID], reason: str) -> HttpResponse:
    """Requests to unlock these sessions, and shows the request. Raises PurposeMissing and ReadingStopped."""
    purpose = rules.purpose_of(request)
    try:
        asked = unlocking.request_unlocking(chosen, reason=reason, purpose=purpose, by=request.user)
    except unlocking.UnlockError as problem:
        return unlock_page(request, problem=str(problem), status=422)
    if asked.unlocked_at:
        messages.success(request, f"{counted(asked.unlocked_count, 'sessions')} unlocked.")
    else:
        sessions = counted(len(asked.sessions), "sessions")
        messages.success(
            request, f"Requested to unlock {sessions}. They stay locked until another person has approved it."
        )
    return redirect(asked)


def unlock_page(
    request: OperatorRequest,
    about: UnlockRequest | None = None,
    *,
    problem: str = "",
    status: int = 200,
    sent: Mapping[str, Any] | None = None,
) -> HttpResponse:
    waiting = list(unlocking.waiting()[:WAITING_SHOWN])
    may_decide = request.user.has_perm(DECIDE)
    on_record = SessionRecord.objects.on_record().select_related("store")
    records = on_record.in_bulk({record_id for each in waiting for record_id in each.sessions})

    def shown(each: UnlockRequest) -> ShownRequest:
        theirs = [records[record_id] for record_id in each.sessions if record_id in records]
        steps = approvals.steps_in_list(each, request.user, unlocking.shown_of(each))
        return ShownRequest(each, steps if may_decide or steps.withdraw else approvals.Steps(), theirs)

    context = {
        "waiting": [shown(each) for each in waiting],
        "ended": [
            (each, counted(len(each.sessions), "sessions"), state_of(each)) for each in unlocking.ended()[:ENDED_SHOWN]
        ],
        "problem": problem,
        **(sent or {}),
    }
    response = render(request, "sessions/unlocking.html", context, status=status)
    response["Cache-Control"] = "no-store, private"
    return response


def state_of(request: UnlockRequest) -> str:
    return request.approval.state_at(now()) if request.approval else ""


perform = Performer(access.unlock_request_for, unlock_page, (ApprovalError,), forbidden=(NotAllowed,))


@operator_page(DECIDE, methods="POST")
@recently_authenticated(doing="unlock sessions")
def approve(request: OperatorRequest, unlock_id: UUID) -> HttpResponse:
    return perform(
        request, unlock_id, unlocking.approve_unlocking, "The sessions are unlocked.", form=ShownForm(request.POST)
    )


@operator_page(methods="POST")
@for_those_involved
def reject(request: OperatorRequest, unlock_id: UUID) -> HttpResponse:
    """Rejects a request, or withdraws one's own."""
    return perform(request, unlock_id, unlocking.reject_unlocking, "The request has ended. The sessions stay locked.")
