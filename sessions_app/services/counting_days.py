"""Sessions and items per day and store, for the charts of the home page.

Sessions are counted by an index on the time of their registration. Items are in the agents' tables, whose times have no
index: an inspection, which reads a session anyway, adds those that it sees for the first time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce

from memadmin.home.day_counts import add_to_days, counts_days_of
from sessions_app.items import StoredItem
from sessions_app.models import SessionRecord, SessionStore

SESSIONS, ITEMS = "sessions", "items"
"""Names of the series; their parts are the keys of stores."""


@counts_days_of(SESSIONS, has_late_rows=True)
def sessions_of_day(begin: datetime, end: datetime) -> Mapping[str, int]:
    """Sessions that were registered in this time, by store, erased ones included. One query: a range of an index for
    each store.
    """
    registered = SessionRecord.objects.filter(
        store=OuterRef("pk"), registered_at__gte=begin, registered_at__lt=end
    ).order_by()
    count = Subquery(registered.values("store").annotate(count=Count("pk")).values("count"))
    stores = SessionStore.objects.order_by().values_list("pk", Coalesce(count, 0))
    return {str(store): count for store, count in stores if count}


class ItemDays:
    """Days of the items of a session that were not counted before. Feed it all items, in order."""

    def __init__(self, record: SessionRecord) -> None:
        self._counted_before = record.counted_items
        # An item without a time of its own was written at the last activity, at the latest.
        self._otherwise = day_of(record.last_activity_at)
        self.item_count = 0
        self._days = Counter[date]()

    def feed(self, items: Iterable[StoredItem]) -> None:
        for item in items:
            self.item_count += 1
            if self.item_count > self._counted_before:
                self._days[day_of(item.written_at) if item.written_at else self._otherwise] += 1

    def save(self, current: SessionRecord) -> None:
        """Adds the days to the counts, unless another inspection was faster. In the caller's transaction, with the row
        of the session locked; the caller saves `item_count` in it.
        """
        if current.counted_items == self._counted_before:
            add_to_days(ITEMS, str(current.store_id), self._days)


def day_of(instant: datetime) -> date:
    return instant.astimezone(UTC).date()
