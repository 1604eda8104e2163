"""Configuration of stores: creating, updating and deleting their rows."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from psycopg.errors import UniqueViolation

from memadmin import audit
from sessions_app import audit_events
from sessions_app.models import SessionStore
from sessions_app.registry import MAIN_KIND, MAIN_STORE, AttachRefused
from sessions_app.stores.kinds import kind_of, kinds

ROLE_NAME_BYTES = 63

DECLARED = ("kind", "options", "sessions_table", "messages_table", "writer_timezone", "fence_mode", "agent_roles")
"""Columns that `declare_store` sets."""


class StoreStillNeeded(Exception):
    """The store has records that must be kept; the message names them."""


def declare_store(
    name: str,
    *,
    kind: str = "",
    options: Mapping[str, str] | None = None,
    sessions_table: str = "",
    messages_table: str = "",
    timezone: str = "",
    mode: str = "",
    agent_roles: Sequence[str] = (),
    must_be_new: bool = False,
    check: Callable[[SessionStore], None] = lambda store: None,
) -> SessionStore:
    """The saved row of a store; parameters that are not given stay unchanged. The main store's come from the settings.

    `options` are the settings of the kind. Raises AttachRefused when a value is invalid, or would move an attached
    store to another place; if it `must_be_new`, also when there is one of this name, or is by now; and what `check`
    raises, which gets the row before it is saved.
    """
    if name == MAIN_STORE:
        if sessions_table or messages_table or timezone or options or kind not in ("", MAIN_KIND):
            raise AttachRefused(
                "The tables and the zone of main come from the environment: AGENT_SESSIONS_TABLE, AGENT_MESSAGES_TABLE"
                " and AGENT_TIMEZONE."
            )
        sessions_table, messages_table = settings.AGENT_SESSIONS_TABLE, settings.AGENT_MESSAGES_TABLE
        timezone = settings.AGENT_TIMEZONE
    store = SessionStore.objects.filter(name=name).first()
    if must_be_new and store:
        raise _name_taken(name)
    if store is None:
        if kind in ("", MAIN_KIND) and not ((sessions_table and messages_table) or options):
            raise AttachRefused(
                f"There is no store {name} yet: give its tables with --sessions-table and --messages-table."
            )
        store = SessionStore(name=name, kind=kind or MAIN_KIND)
    elif kind and kind != store.kind:
        raise AttachRefused(f"{name} is a store of the kind {store.kind}; use another name for one of kind {kind}.")
    before = _place_of(store)
    _put_into(store, options or {}, sessions_table=sessions_table, messages_table=messages_table, timezone=timezone)
    store.fence_mode = mode or store.fence_mode
    store.agent_roles = list(agent_roles) or store.agent_roles
    if store.attached_at and before != _place_of(store):
        _refuse_to_move(store, *before)
    _refuse_nonsense(store)
    _refuse_place_of_another(store)
    check(store)
    _save(store)
    return store


def _save(store: SessionStore) -> None:
    """Records it in the log, unless nothing changed. Raises AttachRefused when the name was taken meanwhile."""
    try:
        with transaction.atomic(), audit.recording(audit_events.STORE_DECLARED) as event:
            event.is_void = not _is_changed(store)
            store.save()
            event.target = store
    except IntegrityError as problem:
        if store.pk is not None or not isinstance(problem.__cause__, UniqueViolation):
            raise
        raise _name_taken(store.name) from problem


def restore_declaration(before: SessionStore) -> None:
    """Gives a store the parameters back that it had before `declare_store`."""
    with transaction.atomic(), audit.recording(audit_events.STORE_DECLARED) as event:
        event.target, event.is_void = before, not _is_changed(before)
        before.save(update_fields=DECLARED)


def store_like(
    name: str,
    kind: str,
    *,
    options: Mapping[str, str],
    sessions_table: str = "",
    messages_table: str = "",
    timezone: str = "",
) -> SessionStore:
    """The row of a store as `declare_store` would make it; not saved. Raises AttachRefused for invalid values."""
    store = SessionStore(name=name, kind=kind)
    _put_into(store, options, sessions_table=sessions_table, messages_table=messages_table, timezone=timezone)
    _refuse_nonsense(store)
    return store


def _place_of(store: SessionStore) -> tuple[str, str, dict[str, Any]]:
    return store.sessions_table, store.messages_table, store.options


def _put_into(
    store: SessionStore, options: Mapping[str, str], *, sessions_table: str, messages_table: str, timezone: str
) -> None:
    """Sets the given parameters only. Raises AttachRefused."""
    store.options = _checked_options(store, options)
    store.sessions_table = sessions_table or store.sessions_table
    store.messages_table = messages_table or store.messages_table
    store.writer_timezone = timezone or store.writer_timezone


def _refuse_to_move(
    store: SessionStore, sessions_table: str, messages_table: str, options: Mapping[str, str]
) -> NoReturn:
    place = " and ".join(map(str, options.values() or (sessions_table, messages_table)))
    raise AttachRefused(
        f"The store {store} is attached to {place}. Run attach_store {store} --remove before it moves to another place."
    )


def _name_taken(name: str) -> AttachRefused:
    return AttachRefused(f"There is already a store {name}.")


def _checked_options(store: SessionStore, given: Mapping[str, str]) -> dict[str, Any]:
    """The validated options of the kind's form. Raises AttachRefused with the form's errors."""
    if store.kind not in kinds():
        raise AttachRefused(f"There is no kind of store {store.kind!r}; choose one of {', '.join(sorted(kinds()))}.")
    kind = kind_of(store)
    if unknown := sorted(set(given) - set(kind.setting_names)):
        wanted = f"its settings are {', '.join(kind.setting_names)}" if kind.setting_names else "it has none"
        raise AttachRefused(f"A store of the kind {kind.name} has no setting {unknown[0]}; {wanted}.")
    form = kind.form({**store.options, **given})
    if not form.is_valid():
        sentences = [f"{name}: {' '.join(map(str, problems))}" for name, problems in form.errors.items()]
        raise AttachRefused(" ".join(sentences).replace("__all__: ", ""))
    return dict(form.cleaned_data)


def _refuse_place_of_another(store: SessionStore) -> None:
    """Two stores in one place would list each session twice, and erase it in one of them only. A detached one has
    given its place up.
    """
    others = SessionStore.objects.exclude(name=store.name).filter(options=store.options) if store.options else []
    for other in others:
        tables = (other.sessions_table, other.messages_table)
        is_here = not kind_of(store).has_tables or tables == (store.sessions_table, store.messages_table)
        if is_here and other.attached_at:
            raise AttachRefused(f"The store {other} already uses this location.")


def _is_changed(store: SessionStore) -> bool:
    saved = SessionStore.objects.filter(pk=store.pk).values().first()
    return saved != {field.attname: getattr(store, field.attname) for field in store._meta.concrete_fields}


def check_unneeded(store: SessionStore) -> None:
    """Raises StoreStillNeeded when a store may not be deleted."""
    if store.attached_at:
        raise StoreStillNeeded(f"The store {store} is attached. Run attach_store {store} --remove first.")
    if store.sessions.exists():
        raise StoreStillNeeded(
            f"The store {store} still has session records, or the fences of erased ones. It was not deleted."
        )


@transaction.atomic
def delete_store(store: SessionStore, *, by: User | None = None, why: audit.Why = audit.UNSAID) -> None:
    """Deletes a store without session records, and its patterns. Raises StoreStillNeeded."""
    check_unneeded(SessionStore.objects.select_for_update().get(pk=store.pk))
    audit.record(audit_events.STORE_DELETED, by=by, target=store, reason_code=why.code, details=why.details)
    store.delete()


def _refuse_nonsense(store: SessionStore) -> None:
    for table in (store.sessions_table, store.messages_table):
        if not all(table.split(".")) or table.count(".") > 1:
            raise AttachRefused(f"{table!r} is not a table name; use table, or schema.table.")
    for role in store.agent_roles:
        # PostgreSQL truncates longer ones, and then they name another role.
        if len(role.encode(errors="surrogatepass")) > ROLE_NAME_BYTES:
            raise AttachRefused(f"{role!r} is not a role of PostgreSQL: a name has {ROLE_NAME_BYTES} bytes at most.")
    try:
        zoneinfo.ZoneInfo(store.writer_timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        raise AttachRefused(f"{store.writer_timezone!r} is not a time zone such as Europe/Riga.") from None
    try:
        store.full_clean(validate_unique=False)
    except ValidationError as problem:
        raise AttachRefused(" ".join(problem.messages)) from None
