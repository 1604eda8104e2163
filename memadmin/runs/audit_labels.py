"""Labels of runs in the audit log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.contrib.auth.models import User

from memadmin.audit.log.label_registry import Name, names
from memadmin.runs.access import may_view
from memadmin.runs.kinds import kind_named
from memadmin.runs.models import Run


@names("runs.run", noun="run")
def run_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Kind and number, and a link for viewers who may see the run. One query."""
    return {
        run.id: Name(
            f"{kind_named(run.kind).title.lower()} {run}", run.get_absolute_url() if may_view(viewer, run) else ""
        )
        for run in Run.objects.filter(id__in=refs)
    }
