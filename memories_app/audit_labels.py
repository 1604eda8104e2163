"""Labels of memories and rules in the audit log, limited to what its reader may see."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from django.contrib.auth.models import User
from django.urls import reverse

from memadmin.audit.log.label_registry import Name, finds, guard_values, names, short, with_id
from memories_app.models import ApprovalRule, Memory, Recall

READ = "memories_app.read_memory"

GUARDED = ("memory", "memoryversion", "evidence", "review", "signal", "recall", "recalledmemory")

for name in GUARDED:
    guard_values(f"memories_app.{name}", READ)


@names("memories_app.memory")
def memory_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Kind and short id; the statement does not belong in the log. One query, or none."""
    if not viewer.has_perm(READ):
        return {}
    memories = Memory.objects.filter(pk__in=refs).only("pk", "kind")
    return {each.pk: Name(f"{each.kind} {short(each.pk)}", each.get_absolute_url()) for each in memories}


@finds("memories_app.memory")
def memories_called(viewer: User, text: str) -> Iterable[UUID]:
    """Memories by the beginning of their id. One query, or none."""
    return with_id(Memory.objects.all(), text)


@names("memories_app.recall")
def recall_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    if not viewer.has_perm(READ):
        return {}
    found = Recall.objects.filter(pk__in=refs).values_list("pk", flat=True)
    return {pk: Name(f"recall {short(pk)}", reverse("memories:recall-detail", args=[pk])) for pk in found}


@names("memories_app.approvalrule", noun="rule")
def rule_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    if not viewer.has_perm("memories_app.view_approvalrule"):
        return {}
    return {rule.pk: Name(f"rule {rule.name}") for rule in ApprovalRule.objects.filter(pk__in=refs)}
