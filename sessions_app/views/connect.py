"""Connecting a new store: which kind, then what that kind asks for."""

from __future__ import annotations

from django.contrib import messages
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


@operator_page("sessions_app.add_sessionstore")
def choose_kind(request: OperatorRequest) -> HttpResponse:
    context = {"kinds": kinds_to_connect(), "unconnected": registry.unconnected_tables()}
    return render(request, "sessions/choose_kind.html", context)


@operator_page("sessions_app.add_sessionstore", methods="GET, POST")
@recently_authenticated(doing="connect a store")
def connect(request: OperatorRequest, kind: str) -> HttpResponse:
    """The form of a kind, filled in from the query string. A store that cannot be reached gives it back, and nothing is
    kept; one that stops answering only when its sessions are looked for is connected."""
    chosen = next((each for each in kinds_to_connect() if each.name == kind), None)
    if chosen is None:
        raise Http404
    proposed = request.GET.dict()
    form, settings = StoreForm(chosen, initial=proposed), settings_form(chosen, initial=proposed)
    problem, status = "", 200
    if request.method == "POST":
        form, settings, status = StoreForm(chosen, request.POST), settings_form(chosen, request.POST), 422
        if form.is_valid() and settings.is_valid():
            try:
                if path_watch.may_be_watched(settings.cleaned_data):
                    given = {**form.cleaned_data, "kind": chosen.name, "options": settings.cleaned_data}
                    look = path_watch.check_now(path_watch.watch_path(**given, by=request.user), by=request.user)
                    new = f"{len(look.connected):,} new store{pluralize(look.connected)}"
                    messages.success(request, f"The path is now watched. Current matches: {look.places:,}; {new}.")
                    return redirect("sessions:stores")
                store = connect_store(**form.cleaned_data, kind=chosen, options=settings.cleaned_data)
            except (registry.AttachRefused, StoreUnavailable) as refusal:
                problem = str(refusal)
            else:
                if registry.is_discovered(store) and not store.discovered_at:
                    away = "Connected. The store is not responding now; its sessions are found once it responds."
                    messages.warning(request, away)
                else:
                    found = store.sessions.count()
                    messages.success(request, f"Connected, with {found:,} session{pluralize(found)}.")
                return redirect("sessions:store", store.name)
    context = {
        "kind": chosen,
        "may_be_watched": chosen.watched_field is not None,
        "form": form,
        "settings": settings,
        "problem": problem,
    }
    return render(request, "sessions/connect.html", context, status=status)
