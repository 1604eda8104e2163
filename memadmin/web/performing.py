"""Actions on one object: each performs one service and shows the object's page again, or why nothing was changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import redirect

from memadmin.web.requests import OperatorRequest


class HasAddress(Protocol):
    def get_absolute_url(self) -> str: ...


T = TypeVar("T", bound=HasAddress)


@dataclass(frozen=True)
class Performer(Generic[T]):
    """Performs actions on objects of one kind."""

    find: Callable[[User, UUID], T]
    page: Callable[..., HttpResponse]
    """Renders the page, with `problem`, `status`, and `sent`: forms by the names that they have on the page."""
    refused: tuple[type[Exception], ...]
    """Errors of the services, each with a sentence: nothing was changed. Answered with 409."""
    forbidden: tuple[type[Exception], ...] = ()
    """Those among them that are answered with 403."""
    fields: Mapping[type[Exception], str] = field(default_factory=dict)
    """Fields to whose values errors belong; answered with 422."""

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
        except self.refused as problem:
            # As it is now: perhaps another person was faster.
            found = self.find(request.user, object_id)
            if name := self.fields.get(type(problem)):
                for form in sent.values():
                    form.add_error(name, str(problem))
                return self.page(request, found, status=422, sent=sent)
            status = 403 if isinstance(problem, self.forbidden) else 409
            return self.page(request, found, problem=str(problem), status=status, sent=sent)
        messages.success(request, done)
        return redirect(found.get_absolute_url())
