"""Actions: each performs one service and shows the page again, or why nothing was changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import redirect

from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.erasure.services import RequestError, WrongState
from memadmin.runs import services as runs
from memadmin.runs.models import Run
from memadmin.runs.services import ChunkUnderWay, InvalidRunState
from memadmin.web.requests import OperatorRequest

T = TypeVar("T", SubjectRequest, RequestBatch)

PROBLEMS = (RequestError, InvalidRunState, ChunkUnderWay)
"""Why a service changes nothing: each says it in a sentence."""


@dataclass(frozen=True)
class Performer(Generic[T]):
    """Performs actions on requests, or on batches."""

    find: Callable[[User, UUID], T]
    page: Callable[..., HttpResponse]
    """Renders the page, with `problem`, `status`, and `sent`: forms by the names that they have on the page."""
    forbidden: tuple[type[Exception], ...] = ()
    fields: Mapping[type[Exception], str] = field(default_factory=dict)
    """Problems with the value of a field."""

    def __call__(
        self, request: OperatorRequest, object_id: UUID, take: Callable[..., object], done: str, **sent: forms.Form
    ) -> HttpResponse:
        """Takes one action, if the form that was sent is valid: calls `take(found, by=...)` with its values by name."""
        found = self.find(request.user, object_id)
        if not all(form.is_valid() for form in sent.values()):
            return self.page(request, found, status=422, sent=sent)
        values = {name: value for form in sent.values() for name, value in form.cleaned_data.items()}
        try:
            take(found, by=request.user, **values)
        except PROBLEMS as problem:
            # As it is now: perhaps another person was faster.
            found = self.find(request.user, object_id)
            if name := self.fields.get(type(problem)):
                for form in sent.values():
                    form.add_error(name, str(problem))
                return self.page(request, found, status=422, sent=sent)
            status = 403 if isinstance(problem, self.forbidden) else 409
            return self.page(request, found, problem=str(problem), status=status, sent=sent)
        messages.success(request, done)
        return redirect(found)


def pause_run(shown: SubjectRequest | RequestBatch, *, by: User) -> None:
    """Raises WrongState before the approval, and as the run does."""
    runs.pause_run(run_of(shown), by=by)


def resume_run(shown: SubjectRequest | RequestBatch, *, by: User) -> None:
    """Raises WrongState before the approval, and as the run does."""
    runs.resume_run(run_of(shown), by=by)


def run_of(shown: SubjectRequest | RequestBatch) -> Run:
    if shown.run is None:
        raise WrongState(shown)
    return shown.run
