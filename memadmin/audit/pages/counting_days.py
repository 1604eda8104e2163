"""Audit events per day and kind, for the chart of the home page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from django.db import connection

from memadmin.audit.log import event_names, types
from memadmin.audit.models import AuditEvent, Outcome
from memadmin.home.day_counts import counts_days_of

EVENTS = "events"
"""Name of the series; its parts are the kinds."""

READS, ACTIONS, ROWS, DENIED = "reads", "actions", "rows", "denied"

# For each type the range of one index, without a look at the rows: a GROUP BY would read every event of the day.
BY_TYPE = """
SELECT type, (SELECT count(*) FROM audit_event WHERE type = named.type AND at >= %s AND at < %s)
FROM unnest(%s::text[]) AS named(type)
"""


@counts_days_of(EVENTS)
def events_of_day(begin: datetime, end: datetime) -> Mapping[str, int]:
    """Events by kind: reads, actions, changed rows; and denied or failed ones, which are in no other kind. Two queries:
    ranges of the indexes on type and outcome.
    """
    names = [event_type.name for event_type in types.declared()]
    with connection.cursor() as cursor:
        cursor.execute(BY_TYPE, [begin, end, names])
        by_type = dict(cursor.fetchall())
    refused = AuditEvent.objects.filter(at__gte=begin, at__lt=end).exclude(outcome=Outcome.SUCCEEDED)
    without_success = Counter(refused.values_list("type", flat=True))
    counts = Counter[str]()
    for name, count in by_type.items():
        counts[kind_of(name)] += count - without_success[name]
        counts[DENIED] += without_success[name]
    return {kind: count for kind, count in counts.items() if count}


def kind_of(event_type: str) -> str:
    if event_names.is_read(event_type):
        return READS
    return ROWS if event_names.is_row(event_type) else ACTIONS
