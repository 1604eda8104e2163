"""Target of retention policies: access copies, the exports of personal data that the console keeps as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import F, Q, QuerySet

from memadmin.erasure.access_copy.deleting import delete_copy
from memadmin.erasure.models import AccessCopy
from memadmin.retention.models import SweepResult
from memadmin.retention.policies.rules import Action, Facts, Rule
from memadmin.retention.targets.base import (
    IsHeldSubject,
    KeptReason,
    SweepChunk,
    first_kind,
    register,
    subject_kind_q,
)
from memadmin.retention.targets.due_rows import DueRows
from memadmin.retention.targets.memories import RowTarget


@register
class ExportTarget(RowTarget):
    name = "exports"
    title = "Access copies"
    unit = "copies"
    actions = (Action.DELETE,)
    clocks: ClassVar = {"created": "creation"}
    conditions: Mapping[str, Callable[[Any], Q]] = {
        "subject_kind": lambda kind: subject_kind_q(kind, "request__subject"),
    }
    subject = "request__subject"
    remarks = (
        "Finished copies for access requests: the file goes with its key. Their own lifetime"
        " (MEMADMIN_ACCESS_COPY_DAYS) ends them in any case, also under a hold: the data that was copied is kept."
    )

    def rows(self) -> QuerySet[AccessCopy]:
        """Finished copies; one that is being built belongs to its run."""
        return AccessCopy.objects.filter(state=AccessCopy.State.READY)

    def clock(self, name: str) -> F:
        return F("created_at")

    def held(self) -> Q:
        return Q(IsHeldSubject(F("request__subject_id")))

    def facts(self, row: AccessCopy, holds: Sequence[int] = ()) -> Facts:
        """Three queries at most."""
        return Facts(
            target=self.name,
            scope={"subject_kind": first_kind(row.request.subject)},
            clocks={"created": row.created_at},
            holds=holds,
        )

    def expire_chunk(self, due: DueRows, rule: Rule, result: SweepResult, *, at_most: int) -> SweepChunk:
        """Deletes copies one by one: each locks its request first, as people's actions do."""
        rows = due.due(rule)
        if result.cursor:
            rows = rows.filter(pk__gt=result.cursor["id"])
        copies = list(rows.order_by("pk")[:at_most])
        if not copies:
            return SweepChunk()
        chunk = SweepChunk(passed=len(copies), cursor={"id": str(copies[-1].pk)})
        for copy in copies:
            try:
                chunk.taken += delete_copy(copy, reason="expired")
            except OSError:
                chunk.left[KeptReason.FILE_KEPT] += 1
        if chunk.taken:
            chunk.tables["erasure_accesscopy"] = chunk.taken
        return chunk
