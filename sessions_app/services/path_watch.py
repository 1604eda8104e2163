"""Watched paths: a path with `*` of which every file or folder becomes a store, also later ones, by a job."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from glob import iglob
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import Error, transaction
from django.template.defaultfilters import pluralize
from django.utils.text import slugify
from django.utils.timezone import now

from memadmin import audit
from sessions_app import audit_events, registry
from sessions_app.models import SessionStore, WatchedPath
from sessions_app.services.connecting import connect_store
from sessions_app.services.store_config import store_like
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.kinds import kinds

logger = logging.getLogger(__name__)

MOST_STORES = 1_000
"""Most stores of one watched path: a path that matches more matches other files than agents' stores."""

CONNECTED_AT_ONCE = 100
"""Most new places tried at a time, because a user may wait for it; the next look takes the next ones."""

LONGEST_NAME = 40

TRIED_AGAIN_AFTER = timedelta(minutes=5)

BESIDE_SQLITE = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside its own."""


@dataclass
class PathWatchResult:
    """Result of checking a watched path, by the paths of files or folders."""

    connected: list[SessionStore] = field(default_factory=list)
    """The new ones."""
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons why places cannot be connected: those tried now and those tried before."""
    places: int = 0
    """All places that the path matches, connected or not."""
    waiting: int = 0
    """Number left for the next check."""
    left_out: int = 0
    """Beyond MOST_STORES."""


def may_be_watched(options: Mapping[str, Any]) -> bool:
    """True if the path among a store's settings matches several places."""
    return "*" in str(options.get("path", ""))


def checked_path(name: str, kind: str, *, options: Mapping[str, str], **tables: str) -> WatchedPath:
    """The row of a watched path, not saved. `tables` are those of `declare_store`, and the zone.

    The existing row if it is the same. Raises AttachRefused.
    """
    if kind not in kinds() or not kinds()[kind].watched_field:
        raise registry.AttachRefused(f"A store of the kind {kind or registry.MAIN_KIND} is not a file or folder.")
    like = store_like(name, kind, options=options, **tables)
    if len(name) > LONGEST_NAME:
        raise registry.AttachRefused(
            f"The names of its stores begin with this name: use at most {LONGEST_NAME} characters."
        )
    if SessionStore.objects.filter(name=name).exists():
        raise registry.AttachRefused(f"There is already a store {name}; give the watched path another name.")
    fields = ("name", "kind", "options", "sessions_table", "messages_table", "writer_timezone")
    watched = WatchedPath(**{name: getattr(like, name) for name in fields})
    existing = WatchedPath.objects.filter(name=name).first()
    if existing is None:
        return watched
    if any(getattr(existing, name) != getattr(watched, name) for name in fields):
        raise registry.AttachRefused(
            f"There is already a watched path {name}, for {existing.path}. Remove it first, or use another name."
        )
    return existing


@transaction.atomic
def watch_path(
    name: str, kind: str, *, options: Mapping[str, str], by: User | None = None, **tables: str
) -> WatchedPath:
    """Saves a watched path and returns it. Connects nothing yet. Raises AttachRefused."""
    watched = checked_path(name, kind, options=options, **tables)
    if watched.pk is None:
        with audit.recording(audit_events.WATCHED_PATH_ADDED, by=by) as event:
            watched.save()
            event.target = watched
    return watched


@transaction.atomic
def stop_watching(watched: WatchedPath, *, by: User | None = None) -> None:
    """Removes a watched path; its stores stay. Safe to repeat."""
    if WatchedPath.objects.select_for_update().filter(pk=watched.pk).exists():
        audit.record(audit_events.WATCHED_PATH_REMOVED, by=by, target=watched)
        WatchedPath.objects.filter(pk=watched.pk).delete()


def watched_paths() -> list[WatchedPath]:
    """All watched paths with their last results; none if they cannot be read."""
    try:
        with transaction.atomic():
            return list(WatchedPath.objects.all())
    except Error:
        return []


def about(watched: WatchedPath) -> str:
    """Result of the last look, as the second half of a sentence."""
    if watched.looked_at is None:
        return "not checked yet."
    found = watched.found
    what = "folder" if is_folder(watched) else "file"
    parts = [f"{found['places']:,} {what}{pluralize(found['places'])}"]
    parts += [f"{len(watched.refused):,} not connected"] if watched.refused else []
    parts += [f"{found['waiting']:,} to be connected within minutes"] if found["waiting"] else []
    if left := found["left_out"]:
        parts.append(
            f"{left:,} left out, because one path can have {MOST_STORES:,} stores at most; use several narrower paths"
        )
    return f"{', '.join(parts)}."


def look_for_new_stores() -> None:
    """Connects new places of every watched path, in the background."""
    for watched in WatchedPath.objects.all():
        try:
            connect_new_places(watched, most=CONNECTED_AT_ONCE)
        except StoreUnavailable:
            logger.warning("watched path %s is checked again when the database responds", watched.pk)


def check_now(watched: WatchedPath, *, by: User) -> PathWatchResult:
    """Connects new places of one watched path at a user's request; refused places are tried again at once."""
    audit.record_alone(audit_events.WATCHED_PATH_ASKED, by=by, target=watched)
    return connect_new_places(watched, most=CONNECTED_AT_ONCE, tries_again=True)


