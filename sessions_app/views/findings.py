"""Links to the findings of a session, beside its timeline."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.models import SessionFinding, SessionRecord
from sessions_app.timeline import title_of

FINDINGS_LISTED = 100


@dataclass(frozen=True, slots=True)
class FindingLink:
    """A finding of the last inspection: its item and its title."""

    item_id: str
    title: str


def findings_of(record: SessionRecord) -> list[FindingLink]:
    """Findings of a session in the order of its items, at most FINDINGS_LISTED. One query if there are any."""
    if not record.finding_count:
        return []
    rows = SessionFinding.objects.filter(session_id=record.session_id, record_id=record.pk).order_by("pk")
    return [FindingLink(row.item_id, title_of(row.kind)) for row in rows[:FINDINGS_LISTED]]


def next_finding(findings: list[FindingLink], target: str) -> FindingLink | None:
    """The finding after the one at the selected item, and after the last the first; None without findings."""
    if not findings:
        return None
    places = [finding.item_id for finding in findings]
    return findings[(places.index(target) + 1) % len(findings)] if target in places else findings[0]
