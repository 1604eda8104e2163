"""Labels of legal holds in the audit log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.contrib.auth.models import User

from memadmin.audit.log.label_registry import Name, guard_values, names
from memadmin.retention.models import LegalHold, PolicyVersion, RetentionPolicy

HOLD = "retention.legalhold"
POLICY = "retention.retentionpolicy"
VERSION = "retention.policyversion"
VIEW_POLICY = "retention.view_policy"

# Reasons and labels identify people and cases.
guard_values(HOLD, "retention.view_hold")
guard_values(POLICY, VIEW_POLICY)
guard_values(VERSION, VIEW_POLICY)


@names(HOLD, noun="legal hold")
def hold_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Number of each hold, with a link for viewers who may see holds. One query."""
    may_open = viewer.has_perm("retention.view_hold")
    return {
        hold.pk: Name(f"legal hold {hold}", hold.get_absolute_url() if may_open else "")
        for hold in LegalHold.objects.filter(pk__in=refs)
    }


@names(POLICY, noun="retention policy")
def policy_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Name of each policy with a link, for viewers who may see policies; others see its id. One query, or none."""
    if not viewer.has_perm(VIEW_POLICY):
        return {}
    return {
        policy.pk: Name(f"retention policy {policy}", policy.get_absolute_url())
        for policy in RetentionPolicy.objects.filter(pk__in=refs)
    }


@names(VERSION, noun="version of a retention policy")
def version_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Number and policy of each version with a link, for viewers who may see policies. One query, or none."""
    if not viewer.has_perm(VIEW_POLICY):
        return {}
    return {
        version.pk: Name(f"version {version.number} of {version.policy}", version.policy.get_absolute_url())
        for version in PolicyVersion.objects.filter(pk__in=refs).select_related("policy")
    }
