"""Figures of the simulator that previews do not have: items by their age, sessions with the oldest, and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Func, IntegerField, QuerySet, Sum

from memadmin.retention.policies.preview import BUCKETS, DAYS_A_BUCKET, SAMPLES, Bucket, PolicyPreview
from memadmin.retention.policies.rules import Rule
from memadmin.retention.sweep.tables import sizes_of
from memadmin.retention.targets.base import target_named
from memadmin.retention.targets.due_rows import DueRows, database_time
from memadmin.retention.targets.item_expiry import ItemExpiry, NoTime
from memadmin.runs.engine import stop_if_asked
from sessions_app.encryption.purging import encrypted_or_written_at
from sessions_app.items import StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores.base import StoreUnavailable

MOST_LOOKED_AT = 200
"""Sessions of which the first item is read, at each place."""

MOST_READ = 25
"""Sessions of which all items are read, at each place."""


@dataclass
class ItemFigures:
    """Figures about items of the oldest sessions at each place. No content."""

    kept: Counter[int] = field(default_factory=Counter)
    taken: Counter[int] = field(default_factory=Counter)
    held: Counter[int] = field(default_factory=Counter)
    """Numbers of items by the number of their bucket."""
    byte_count: int = 0
    """Stored bytes of the items that would go."""
    samples: list[tuple[datetime, SessionRecord]] = field(default_factory=list)
    """Sessions of which items would go, with the time of the oldest, oldest first."""
    is_complete: bool = True
    """Whether all sessions were read that could have such items."""

    @property
    def buckets(self) -> list[Bucket]:
        """Empty if no item was read: there is nothing to draw."""
        if not (self.kept or self.taken or self.held):
            return []
        return [
            Bucket(
                days=number * DAYS_A_BUCKET, kept=self.kept[number], taken=self.taken[number], held=self.held[number]
            )
            for number in range(BUCKETS)
        ]


def item_figures(counted: PolicyPreview, rules: Sequence[Rule]) -> ItemFigures:
    """Figures of a counted rule about items. Reads at most MOST_READ sessions at each place, and as many that are held.

    A store that cannot change items, or does not respond, has none: the preview says so.
    """
    rule, due, found = counted.rule, DueRows(rules, database_time()), ItemFigures()
    target = target_named(rule.target)
    for place in counted.places:
        if not place.rows and place.problem:
            continue
        for rows, goes in ((due.due(rule), found.taken), (due.held(rule), found.held)):
            try:
                add_place(found, goes, due, rule, target.at_place(rows, place.place))
            except StoreUnavailable:
                found.is_complete = False
    found.samples = sorted(found.samples, key=lambda sample: sample[0])[:SAMPLES]
    return found


def add_place(found: ItemFigures, goes: Counter[int], due: DueRows, rule: Rule, rows: QuerySet[SessionRecord]) -> None:
    read = 0
    for number, record in enumerate(rows.select_related("store").order_by("registered_at", "pk")[: MOST_LOOKED_AT + 1]):
        stop_if_asked()
        if number == MOST_LOOKED_AT or read == MOST_READ:
            found.is_complete = False
            return
        items, gone = items_of(due, rule, record)
        read += bool(items)
        times = []
        for item in items:
            written_at = encrypted_or_written_at(item)
            if written_at is None or due.at is None:
                continue
            age = max(due.at - written_at, timedelta())
            bucket = min(age // timedelta(days=DAYS_A_BUCKET), BUCKETS - 1)
            (goes if item.id in gone else found.kept)[bucket] += 1
            if item.id in gone and goes is found.taken:
                found.byte_count += item.byte_count
                times.append(written_at)
        if times:
            found.samples.append((min(times), record))


def items_of(due: DueRows, rule: Rule, record: SessionRecord) -> tuple[list[StoredItem], set[str]]:
    """All items of a session, and the ids of those that the rule takes; none of a session without such items."""
    if due.at is None:
        return [], set()
    expiry = ItemExpiry(record.store, record, rule, due.rules, due.at)
    try:
        if not expiry.is_old():
            return [], set()
    except NoTime:
        return [], set()
    expiry.learn()
    items = list(expiry.every_item())
    changes = expiry.changes_of(items)
    return items, {*changes.gone, *changes.texts}


# --- bytes ------------------------------------------------------------------------------------------------------------

MEASURED = ("memories", "proposals", "signals", "recalls", "audit_details")
"""Targets whose rows are in the console's own tables, with all that goes with them in these rows."""


ROW_HEADER = 24
"""Bytes of a stored row besides its columns."""


class StoredSize(Func):
    """Bytes of a value as it is stored, compressed or not."""

    function = "pg_column_size"
    output_field = IntegerField()


def bytes_of_rows(rule: Rule, rules: Sequence[Rule]) -> int | None:
    """Bytes of the rows that would go, as they are stored; None for other targets. One query, which reads no long text.

    Column by column: of a whole row PostgreSQL would read the long values, which it keeps elsewhere, for their size.
    """
    if rule.target not in MEASURED:
        return None
    rows: QuerySet[Any] = DueRows(rules).due(rule)
    columns = [StoredSize(field.attname) for field in rows.model._meta.concrete_fields]
    sums = rows.aggregate(rows=Count("pk"), **{f"size_{number}": Sum(size) for number, size in enumerate(columns)})
    return ROW_HEADER * int(sums.pop("rows")) + sum(int(size or 0) for size in sums.values())


def bytes_of_sessions(counted: PolicyPreview) -> tuple[int | None, bool]:
    """About how many bytes the items of whole sessions take, and whether that is all of them.

    By the average of their table, from statistics: None if these do not say, and without stores elsewhere. Two queries,
    none of which reads a table.
    """
    places = {place.place: place.items for place in counted.places if place.items}
    stores = SessionStore.objects.in_this_database().filter(name__in=places)
    tables = {store.messages_table: places[store.name] or 0 for store in stores}
    sizes = [size for size in sizes_of(tables) if size.live]
    known = sum(int(tables[size.name] * size.size / size.live) for size in sizes)
    return known if sizes or not places else None, len(sizes) == len(places)
