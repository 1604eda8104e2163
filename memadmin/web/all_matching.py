"""Actions on all rows that the filters of a list match: their page, and the number of rows for a button."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render

from memadmin.counting import capped, count_up_to, noun_for
from memadmin.web.filters import FilterForm, sentences
from memadmin.web.requests import OperatorRequest


class AllMatchingForm(forms.Form):
    """An action on all that match, and the number that the page gave. Subclasses have a field `action`."""

    counted = forms.IntegerField(min_value=0)


Form = TypeVar("Form", bound=AllMatchingForm)


@dataclass(frozen=True)
class AllMatching(Generic[Form]):
    """The page of such actions for one list."""

    nouns: str
    """Rows of the list, such as "sessions"."""
    template: str
    form: type[Form]
    begin: Callable[[OperatorRequest, Form, list[UUID]], HttpResponse]
    """Begins a run on the rows with these ids, and leads to it."""

    def answer(
        self,
        request: OperatorRequest,
        filters: FilterForm,
        rows: QuerySet[Any],
        *,
        most: int,
        back: str,
        **context: object,
    ) -> HttpResponse:
        """States how many rows match and offers the `actions`; the form begins a run on the rows that match at that
        moment. Asks again with both numbers if they differ. Refuses more than `most` rows.
        """
        ids = list(rows.values_list("pk", flat=True)[: most + 1])
        if not ids:
            return back_unchanged(request, back, f"No {noun_for(1, self.nouns)} matches any more.")
        if len(ids) > most:
            return back_unchanged(request, back, f"More than {most:,} {self.nouns} match. Add a filter.")
        query = list_query(request).urlencode()
        context |= {"filters": filters, "query": query, "back": back, "count": len(ids), "nouns": self.nouns}
        if request.method != "POST":
            return render(request, self.template, context)
        form = self.form(request.POST)
        context |= {name: request.POST.get(name, "") for name in form.fields}
        if not form.is_valid():
            return render(request, self.template, context | {"problems": sentences(form)}, status=422)
        if (counted := form.cleaned_data["counted"]) != len(ids):
            changed = (
                f"{counted:,} matched when you looked, {len(ids):,} match now. Nothing was changed; confirm again."
            )
            return render(request, self.template, context | {"problems": [changed]}, status=409)
        return self.begin(request, form, ids)


def list_query(request: OperatorRequest) -> QueryDict:
    """Query string of the list from which the page was opened."""
    return QueryDict(request.POST.get("query", "")) if request.method == "POST" else request.GET


def back_unchanged(request: OperatorRequest, back: str, reason: str) -> HttpResponse:
    messages.warning(request, f"{reason} Nothing was changed.")
    return redirect(back)


def number_for_button(rows: QuerySet[Any], most: int) -> HttpResponse:
    """Number of rows that match, for the button that offers all of them."""
    return HttpResponse(capped(count_up_to(rows, most), most))