def connect_new_places(
    watched: WatchedPath,
    *,
    most: int | None = None,
    tries_again: bool = False,
    report: Callable[[SessionStore], None] = lambda store: None,
) -> PathWatchResult:
    """Connects new places of a watched path, at most `most`, and records those that cannot be connected.

    A refused place is tried again when TRIED_AGAIN_AFTER is over: so a job rarely asks a wrong file, and writes
    nothing about it to the log. The store of a place that vanished stays, and is down.
    """
    look = PathWatchResult(refused=watched.refused)
    is_time = tries_again or watched.tried_at is None or now() - watched.tried_at > TRIED_AGAIN_AFTER
    new = list(_unconnected(watched, look))
    look.refused = {path: look.refused[path] for path in new if path in look.refused}
    unseen = [path for path in new if path not in look.refused]
    tried = [*unseen[:most], *(look.refused if is_time else ())]
    for path, name in _named(watched, tried):
        look.refused.pop(path, None)
        try:
            store = connect_store(name, kinds()[watched.kind], options=_options(watched, path), **_tables(watched))
        except (registry.AttachRefused, StoreUnavailable) as refusal:
            look.refused[path] = str(refusal)
        else:
            look.connected.append(store)
            report(store)
    look.waiting = len(unseen) - len(unseen[:most])
    _note(watched, look, tried_again=is_time)
    return look


def planned_stores(watched: WatchedPath) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, path and `declare_store` parameters of the stores that `connect_new_places` would connect."""
    for path, name in _named(watched, list(_unconnected(watched, PathWatchResult()))):
        yield name, path, {"kind": watched.kind, "options": _options(watched, path), **_tables(watched)}


def _unconnected(watched: WatchedPath, look: PathWatchResult) -> Iterator[str]:
    """Matched places that are no store of this kind with these settings, by name. One query."""
    if watched.kind not in kinds():
        return  # a user's own database, which is not there any more
    places = _places(watched)
    connected = {
        store.options.get("path")
        for store in SessionStore.objects.filter(kind=watched.kind)
        if store.options == _options(watched, store.options.get("path", ""))
        and (not kinds()[watched.kind].has_tables or _tables_of(store) == _tables_of(watched))
    }
    unconnected = [path for path in places if path not in connected]
    room = max(0, MOST_STORES - (len(places) - len(unconnected)))
    look.places, look.left_out = len(places), len(unconnected[room:])
    yield from unconnected[:room]


def _places(watched: WatchedPath) -> list[str]:
    """Absolute paths of the existing files or folders, at most ten times as many as may be connected."""
    is_place = os.path.isdir if is_folder(watched) else os.path.isfile
    found = (path for path in iglob(watched.path, recursive=True) if is_place(path) and not _is_beside(path))
    return sorted({_readable(os.path.realpath(path)) for path in islice(found, 10 * MOST_STORES)})


def is_folder(watched: WatchedPath) -> bool:
    """True if its stores are folders; else they are files."""
    setting = kinds()[watched.kind].watched_field if watched.kind in kinds() else None
    return setting is not None and setting.is_folder


def _is_beside(path: str) -> bool:
    return any(path.endswith(end) and os.path.isfile(path.removesuffix(end)) for end in BESIDE_SQLITE)


def _readable(path: str) -> str:
    """The path as text that a database accepts; such a file does not exist then, and is refused for that."""
    return os.fsencode(path).decode("utf-8", "replace")


def _named(watched: WatchedPath, paths: list[str]) -> Iterator[tuple[str, str]]:
    """Places with the names of their stores: after the file; if that is taken after its folder, too, or numbered."""
    taken = {watched.name, *SessionStore.objects.values_list("name", flat=True)}
    for path in paths:
        place = Path(path)
        own = place.name if place.suffix and os.path.isdir(path) else place.stem
        names = (slugify(f"{watched.name}-{part}")[:64] for part in (own, f"{place.parent.name}-{own}"))
        numbered = (f"{slugify(f'{watched.name}-{own}')[:58]}-{number}" for number in count(2))
        name = next(name for name in chain(names, numbered) if name not in taken)
        taken.add(name)
        yield path, name


def _options(watched: WatchedPath, path: str) -> dict[str, Any]:
    return {**watched.options, "path": path}


def _tables(watched: WatchedPath) -> dict[str, str]:
    return {
        "sessions_table": watched.sessions_table,
        "messages_table": watched.messages_table,
        "timezone": watched.writer_timezone,
    }


def _tables_of(row: SessionStore | WatchedPath) -> tuple[str, str]:
    return row.sessions_table, row.messages_table


def _note(watched: WatchedPath, look: PathWatchResult, *, tried_again: bool) -> None:
    watched.looked_at = now()
    watched.tried_at = watched.looked_at if tried_again else watched.tried_at
    watched.found = {
        "places": look.places,
        "waiting": look.waiting,
        "left_out": look.left_out,
        "refused": look.refused,
    }
    # Not `save`: the row may have been removed meanwhile, and must not come back.
    WatchedPath.objects.filter(pk=watched.pk).update(
        looked_at=watched.looked_at, tried_at=watched.tried_at, found=watched.found
    )
