"""Step: copies that were made for the person."""

from __future__ import annotations

from django.db.models import QuerySet

from memadmin.erasure.access_copy.deleting import stop_and_delete
from memadmin.erasure.models import AccessCopy, ErasureStep
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.base import Counted, Done, Step


class AccessCopies(Step):
    name = "access_copies"
    title = "Access copies"
    what_happens = "Deleted, finished or not."

    def copies(self, scope: SubjectScope) -> QuerySet[AccessCopy]:
        return AccessCopy.objects.filter(request__subject_id__in=scope.group, state__in=AccessCopy.KEPT)

    def count(self, scope: SubjectScope, place: str) -> Counted:
        return Counted(self.copies(scope).count())

    def erase_some(self, scope: SubjectScope, step: ErasureStep, *, at_most: int) -> Done:
        copies = list(self.copies(scope).select_related("run").order_by("pk")[:at_most])
        for copy in copies:
            stop_and_delete(copy, reason="erased")
        return Done(passed=len(copies), erased=len(copies))
