"""Requests of people for tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User

from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.erasure import services
from memadmin.erasure.models import SubjectRequest
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from sessions_app.models import Subject
from tests.approvals import shown

Kind, Channel = SubjectRequest.Kind, SubjectRequest.Channel


def make_request(
    subject: Subject, *, by: User, kind: SubjectRequest.Kind = Kind.ERASURE, **columns: Any
) -> SubjectRequest:
    request, _ = services.open_request(kind, subject, by=by, channel=Channel.LETTER, **columns)
    return request


def awaiting(subject: Subject, *, by: User, **columns: Any) -> SubjectRequest:
    """An erasure that waits for a second person."""
    request = services.check_identity(make_request(subject, by=by, **columns), note="passport shown", by=by)
    services.make_preview(request, by=by)
    return services.request_approval(request, by=by)


def approved(subject: Subject, *, by: User, second: User, **columns: Any) -> SubjectRequest:
    """An approved erasure whose time to cancel is over."""
    request = awaiting(subject, by=by, **columns)
    key = subject.aliases.get(is_primary=True).key
    return services.approve_request(request, by=second, typed=key, shown=shown(request), window=timedelta(0))


def work_off(request: SubjectRequest) -> Run:
    """Works on the erasure until it is scanned and has its receipt, or waits for something else than the log."""
    assert request.run is not None, "it is approved"
    run = carry_on(request.run)
    while waits_for_log(run):
        Sequencer().step(is_last=True)
        Run.objects.filter(pk=run.pk).update(retry_at=None)
        run = carry_on(run)
    request.refresh_from_db()
    return run


def waits_for_log(run: Run) -> bool:
    return run.state == Run.State.WAITING and run.reason.startswith("The receipt cannot be issued yet.")
