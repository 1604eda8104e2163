"""Sessions of a store with items that cannot be read, as their last inspection found them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.template.defaultfilters import pluralize
from django.urls import reverse

from sessions_app.models import SessionFinding, SessionRecord, SessionStore
from sessions_app.timeline.findings import FindingCode, title_of

NEWEST = 1_000
"""Number of a store's newest sessions that are counted: all of millions would take too long."""

UNREADABLE = (FindingCode.UNDECODABLE, FindingCode.UNREADABLE_TIME)


@dataclass(frozen=True, slots=True)
class UnreadableSessions:
    """Sessions with a finding, among the newest of their store."""

    code: FindingCode
    records: Collection[UUID]
    """The ids of their registry rows, which are no text of agents."""

    @property
    def page(self) -> str:
        """The address of one of them."""
        return reverse("sessions:timeline", args=[min(self.records)])

    @property
    def sentence(self) -> str:
        count = len(self.records)
        return (
            f"Of the newest {NEWEST:,} sessions, {count:,} {pluralize(count, 'has,have')} items with the finding"
            f" \N{LEFT DOUBLE QUOTATION MARK}{title_of(self.code)}\N{RIGHT DOUBLE QUOTATION MARK}, such as {self.page}."
        )


def unreadable_hints(store: SessionStore) -> list[str]:
    return [found.sentence for found in unreadable_sessions(store)]


def unreadable_sessions(store: SessionStore) -> list[UnreadableSessions]:
    """One for each finding that there is. One query, along indexes; a session counts once it was inspected."""
    if store.pk is None:
        return []
    newest = SessionRecord.objects.on_record().filter(store=store).newest_first()[:NEWEST]
    with_findings = SessionRecord.objects.filter(pk__in=newest.values("pk"), finding_count__gt=0)
    rows = SessionFinding.objects.filter(record_id__in=with_findings.values("pk"), kind__in=UNREADABLE)
    found: dict[str, set[UUID]] = {}
    for kind, record_id in rows.values_list("kind", "record_id").distinct():
        found.setdefault(kind, set()).add(record_id)
    return [UnreadableSessions(code, found[code]) for code in UNREADABLE if code in found]
