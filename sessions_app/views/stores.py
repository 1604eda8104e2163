"""Pages of stores: health, settings, discovery and registration of sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils.timezone import now

from memadmin.counting import COUNT_CAP
from memadmin.home.saved_views import has_saved_views
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access, registry
from sessions_app.encryption import keyring, sealing_of
from sessions_app.encryption.subject_keys import key_folder
from sessions_app.filters import STORE_STATES, UNCHECKED, StoreFilter
from sessions_app.forms import EncryptionForm, PatternForm, RegisterForm
from sessions_app.models import FenceOutbox, SessionIdPattern, SessionRecord, SessionStore, SubjectKind
from sessions_app.search.indexes import about_search_index
from sessions_app.services import discovery, health_checks, path_watch, patterns
from sessions_app.services.encryption import EncryptionRefused, declare_encryption
from sessions_app.services.registering import CannotRegister, Registration, register_sessions
from sessions_app.services.store_config import StoreStillNeeded, delete_store
from sessions_app.stores.base import Capability, StoreHealth, StoreUnavailable
from sessions_app.views.refusals import refused, way_back

LONGEST_NUMBER = 20
"""Maximum number of digits; Python does not parse thousands of them."""


STORES = ListPage("sessions/stores.html", salt="stores")

STALE_AFTER = timedelta(minutes=10)
"""Age from which the result of a check is marked as old: the job that checks does not run, or has too many stores."""


@dataclass(frozen=True, slots=True)
class CheckedStore:
    """A store with the result of its last health check. Asks no store."""

    store: SessionStore

    @property
    def health(self) -> StoreHealth | None:
        return registry.last_health(self.store)

    @property
    def is_stale(self) -> bool:
        return self.store.checked_at is not None and self.store.checked_at < now() - STALE_AFTER

    @property
    def is_discovered(self) -> bool:
        return registry.is_discovered(self.store)


@operator_page("sessions_app.view_sessionstore")
@has_saved_views("sessions:stores", "sessions_app.view_sessionstore", lambda query, _: StoreFilter(query))
def store_list(request: OperatorRequest) -> HttpResponse:
    """Stores under the filters, a page at a time, with the results of their last health checks."""
    filters = StoreFilter(request.GET)
    page = STORES.page(request, filters.queryset())
    context = {
        "filters": filters,
        "checked_stores": [CheckedStore(each) for each in page.rows],
        "states": states_of_stores(),
        "unconnected": registry.unconnected_tables(),
        "watched_paths": [
            (watched, path_watch.about(watched), list(watched.refused.items()))
            for watched in path_watch.watched_paths()
        ],
    }
    return STORES.render(request, context, page, status=400 if filters.problems else 200)


def states_of_stores() -> list[tuple[str, str, int]]:
    """Each state that any store has, its label, and the number of stores. One query."""
    counts = SessionStore.objects.count_by_state()
    return [
        (state, label, count)
        for state, label in STORE_STATES.items()
        if (count := counts.get("" if state == UNCHECKED else state, 0))
    ]


@operator_page("sessions_app.view_sessionstore", methods="POST")
def check(request: OperatorRequest, name: str) -> HttpResponse:
    """Checks the health of one store now, also if it recently timed out."""
    shown = access.store_for(request.user, name)
    health = health_checks.check_store(shown)
    if health.state == SessionStore.State.DOWN:
        messages.error(request, f"{shown} is unreachable. {health.problems[0].sentence}")
    else:
        messages.success(request, f"{shown} is {SessionStore.State(health.state).label}.")
    return redirect(way_back(request, otherwise=reverse("sessions:store", args=[shown.name])))


@operator_page("sessions_app.view_sessionstore")
def store(request: OperatorRequest, name: str) -> HttpResponse:
    """One store, with its current health. `?edit=<id>` puts that pattern into the form."""
    shown = access.store_for(request.user, name)
    context = store_context(shown)
    wanted = request.GET.get("edit", "")
    if wanted.isdecimal() and len(wanted) <= LONGEST_NUMBER:
        edited = access.pattern_for(request.user, shown, int(wanted))
        context |= {"edited": edited, "form": PatternForm(instance=edited)}
    return render(request, "sessions/store.html", context)


def current_health(shown: SessionStore) -> StoreHealth:
    """Health of one store, from the store itself; only whether another one is in its location is from the last check.

    The cost does not grow with the number of stores. A store that hung a moment ago is not asked.
    """
    health, last = registry.own_health(shown, anyway=False), registry.last_health(shown)
    same_place = [problem for problem in last.problems if problem.code == registry.SAME_PLACE] if last else []
    return replace(health, problems=(*health.problems, *same_place)) if health.state != "down" else health


def store_context(shown: SessionStore) -> dict[str, Any]:
    records = SessionRecord.objects.on_record().filter(store=shown)
    patterns_kept = list(SessionIdPattern.objects.of(shown))
    shares = patterns.shares_of(shown, patterns_kept)
    return {
        "store": shown,
        "health": current_health(shown),
        "is_discovered": registry.is_discovered(shown),
        "may_be_removed": not shown.attached_at and not shown.sessions.exists(),
        "kind": registry.kind_of(shown),
        "place": registry.kind_of(shown).settings_of(shown),
        "limits": registry.limits_of(shown),
        "search_index": search_index_of(shown),
        "has_search_index": registry.can(shown, Capability.WORD_INDEX),
        "key_problem": "" if keyring().get(shown.encryption_key) else keyring().why_not(shown.encryption_key),
        "has_subject_keys": key_folder() is not None,
        "encryption_ttl": in_words(sealing_of(shown).ttl),
        "patterns": [(pattern, shares.by_pattern[pattern.pk]) for pattern in patterns_kept],
        "shares": shares,
        "dropped_writes": shown.dropped_writes + FenceOutbox.objects.filter(store=shown)[: COUNT_CAP + 1].count(),
        "without_subject": records.without_subject().count_up_to(COUNT_CAP),
        "encryption_form": EncryptionForm(shown),
        "register_form": None if registry.can(shown, Capability.ENUMERATE) else RegisterForm(),
        "form": PatternForm(),
        "kinds": SubjectKind.choices,
    }


def in_words(length: timedelta) -> str:
    """A length of time in the largest unit without a remainder: "10 minutes"."""
    seconds = int(length.total_seconds())
    units = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next((size, unit) for size, unit in units if seconds % size == 0)
    return f"{seconds // size:,} {unit}{'' if seconds == size else 's'}"


@operator_page("sessions_app.add_sessionstore", methods="POST")
@recently_authenticated(doing="remove a store")
def remove(request: OperatorRequest, name: str) -> HttpResponse:
    """Deletes a store that is not attached and has no session records."""
    shown = access.store_for(request.user, name)
    try:
        delete_store(shown, by=request.user)
    except StoreStillNeeded as problem:
        return refused(request, str(problem), status=409)
    messages.success(request, f"The store {name} was removed.")
    return redirect("sessions:stores")


@operator_page("sessions_app.change_sessionstore", methods="POST")
def discover(request: OperatorRequest, name: str) -> HttpResponse:
    """Discovers the sessions of a store at once, and reports how many are new."""
    shown = access.store_for(request.user, name)
    if not registry.is_discovered(shown):
        return refused(request, "This store needs no discovery: its triggers register new sessions.", status=409)
    try:
        found = discovery.discover_now(shown, by=request.user)
    except StoreUnavailable as away:
        messages.error(request, str(away))
    else:
        new = f"{found.new:,} new session{pluralize(found.new)}"
        messages.success(request, f"Checked {found.sessions:,} session{pluralize(found.sessions)}: {new}.")
    return redirect("sessions:store", name)


@operator_page("sessions_app.change_sessionstore", methods="POST")
@recently_authenticated(doing="change the key of a store")
def save_key(request: OperatorRequest, name: str) -> HttpResponse:
    """Saves the name of the key with which the agents of a store encrypt; never the key itself."""
    shown = access.store_for(request.user, name)
    form = EncryptionForm(shown, request.POST)
    if form.is_valid():
        said = form.cleaned_data
        try:
            declare_encryption(
                shown,
                key=said["key"],
                ttl=timedelta(seconds=said["ttl"]) if said["ttl"] else None,
                forgets_ttl=not said["ttl"],
                session_ids=said["session_ids"],
                by=request.user,
            )
        except EncryptionRefused as refusal:
            form.add_error(None, str(refusal))
        else:
            messages.success(request, "Saved. Encrypted sessions are inspected again.")
            return redirect("sessions:store", name)
    return render(request, "sessions/store.html", store_context(shown) | {"encryption_form": form}, status=422)


@operator_page("sessions_app.change_sessionstore", methods="POST")
def register(request: OperatorRequest, name: str) -> HttpResponse:
    """Registers sessions by their ids. Ids that are not in the store are shown in the form and nowhere else."""
    shown = access.store_for(request.user, name)
    form = RegisterForm(request.POST)
    if form.is_valid():
        try:
            result = register_sessions(shown, form.cleaned_data["ids"])
        except (CannotRegister, StoreUnavailable) as refusal:
            form.add_error("ids", str(refusal))
        else:
            done = f"{result.new:,} session{pluralize(result.new)} registered, {result.known:,} already registered."
            if not result.not_there and not result.erased:
                messages.success(request, done)
                return redirect("sessions:store", name)
            left = [*result.not_there, *result.erased]
            form = RegisterForm({"ids": "\n".join(left)})
            form.add_error("ids", f"{done} {sentence_on_left(result)}")
    return render(request, "sessions/store.html", store_context(shown) | {"register_form": form}, status=422)


def sentence_on_left(result: Registration) -> str:
    missing, erased = len(result.not_there), len(result.erased)
    parts = [
        f"{missing:,} not in this store" if missing else "",
        f"{erased:,} erased earlier" if erased else "",
    ]
    return f"IDs not registered: {', '.join(filter(None, parts))}."


def search_index_of(shown: SessionStore) -> str:
    """State of the search index; empty if the store does not respond."""
    try:
        return about_search_index(shown)
    except StoreUnavailable:
        return ""
