"""Common parts of the targets of sessions and of items: their rows are records of sessions, at stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet, Value

from memadmin.retention.models import UnfinishedExpiry
from memadmin.retention.policies.rules import Facts, Rule, pattern_regex
from memadmin.retention.targets.base import (
    CannotSweep,
    KeptReason,
    RetentionTarget,
    first_kind,
    held_session_q,
    subject_kind_q,
)
from memadmin.retention.targets.registry_rows import StillActive
from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.registry.stores import MAIN_KIND, has_fence
from sessions_app.services.discovery import discover_changes
from sessions_app.stores.base import Backend, Capability

LIVE = timedelta(hours=1)
"""A session with activity in this time is in use, whatever the policy says."""

BEING_ERASED = Q(is_forgotten=True) | Q(subject__erased_at__isnull=False)
"""Condition of sessions that an erasure has taken over, or has erased."""

ZONE_PROBLEMS = ("wrong-zone", "zone-differs")
"""Codes of health problems because of which the age of sessions and items is not known."""

CLOCKS = {"last_activity": "last_activity_at", "created": "registered_at"}
"""Columns of the clocks of sessions."""

CLOCK_DIFFERENCE = timedelta(minutes=1)
"""By which times of a store and of its registry row may differ without activity between them."""

CONDITIONS: Mapping[str, Callable[[Any], Q]] = {
    "store": lambda name: Q(store__name=name),
    "session_pattern": lambda pattern: Q(session_id__regex=f"^{pattern_regex(pattern)}$"),
    "agent": lambda name: Q(agent=name),
    "label": lambda label: Q(labels__contains=[label]),
    "subject_kind": subject_kind_q,
    "is_encrypted": lambda is_encrypted: Q(is_encrypted=is_encrypted),
}


class RecordTarget(RetentionTarget):
    """A target whose rows are records of sessions."""

    unit = "sessions"
    conditions = CONDITIONS

    def rows(self) -> QuerySet[SessionRecord]:
        return SessionRecord.objects.on_record().filter(is_forgotten=False)

    def held(self) -> Q:
        return held_session_q()

    def live(self, at: Any) -> Q:
        return Q(last_activity_at__gt=at - Value(LIVE))

    def facts(self, row: SessionRecord, holds: Sequence[int] = ()) -> Facts:
        """Two queries at most, unless store and subject are loaded."""
        return Facts(
            target=self.name,
            scope={
                "store": row.store.name,
                "session_pattern": row.session_id,
                "agent": row.agent,
                "label": list(row.labels),
                "subject_kind": first_kind(row.subject),
                "is_encrypted": row.is_encrypted,
            },
            clocks={name: getattr(row, column) for name, column in CLOCKS.items()},
            holds=holds,
        )

    def places(self, rule: Rule) -> list[str]:
        return names_of_stores(rule, attached_at__isnull=False)

    def detached_places(self, rule: Rule) -> list[str]:
        return names_of_stores(rule, attached_at__isnull=True)

    def at_place(self, rows: QuerySet[Any], place: str) -> QuerySet[Any]:
        return rows.filter(store=SessionStore.objects.filter(name=place).values("pk")[:1])

    def begin(self, place: str) -> None:
        """Checks the time zone, and looks through a store without triggers, so that recent activity is known."""
        store = store_named(place)
        if store.attached_at is None:
            raise CannotSweep(f"{store.name}: {KeptReason.SENTENCES[KeptReason.DETACHED]}")
        if not has_fence(store):
            # It finds times in another zone, too.
            discover_changes(store)
        for problem in registry.check(store).problems:
            if problem.code in ZONE_PROBLEMS:
                raise CannotSweep(f"Nothing expires in {store.name}: its times are not certain. {problem.sentence}")
        taken_over = SessionRecord.objects.filter(BEING_ERASED).values("pk")
        UnfinishedExpiry.objects.filter(record_id__in=taken_over).delete()


def names_of_stores(rule: Rule, **condition: bool) -> list[str]:
    stores = SessionStore.objects.filter(**condition)
    if "store" in rule.scope:
        stores = stores.filter(name=rule.scope["store"])
    return sorted(stores.values_list("name", flat=True))


def store_named(name: str) -> SessionStore:
    """Raises CannotSweep if it was removed, or has another name, since the run began."""
    store = SessionStore.objects.filter(name=name).first()
    if store is None:
        raise CannotSweep(f"The store {name} was removed or renamed.")
    return store


def agents_tables(store: SessionStore, *, items: int, sessions: int = 0) -> dict[str, int]:
    """Rows deleted or changed in the agents' tables, by table; empty where these are in another system."""
    counts = {store.messages_table: items, store.sessions_table: sessions} if store.kind == MAIN_KIND else {}
    return {table: count for table, count in counts.items() if count}


def refuse_unseen_activity(backend: Backend, record: SessionRecord) -> None:
    """Raises StillActive if an agent wrote to a session since it was last discovered: no trigger tells of it.

    One request, which cannot close the moment until the deletion.
    """
    if has_fence(record.store):
        return
    found = backend.look_up([record.session_id]).get(record.session_id)
    if found and found.mark:
        if found.change_mark != record.change_mark:
            raise StillActive
    elif found and Capability.ITEM_TIMES in backend.capabilities:
        newest = [item.written_at for item in backend.last_page(record.session_id, 1).items if item.written_at]
        if newest and newest[0] > record.last_activity_at + CLOCK_DIFFERENCE:
            raise StillActive
