"""One change of all sessions that a filter matched, as a run: a label, a subject, a lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import TextChoices

from memadmin.runs.engine import Lease, NeedsDecision
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from sessions_app.models import SessionRecord, Subject
from sessions_app.services import sessions
from sessions_app.services.deletion_guards import DeletionRefused
from sessions_app.services.subjects import SubjectWasErased

RUN_KIND = "session_changes"

MOST_SESSIONS = 10_000
"""Maximum number of sessions of one run: it stores their ids."""

AT_ONCE = 100
"""Maximum number of sessions in one chunk, and so in one audit event."""

REFUSED = "refused"

UNLOCKING = "unlock"
"""Action of runs of earlier versions, which unlocked without a second person."""


class SessionAction(TextChoices):
    LABEL = "label", "Add label"
    UNLABEL = "unlabel", "Remove label"
    ATTACH = "attach", "Attach to subject"
    DETACH = "detach", "Detach from subject"
    LOCK = "lock", "Lock"


def label_of(action: str) -> str:
    return "Unlock" if action == UNLOCKING else str(SessionAction(action).label)


def permission_of(action: SessionAction) -> str:
    return "sessions_app.mark_sensitive" if action == SessionAction.LOCK else "sessions_app.attach_session"


def begin(
    session_ids: Sequence[UUID], action: SessionAction, *, by: User, label: str = "", subject: Subject | None = None
) -> Run:
    """Requests a run that changes these sessions, whatever matches later. The caller checked the permission; the run
    checks it again.
    """
    parameters = {
        "action": action.value,
        "label": label,
        # Its random id: a key of a subject must not outlive its erasure.
        "subject": str(subject.pk) if subject else "",
        "sessions": [str(each) for each in session_ids],
    }
    return request_run(RUN_KIND, by=by, parameters=parameters, total=len(session_ids))


def work(lease: Lease) -> None:
    """Raises what the lease raises, and NeedsDecision if the person may no longer do this."""
    run = lease.run
    if run.parameters["action"] == UNLOCKING:
        raise NeedsDecision("Unlocking takes a second person now. Cancel this run, and request it from the list.")
    by, action = run.requester(), SessionAction(run.parameters["action"])
    if by is None or not by.is_active or not by.has_perm(permission_of(action)):
        raise NeedsDecision("The account that requested this may no longer change sessions. Cancel this run.")
    change = change_of(action, by, run.parameters)
    ids = run.parameters["sessions"]

    def step(run: Run, limit: int) -> int:
        position = run.cursor.get("position", 0)
        wanted = ids[position : position + min(limit, AT_ONCE)]
        records = list(SessionRecord.objects.on_record().filter(pk__in=wanted))
        changed, refused = change_each(records, change)
        run.count(changed=changed, unchanged=len(wanted) - changed - refused)
        if refused:
            run.add_exception(REFUSED, count=refused)
        run.cursor = {"position": position + len(wanted)}
        return len(wanted)

    lease.in_chunks(step)


def change_of(action: SessionAction, by: User, parameters: Mapping[str, Any]) -> Callable[[list[SessionRecord]], int]:
    """The function that a bulk action of the list calls, too. Raises NeedsDecision if the subject is gone."""
    label = parameters["label"]
    match action:
        case SessionAction.LABEL:
            return lambda records: sessions.label_sessions(records, label, by=by)
        case SessionAction.UNLABEL:
            return lambda records: sessions.unlabel_sessions(records, label, by=by)
        case SessionAction.ATTACH:
            subject = Subject.objects.filter(pk=parameters["subject"]).first()
            if subject is None:
                raise NeedsDecision("The subject does not exist any more. Cancel this run.")
            return lambda records: sessions.attach_sessions(records, subject, by=by)
        case SessionAction.DETACH:
            return lambda records: sessions.detach_sessions(records, by=by)
        case SessionAction.LOCK:
            return lambda records: sessions.mark_sensitive(records, by=by)


def change_each(records: list[SessionRecord], change: Callable[[list[SessionRecord]], int]) -> tuple[int, int]:
    """Numbers of changed and of refused sessions. If one is refused, the others are changed one by one."""
    try:
        with transaction.atomic():
            return change(records), 0
    except (DeletionRefused, SubjectWasErased):
        if len(records) == 1:
            return 0, 1
    each = [change_each([record], change) for record in records]
    return sum(changed for changed, _ in each), sum(refused for _, refused in each)
