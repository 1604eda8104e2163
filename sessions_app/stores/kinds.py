"""Registry of store kinds: each is a module with a `KIND`, built in or named in MEMADMIN_STORE_KINDS.

`docs/own-kind.md` describes such a module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from django import forms
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from sessions_app.stores.base import Backend, Branch, Branching, Capability, Readable, StoreUnavailable

if TYPE_CHECKING:
    from sessions_app.models import SessionStore

BUILT_IN = (
    "sessions_app.stores.sqlalchemy.backend.KIND",
    "sessions_app.stores.remote_sql.backend.KIND",
    "sessions_app.stores.sqlite.backend.KIND",
    "sessions_app.stores.sqlite.advanced.KIND",
    "sessions_app.stores.redis.backend.KIND",
    "sessions_app.stores.json_file.backend.KIND",
    "sessions_app.stores.openai_conversations.backend.KIND",
    "sessions_app.stores.mongodb.backend.KIND",
    "sessions_app.stores.dapr.backend.KIND",
    "sessions_app.stores.agno.backend.KIND",
    "sessions_app.stores.phidata.backend.KIND",
)


class NoSettings(forms.Form):
    """Empty form of a kind without settings."""


@dataclass(frozen=True)
class StoreKind:
    """A kind of store, with everything needed before a store of this kind is opened."""

    name: str
    """Identifier in the database and on the command line."""
    label: str
    icon: str
    """The name of a symbol in static/icons.svg."""
    open: Callable[[SessionStore], Backend]
    """Does not connect: the first call does. The drivers are imported here, not at the top of the file."""
    form: type[forms.Form] = NoSettings
    """Settings of a store of this kind. The cleaned values are kept as JSON in `SessionStore.options`."""
    has_tables: bool = False
    """Whether it uses sessions_table and messages_table."""
    has_zone: bool = False
    """Whether it may contain times in the writers' zone."""
    layouts: Sequence[str] = ()
    """Versions of the library whose layout the kind reads, erases and expires, with what each adds to it."""
    limits: Sequence[str] = ()
    """Sentences about its limits besides the missing capabilities."""
    lacks: Mapping[Capability, str] = field(default_factory=dict)
    """Sentences about missing capabilities that replace the usual ones."""
    setting_names: Sequence[str] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "setting_names", tuple(self.form.base_fields))

    @property
    def watched_field(self) -> PathField | None:
        """The setting that may be a path with `*`, if the kind has one: each match is a store."""
        path = self.form.base_fields.get("path")
        return path if isinstance(path, PathField) else None

    def settings_of(self, store: SessionStore) -> list[tuple[str, str]]:
        """Settings of a store, as label and value, for display."""
        fields = self.form.base_fields
        return [
            (str(fields[name].label or name.replace("_", " ").capitalize()), str(value))
            for name, value in store.options.items()
            if name in fields and value not in (None, "")
        ]


class Missing:
    """Backend of a store of an unknown kind: every call raises StoreUnavailable."""

    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    def __getattr__(self, name: str) -> NoReturn:
        raise StoreUnavailable(
            f"The kind of store {self.store.kind} is not installed. Add its dotted path to MEMADMIN_STORE_KINDS."
        )


@cache
def kinds() -> Mapping[str, StoreKind]:
    """All kinds by name, built-in ones first. Raises ImproperlyConfigured for an invalid setting."""
    found: dict[str, StoreKind] = {}
    for path in (*BUILT_IN, *settings.STORE_KINDS):
        try:
            kind = import_string(path)
        except ImportError as problem:
            raise ImproperlyConfigured(f"MEMADMIN_STORE_KINDS: {path} cannot be imported: {problem}.") from problem
        if not isinstance(kind, StoreKind):
            raise ImproperlyConfigured(f"MEMADMIN_STORE_KINDS: {path} is not a StoreKind.")
        if kind.name in found:
            raise ImproperlyConfigured(f"MEMADMIN_STORE_KINDS: {path} is a second kind called {kind.name}.")
        found[kind.name] = kind
    return found


def kind_of(store: SessionStore) -> StoreKind:
    """The kind of a store; for an unknown kind a replacement whose stores are unavailable."""
    unknown = StoreKind(store.kind, f"unknown kind {store.kind}", "plug-connected-x", open=missing_backend)
    return kinds().get(store.kind, unknown)


def missing_backend(store: SessionStore) -> Backend:
    return cast(Backend, Missing(store))


def backend_for(store: SessionStore) -> Backend:
    """Backend of the store. Opens nothing: the first call does."""
    return kind_of(store).open(store)


def branching(store: SessionStore) -> Branching | None:
    """Backend of the store if its sessions have branches; None otherwise."""
    backend: Any = backend_for(store)
    return backend if Capability.BRANCHES in backend.capabilities else None


def on_branch(store: SessionStore, branch: Branch | None) -> Readable:
    """The store with one branch of each session; with all items if there is no branch."""
    if branch is None:
        return backend_for(store)
    backend = branching(store)
    assert backend, f"{store} has no branches"
    return backend.on_branch(branch)


def can(store: SessionStore, capability: Capability) -> bool:
    return capability in backend_for(store).capabilities


def lack_of(store: SessionStore, capability: Capability) -> str:
    """Sentence about a capability that a store does not have."""
    return kind_of(store).lacks.get(capability, capability.lack)


def limits_of(store: SessionStore) -> list[str]:
    """Limits of a store, as sentences."""
    missing = [each for each in Capability if each.lack and each not in backend_for(store).capabilities]
    return [*kind_of(store).limits, *(lack_of(store, each) for each in missing)]


# --- fields for the forms of kinds ------------------------------------------------------------------------------------


class PathField(forms.CharField):
    """Path of a file or folder on this machine. Its existence is part of the store's health."""

    def __init__(self, *, is_folder: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.is_folder = is_folder

    def clean(self, value: Any) -> str:
        text = str(super().clean(value))
        if text and not Path(text).is_absolute():
            raise forms.ValidationError(f"{text} is not an absolute path; begin it with /.")
        return str(Path(text).resolve()) if text else ""


class EnvironmentField(forms.CharField):
    """The name of an environment variable that holds a secret, or that with _FILE names the file with it.

    The secret itself is never stored; `secret_named` reads it whenever a store is connected.
    """

    def clean(self, value: Any) -> str:
        name = str(super().clean(value))
        if name and not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            raise forms.ValidationError(
                "Give the name of an environment variable, such as SUPPORT_REDIS_URL; the secret in it is not stored."
            )
        return name


def secret_named(store: SessionStore, option: str) -> str:
    """The value of the environment variable that an option names, or of the file that NAME_FILE names.

    Raises StoreUnavailable, with the variable's name and never its value.
    """
    name = str(store.options.get(option, ""))
    if value := os.environ.get(name, ""):
        return value
    if path := os.environ.get(f"{name}_FILE", ""):
        try:
            return Path(path).read_text().strip()
        except (OSError, ValueError) as problem:
            raise StoreUnavailable(f"The file that {name}_FILE names cannot be read.") from problem
    raise StoreUnavailable(f"The environment variable {name}, which {store} needs, is not set.")
