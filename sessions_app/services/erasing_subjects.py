"""Placeholder until the fence of subjects is merged."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import Q

from sessions_app.models import SessionRecord, Subject, SubjectAlias


def fence_subject(subject: Subject) -> None:
    from memories_app.models import LearningStop

    for each in subject.group_ids():
        LearningStop.objects.get_or_create(subject_id=each)


def forget_sessions(subject: Subject, *, at_most: int, keep: Collection[UUID] = ()) -> int:
    """`keep` are ids of session records that keep their ids: a hold covers them, although they were erased before."""
    rows = SessionRecord.objects.filter(subject_id__in=subject.group_ids(), erased_at__isnull=False).exclude(
        Q(session_id__startswith="erased:") | Q(pk__in=list(keep))
    )
    n = 0
    for r in rows[:at_most]:
        SessionRecord.objects.filter(pk=r.pk).update(session_id=f"erased:{r.pk}", ticket="", agent="", labels=[])
        n += 1
    return n


def forget_keys(subject: Subject) -> int:
    return SubjectAlias.objects.filter(subject_id__in=subject.group_ids()).delete()[0]
