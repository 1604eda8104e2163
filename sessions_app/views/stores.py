"""Pages of stores: health, settings, discovery and registration of sessions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize

from memadmin.counting import COUNT_CAP
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access, registry
from sessions_app.encryption import keyring
from sessions_app.forms import EncryptionForm, PatternForm, RegisterForm
from sessions_app.models import FenceOutbox, SessionIdPattern, SessionRecord, SessionStore, SubjectKind
from sessions_app.search.indexes import about_search_index
from sessions_app.services import discovery, path_watch, patterns
from sessions_app.services.encryption import EncryptionRefused, declare_encryption
from sessions_app.services.registering import CannotRegister, Registration, register_sessions
from sessions_app.stores.base import Capability, StoreHealth, StoreUnavailable
from sessions_app.views.refusals import refused

LONGEST_NUMBER = 20
"""Maximum number of digits; Python does not parse thousands of them."""


@dataclass(frozen=True, slots=True)
class CheckedStore:
    store: SessionStore
    health: StoreHealth

    @property
    def is_discovered(self) -> bool:
        return registry.is_discovered(self.store)


@operator_page("sessions_app.view_sessionstore")
def store_list(request: OperatorRequest) -> HttpResponse:
    """All stores with their current health; `?again` also checks those that recently timed out."""
    return render(
        request,
        "sessions/stores.html",
        {
            "checked_stores": check_stores(anyway="again" in request.GET),
            "unconnected": registry.unconnected_tables(),
            "watched_paths": [
                (watched, path_watch.about(watched), list(watched.refused.items()))
                for watched in path_watch.watched_paths()
            ],
        },
    )


def check_stores(*, anyway: bool = False) -> list[CheckedStore]:
    """Health of stores. `anyway` also checks those that recently timed out."""
    stores = list(SessionStore.objects.all())
    return [CheckedStore(*each) for each in zip(stores, registry.health_of_all(stores, anyway=anyway), strict=True)]


@operator_page("sessions_app.view_sessionstore")
def store(request: OperatorRequest, name: str) -> HttpResponse:
    """One store. `?edit=<id>` puts that pattern into the form; `?again` checks it even if it recently timed out."""
    shown = access.store_for(request.user, name)
    context = store_context(shown, anyway="again" in request.GET)
    wanted = request.GET.get("edit", "")
    if wanted.isdecimal() and len(wanted) <= LONGEST_NUMBER:
        edited = access.pattern_for(request.user, shown, int(wanted))
        context |= {"edited": edited, "form": PatternForm(instance=edited)}
    return render(request, "sessions/store.html", context)


def store_context(shown: SessionStore, *, anyway: bool = False) -> dict[str, Any]:
    records = SessionRecord.objects.on_record().filter(store=shown)
    patterns_kept = list(SessionIdPattern.objects.of(shown))
    shares = patterns.shares_of(shown, patterns_kept)
    return {
        "store": shown,
        "health": registry.health(shown, anyway=anyway),
        "is_discovered": registry.is_discovered(shown),
        "kind": registry.kind_of(shown),
        "place": registry.kind_of(shown).settings_of(shown),
        "limits": registry.limits_of(shown),
        "search_index": search_index_of(shown),
        "has_search_index": registry.can(shown, Capability.WORD_INDEX),
        "key_problem": "" if keyring().get(shown.encryption_key) else keyring().why_not(shown.encryption_key),
        "encryption_ttl": in_words(timedelta(seconds=shown.encryption_ttl_seconds)),
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
                ttl=timedelta(seconds=said["ttl"]),
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
