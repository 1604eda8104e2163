"""Registration by id of sessions in a store that cannot list them. Discovery then requests them again and again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memadmin.batching import batched
from sessions_app.items import can_be_registered
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.discovery import ASKED_AT_ONCE, Discovery, note
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability


class CannotRegister(Exception):
    """Sessions of this store are not registered by hand; the message has the reason."""


@dataclass
class Registration:
    """Results for the given ids."""

    new: int = 0
    known: int = 0
    """Registered before."""
    erased: list[str] = field(default_factory=list)
    """Erased before; they stay so."""
    not_there: list[str] = field(default_factory=list)
    """Unknown to the store; not registered."""


def register_sessions(store: SessionStore, session_ids: Iterable[str]) -> Registration:
    """Registers sessions of a store that cannot list them. Safe to repeat.

    Asks the store for each that is not registered. Raises CannotRegister, with nothing registered, or StoreUnavailable;
    sessions registered until then stay.
    """
    if Capability.ENUMERATE in backend_for(store).capabilities:
        raise CannotRegister(f"{store} lists its own sessions; registration is not needed.")
    if store.attached_at is None:
        raise CannotRegister(f"{store} is not attached. Run attach_store {store}.")
    registration, ids = Registration(), [_checked(session_id) for session_id in dict.fromkeys(session_ids)]
    for batch in batched(ids, ASKED_AT_ONCE):
        _register(store, batch, registration)
    return registration


def _checked(session_id: str) -> str:
    """Raises CannotRegister for an id that the registry cannot store."""
    if not can_be_registered(session_id):
        raise CannotRegister(f"{session_id[:80]!a} is not a valid session ID: not text, or too long.")
    return session_id


def _register(store: SessionStore, session_ids: Sequence[str], registration: Registration) -> None:
    known = SessionRecord.objects.filter(store=store, session_id__in=session_ids)
    erased_at = dict(known.values_list("session_id", "erased_at"))
    registration.erased += [session_id for session_id in session_ids if erased_at.get(session_id)]
    registration.known += sum(instant is None for instant in erased_at.values())
    forgotten = SessionRecord.objects.forgotten(store, [each for each in session_ids if each not in erased_at])
    registration.erased += sorted(forgotten)
    strangers = [each for each in session_ids if each not in erased_at and each not in forgotten]
    found = backend_for(store).look_up(strangers) if strangers else {}
    registration.not_there += [session_id for session_id in strangers if session_id not in found]
    numbers = Discovery()
    note(store, found, numbers)
    registration.new += numbers.new
