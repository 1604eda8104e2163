"""Target: details of audit events. The events stay: they contain no personal data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from memadmin.audit.log.erasing import ErasureReason, erase_details_of
from memadmin.audit.models import AuditDetail
from memadmin.retention.policies.rules import Action, Facts, Rule
from memadmin.retention.targets.base import IsHeldRecord, IsHeldSubject, held_session_q, register
from memadmin.retention.targets.memories import RowTarget
from sessions_app.models import SessionRecord


@register
class AuditDetailTarget(RowTarget):
    name = "audit_details"
    title = "Details of audit events"
    unit = "events"
    actions = (Action.DELETE,)
    clocks: ClassVar = {"created": "time of the event"}
    conditions: ClassVar = {}  # type: ignore[misc]
    subject = ""
    remarks = "Reasons and values beside the log. The events themselves stay, and prove what happened."

    def rows(self) -> QuerySet[AuditDetail]:
        return AuditDetail.objects.all()

    def clock(self, name: str) -> F:
        return F("event__at")

    def held(self) -> Q:
        sessions = SessionRecord.objects.filter(held_session_q(), pk=OuterRef("event__object_ref"))
        return Q(IsHeldRecord(F("event__object_ref"))) | Q(IsHeldSubject(F("event__subject_ref"))) | Q(Exists(sessions))

    def facts(self, row: Any, holds: Sequence[int] = ()) -> Facts:
        return Facts(target=self.name, scope={}, clocks={"created": row.event.at}, holds=holds)

    def expire(self, rule: Rule, rows: QuerySet[Any]) -> dict[str, int]:
        keys = list(rows.values_list("pk", flat=True))
        return {"audit_detail": erase_details_of(keys, reason=ErasureReason.NOT_NEEDED)} if keys else {}
