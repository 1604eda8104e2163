"""Verbs of saved views; the list shows the result."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from memadmin.home import saved_views
from memadmin.home.models import SavedView
from memadmin.home.saved_views import LISTS, ViewRefused, address_of, name_in
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest


def view_for(request: OperatorRequest, view_id: UUID) -> SavedView:
    """A view of this person, also of a list that they may no longer see. Raises Http404."""
    return get_object_or_404(SavedView, pk=view_id, owner=request.user)


@operator_page(methods="POST")
def save(request: OperatorRequest) -> HttpResponse:
    of = LISTS.get(request.POST.get("list", ""))
    if of is None:
        messages.error(request, "This list does not exist. Nothing was saved.")
        return redirect("/")
    if not request.user.has_perm(of.permission):
        raise PermissionDenied
    try:
        view = saved_views.save_view(of, name_in(request.POST), request.POST.get("query", ""), owner=request.user)
    except ViewRefused as problem:
        messages.error(request, str(problem))
        return redirect(f"{of.address}?{request.POST.get('query', '') or 'view=all'}")
    messages.success(request, f"Saved as “{view.name}”.")
    return redirect(address_of(view))


@operator_page(methods="POST")
def rename(request: OperatorRequest, view_id: UUID) -> HttpResponse:
    view = view_for(request, view_id)
    try:
        saved_views.rename_view(view, name_in(request.POST))
    except ViewRefused as problem:
        messages.error(request, str(problem))
    else:
        messages.success(request, f"Renamed to “{view.name}”.")
    return redirect(address_of(view))


@operator_page(methods="POST")
def set_default(request: OperatorRequest, view_id: UUID) -> HttpResponse:
    """Makes a view the default with `default=1`, else the list opens with all of its rows again."""
    view = view_for(request, view_id)
    is_default = request.POST.get("default") == "1"
    saved_views.set_default(view, is_default=is_default)
    if is_default:
        messages.success(request, f"This list now opens with “{view.name}”.")
    else:
        messages.success(request, "This list opens without a view again.")
    return redirect(address_of(view))


@operator_page(methods="POST")
def delete(request: OperatorRequest, view_id: UUID) -> HttpResponse:
    view = view_for(request, view_id)
    view.delete()
    messages.success(request, "The view is deleted. What it listed is unchanged.")
    return redirect(f"{LISTS[view.list_name].address}?view=all")
