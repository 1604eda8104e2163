"""Pages that connect a new store: choice of a kind, then the form of that kind."""

from __future__ import annotations

from django.contrib import messages
from django.forms import Form
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize

from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import registry
from sessions_app.forms import StoreForm, settings_form
from sessions_app.services import path_watch
from sessions_app.services.connecting import connect_store, kinds_to_connect
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.kinds import StoreKind


@operator_page("sessions_app.add_sessionstore")
def choose_kind(request: OperatorRequest) -> HttpResponse:
    context = {"kinds": kinds_to_connect(), "unconnected": registry.unconnected_tables()}
    return render(request, "sessions/choose_kind.html", context)


@operator_page("sessions_app.add_sessionstore", methods="GET, POST")
@recently_authenticated(doing="connect a store")
def connect(request: OperatorRequest, kind: str) -> HttpResponse:
    """Form of a kind, filled in from the query string; sent, it connects a store or watches a path."""
    chosen = next((each for each in kinds_to_connect() if each.name == kind), None)
    if chosen is None:
        raise Http404
    if request.method != "POST":
        given = request.GET.dict()
        return form_page(request, chosen, StoreForm(chosen, initial=given), settings_form(chosen, initial=given))
    form, settings = StoreForm(chosen, request.POST), settings_form(chosen, request.POST)
    if form.is_valid() and settings.is_valid():
        return connect_chosen(request, chosen, form, settings)
    return form_page(request, chosen, form, settings, status=422)


def connect_chosen(request: OperatorRequest, kind: StoreKind, form: StoreForm, settings: Form) -> HttpResponse:
    """Connects a store, or its path to watch, by two valid forms.

    A store that cannot be reached is not kept; the answer is the form with the reason. A store that stops responding
    during discovery stays connected.
    """
    try:
        if path_watch.may_be_watched(settings.cleaned_data):
            return watch_chosen(request, kind, form, settings)
        store = connect_store(**form.cleaned_data, kind=kind, options=settings.cleaned_data)
    except (registry.AttachRefused, StoreUnavailable) as refusal:
        return form_page(request, kind, form, settings, problem=str(refusal), status=422)
    if registry.is_discovered(store) and not store.discovered_at:
        away = "Connected. The store is not responding now; its sessions are found once it responds."
        messages.warning(request, away)
    else:
        found = store.sessions.count()
        messages.success(request, f"Connected, with {found:,} session{pluralize(found)}.")
    return redirect("sessions:store", store.name)


def watch_chosen(request: OperatorRequest, kind: StoreKind, form: StoreForm, settings: Form) -> HttpResponse:
    """Watches a path and connects its current matches. Raises AttachRefused and StoreUnavailable."""
    given = {**form.cleaned_data, "kind": kind.name, "options": settings.cleaned_data}
    result = path_watch.check_now(path_watch.watch_path(**given, by=request.user), by=request.user)
    new = f"{len(result.connected):,} new store{pluralize(result.connected)}"
    messages.success(request, f"The path is now watched. Current matches: {result.places:,}; {new}.")
    return redirect("sessions:stores")


def form_page(
    request: OperatorRequest, kind: StoreKind, form: StoreForm, settings: Form, *, problem: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "kind": kind,
        "may_be_watched": kind.watched_field is not None,
        "form": form,
        "settings": settings,
        "problem": problem,
    }
    return render(request, "sessions/connect.html", context, status=status)
