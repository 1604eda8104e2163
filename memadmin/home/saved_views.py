"""Saved views: filters, order and columns of a list under a name, of one person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from django import forms
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from memadmin.home.models import SavedView
from memadmin.web.filters import FilterForm, sentences
from memadmin.web.requests import OperatorRequest

MOST_VIEWS = 20
"""Maximum number of views of one list."""

ListView = Callable[[OperatorRequest], HttpResponse]


@dataclass(frozen=True, slots=True)
class ListWithViews:
    """A list whose filters can be saved, and its permission. `filters` reads them from a query string."""

    name: str
    url_name: str
    permission: str
    filters: Callable[[QueryDict, User], FilterForm]

    @property
    def address(self) -> str:
        return reverse(self.url_name)


LISTS: dict[str, ListWithViews] = {}


def has_saved_views(
    url_name: str, permission: str, filters: Callable[[QueryDict, User], FilterForm]
) -> Callable[[ListView], ListView]:
    """A list with saved views. Opened without a query string, it redirects to the default view of the person, if there
    is one; one query more then.
    """

    def decorate(view: ListView) -> ListView:
        name = url_name.replace(":", "-")
        LISTS[name] = ListWithViews(name, url_name, permission, filters)

        @wraps(view)
        def opened(request: OperatorRequest) -> HttpResponse:
            if request.method == "GET" and not request.META["QUERY_STRING"]:
                default = SavedView.objects.filter(owner=request.user, list_name=name, is_default=True).first()
                if default:
                    return redirect(address_of(default))
            return view(request)

        return opened

    return decorate


def address_of(view: SavedView) -> str:
    """Address of the list with a view."""
    # Never without a query string, which would open the default view.
    return f"{LISTS[view.list_name].address}?{view.query or 'view=all'}"


def list_at(address: str) -> ListWithViews | None:
    return next((each for each in LISTS.values() if each.address == address), None)


def views_of(owner: User, list_name: str) -> list[SavedView]:
    """The person's views of a list, by name. One query."""
    return list(SavedView.objects.filter(owner=owner, list_name=list_name)[:MOST_VIEWS])


class ViewNameForm(forms.Form):
    name = forms.CharField(
        max_length=60,
        error_messages={"required": "A view needs a name.", "max_length": "A name has at most 60 characters."},
    )


class ViewRefused(Exception):
    """A view was not saved; the message has the reasons."""


def name_in(given: QueryDict) -> str:
    """The name of a view. Raises ViewRefused."""
    form = ViewNameForm(given)
    if not form.is_valid():
        raise ViewRefused(" ".join(sentences(form)))
    return str(form.cleaned_data["name"])


def save_view(of: ListWithViews, name: str, query: str, *, owner: User) -> SavedView:
    """Saves the valid parts of a query string under a name, in place of a view with the same name.

    Filters with typed words and those of one person are left out. Raises ViewRefused.
    """
    filters = of.filters(QueryDict(query), owner)
    if filters.problems:
        raise ViewRefused(" ".join(filters.problems))
    kept = filters.query_of([each for each in filters.active if each not in filters.not_saved])
    if len(kept) > SavedView.LONGEST_QUERY:
        raise ViewRefused("These filters are too long for a view.")
    with transaction.atomic():
        # One at a time, so that there are never more.
        User.objects.select_for_update(no_key=True).get(pk=owner.pk)
        views = SavedView.objects.filter(owner=owner, list_name=of.name)
        if views.count() >= MOST_VIEWS and not views.filter(name=name).exists():
            raise ViewRefused(f"You have {MOST_VIEWS} views of this list already. Delete one first.")
        view, _ = SavedView.objects.update_or_create(
            owner=owner, list_name=of.name, name=name, defaults={"query": kept}
        )
    return view


def rename_view(view: SavedView, name: str) -> None:
    """Raises ViewRefused if another view of the list has this name."""
    view.name = name
    try:
        with transaction.atomic():
            view.save(update_fields=["name"])
    except IntegrityError as problem:
        raise ViewRefused(f"Another view of this list is named “{name}”.") from problem


@transaction.atomic
def set_default(view: SavedView, *, is_default: bool) -> None:
    """Makes a view the one with which the list opens, instead of another, or of none."""
    User.objects.select_for_update(no_key=True).get(pk=view.owner_id)
    SavedView.objects.filter(owner=view.owner_id, list_name=view.list_name, is_default=True).update(is_default=False)
    SavedView.objects.filter(pk=view.pk).update(is_default=is_default)
