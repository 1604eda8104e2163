"""Kinds of runs that work on sessions."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import User
from django.urls import reverse

from memadmin.runs.engine import Lease
from memadmin.runs.kinds import RunKind, register
from memadmin.runs.models import Run
from sessions_app.encryption.rotation import ItemKeyState
from sessions_app.models import Redaction, SessionStore
from sessions_app.redaction import services
from sessions_app.redaction.outcome import COUNTERS, HINTS, LeftReason
from sessions_app.services import purging, rotation, session_changes


@register
class RedactionKind(RunKind):
    name = services.RUN_KIND
    title = "Redaction"
    unit = "sessions"
    counters = COUNTERS
    sentences: ClassVar = dict(LeftReason.choices)
    hints = frozenset(left.value for left in HINTS)

    def work(self, lease: Lease) -> None:
        services.work(lease)

    def before_end(self, run: Run) -> None:
        services.finish(run)

    def describe(self, run: Run) -> str:
        of = Redaction.objects.get(run=run)
        if of.item_id:
            return "One item of a session"
        return "One text in a session" if of.record_id else "One text in all sessions of a subject"

    def url(self, run: Run, viewer: User) -> str:
        may_open = viewer.has_perms(["sessions_app.read_content", services.REDACT])
        return Redaction.objects.get(run=run).get_absolute_url() if may_open else ""

    def may_retry(self, run: Run) -> bool:
        """False: the text is deleted when the run ends."""
        return False


def store_of(run: Run) -> str:
    """Name of the store that the run works on."""
    store = SessionStore.objects.filter(pk=run.parameters["store"]).first()
    return store.name if store else "a store that was removed"


def address_of_store(run: Run, viewer: User) -> str:
    store = SessionStore.objects.filter(pk=run.parameters["store"]).first()
    may_open = viewer.has_perm("sessions_app.view_sessionstore")
    return reverse("sessions:store", args=[store.name]) if store and may_open else ""


@register
class KeyRotationKind(RunKind):
    name = rotation.RUN_KIND
    title = "Key rotation"
    unit = "sessions"
    counters: ClassVar = {
        "resealed": "Items encrypted with the new key",
        "checked": "Sessions checked",
        ItemKeyState.NEW.value: "Items with the new key",
        ItemKeyState.OLD.value: "Items with the old key",
        ItemKeyState.PLAIN.value: "Items in plain text",
        ItemKeyState.OF_SUBJECT.value: "Items with a subject's key",
        ItemKeyState.UNREADABLE.value: "Items that neither key opens",
    }
    sentences: ClassVar = {
        rotation.OLD_KEY: "Items are still encrypted with the old key: an agent uses it.",
        rotation.UNREADABLE: "Neither key opens these items. They were not changed.",
        rotation.BUSY: "An agent kept the session locked. Run rotate_key again.",
    }
    hints = frozenset({rotation.UNREADABLE, rotation.BUSY})

    def work(self, lease: Lease) -> None:
        rotation.work(lease)

    def before_end(self, run: Run) -> None:
        rotation.finish(run)

    def describe(self, run: Run) -> str:
        return f"{run.parameters['old']} to {run.parameters['new']} · {store_of(run)}"

    def url(self, run: Run, viewer: User) -> str:
        return address_of_store(run, viewer)


@register
class PurgeKind(RunKind):
    name = purging.RUN_KIND
    title = "Purge"
    unit = "sessions"
    counters = purging.COUNTERS
    sentences: ClassVar = {
        purging.BUSY: "An agent kept the session locked. Start another purge.",
        purging.HELD: "The session is under a legal hold. Start another purge when the hold is released.",
    }

    def work(self, lease: Lease) -> None:
        purging.work(lease)

    def before_end(self, run: Run) -> None:
        purging.finish(run)

    def describe(self, run: Run) -> str:
        return f"Items encrypted before {run.parameters['before'][:16].replace('T', ' ')} UTC · {store_of(run)}"

    def url(self, run: Run, viewer: User) -> str:
        return address_of_store(run, viewer)


@register
class SessionChangesKind(RunKind):
    name = session_changes.RUN_KIND
    title = "Change of sessions"
    unit = "sessions"
    counters: ClassVar = {
        "changed": "Sessions changed",
        "unchanged": "Sessions that were like this already, or are gone",
    }
    sentences: ClassVar = {session_changes.REFUSED: "Kept as it was: a legal hold, or an erased subject."}
    hints = frozenset({session_changes.REFUSED})
    requester_permission = "sessions_app.attach_session"

    def work(self, lease: Lease) -> None:
        session_changes.work(lease)

    def describe(self, run: Run) -> str:
        return session_changes.label_of(run.parameters["action"])
