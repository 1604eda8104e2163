"""Steps: what the console keeps about sessions and about work on them."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import CharField, Q, QuerySet, Subquery
from django.db.models.functions import Cast

from memadmin.accounts.models import ContentGrant, GrantedSession
from memadmin.audit.log import erasing as audit_erasing
from memadmin.audit.models import AuditDetail, AuditEvent
from memadmin.erasure.audit_events import ERASURE_STARTED, ROWS_ERASED
from memadmin.erasure.exceptions import Left
from memadmin.erasure.models import ErasureStep
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.base import Counted, Done, RowStep, Step
from memadmin.retention.models import LegalHold
from memadmin.runs.services import cancel_run
from memories_app.models import Memory
from sessions_app.models import (
    Redaction,
    SessionFinding,
    SessionRecord,
    SessionStore,
    Subject,
    SubjectAlias,
    TextSearch,
)
from sessions_app.services.erasing_subjects import forget_keys, forget_sessions
from sessions_app.services.outbox import drain_outbox
from sessions_app.stores.base import Capability
from sessions_app.stores.kinds import can


class Findings(RowStep):
    name = "findings"
    title = "Findings about the sessions"
    what_happens = "Deleted."
    after = ("sessions",)

    def rows(self, scope: SubjectScope) -> QuerySet[SessionFinding]:
        return SessionFinding.objects.filter(record_id__in=scope.records().values("id"))


class Searches(RowStep):
    name = "searches"
    title = "Searches for the person's IDs"
    what_happens = "Deleted."

    def rows(self, scope: SubjectScope) -> QuerySet[TextSearch]:
        named = [Q(text__icontains=text) for text in scope.texts]
        return TextSearch.objects.filter(reduce(or_, named)) if named else TextSearch.objects.none()


class Redactions(RowStep):
    """The rows stay, because their runs do; unfinished ones are cancelled."""

    name = "redactions"
    title = "Redactions"
    what_happens = "Cancelled if unfinished; ids and texts are deleted."
    after = ("sessions",)

    def rows(self, scope: SubjectScope) -> QuerySet[Redaction]:
        about = Q(subject_id__in=scope.group) | Q(record_id__in=scope.records().values("id"))
        done = {"session_id": "", "item_mark": "", "text": "", "shown": {}, "ended_at__isnull": False}
        return Redaction.objects.filter(about).exclude(**done)

    def erase_rows(self, scope: SubjectScope, rows: QuerySet[Any]) -> None:
        for redaction in rows.select_related("run"):
            if not redaction.run.is_finished:
                cancel_run(redaction.run)
        rows.update(session_id="", item_mark="", text="", shown={})


class Grants(RowStep):
    """Ticket, explanation and review note of each grant that includes a session of this person."""

    name = "grants"
    title = "Texts of access grants"
    what_happens = "Ticket, explanation and review note are deleted; who read stays in the audit log."
    after = ("sessions",)

    def rows(self, scope: SubjectScope) -> QuerySet[ContentGrant]:
        ours = GrantedSession.objects.filter(record_id__in=scope.records().values("id")).values("grant")
        return ContentGrant.objects.filter(pk__in=ours).exclude(ticket="", explanation="", review_note="")

    def erase_rows(self, scope: SubjectScope, rows: QuerySet[Any]) -> None:
        rows.update(ticket="", explanation="", review_note="")


class AdminLog(RowStep):
    name = "admin_log"
    title = "Django admin's log"
    what_happens = "Deleted; the audit log has the same changes."
    after = ("sessions",)

    def rows(self, scope: SubjectScope) -> QuerySet[LogEntry]:
        about = Q(content_type=type_of(Subject), object_id__in=[str(each) for each in scope.group])
        for model, rows in (
            (SessionRecord, scope.records()),
            (SubjectAlias, SubjectAlias.objects.filter(subject_id__in=scope.group)),
            (Memory, Memory.objects.filter(subject_id__in=scope.group)),
        ):
            ids = rows.annotate(object_id=Cast("pk", CharField())).values("object_id")
            about |= Q(content_type=type_of(model), object_id__in=ids)
        return LogEntry.objects.filter(about)


def type_of(model: Any) -> ContentType:
    return ContentType.objects.get_for_model(model)


class Identity(Step):
    """Ids of the host application and of sessions: after the steps that find their rows by them."""

    name = "identity"
    title = "IDs of the person and of the sessions"
    what_happens = "Deleted; keyed digests stay, so that nothing is stored under these ids again."
    after = (
        *("sessions", "subject_keys", "findings", "searches", "redactions", "grants", "admin_log"),
        *("shared_memories", "distillations", "memories", "access_copies"),
    )

    def count(self, scope: SubjectScope, place: str) -> Counted:
        keys = SubjectAlias.objects.filter(subject_id__in=scope.group).count()
        sessions = scope.records().filter(is_forgotten=False).count()
        held = len(scope.held_records)
        return Counted(keys + sessions, held=keys + held if held else 0)

    def erase_some(self, scope: SubjectScope, step: ErasureStep, *, at_most: int) -> Done:
        # Notes of the fences name sessions by their ids until they are in the log.
        drain_outbox()
        # Also a session that was erased, or begun, before it was held keeps its id. The chunk keeps further holds out.
        scope.reread_holds()
        sessions = keys = 0
        if scope.records().filter(erased_at__isnull=False, is_forgotten=False).exists():
            sessions = forget_sessions(scope.subject, at_most=at_most, keep=scope.held_records)
        if sessions and (sessions == at_most or scope.held_records):
            return Done(passed=sessions, erased=sessions)
        aliases = SubjectAlias.objects.filter(subject_id__in=scope.group)
        if scope.held_records:
            # A held session can be found by the person's id as long as the hold lasts.
            return Done(held=aliases.count() + len(scope.held_records), exceptions=self.not_erased(scope, step))
        forget_released_holds(scope)
        if aliases.exists():
            keys = forget_keys(scope.subject)
        if gone := sessions + keys:
            return Done(passed=gone, erased=gone)
        return Done(exceptions=self.not_erased(scope, step))

    def not_erased(self, scope: SubjectScope, step: ErasureStep) -> dict[str, int]:
        """Sessions whose items stay in their store, and that keep their ids with them: their number by the reason."""
        left: dict[str, int] = {}
        records = scope.records().filter(erased_at=None).exclude(pk__in=scope.held_records)
        for row in ErasureStep.objects.filter(request=step.request_id, name="sessions"):
            if row.state == ErasureStep.State.LEFT_OUT:
                code = Left.LEFT_OUT
            elif (store := SessionStore.objects.filter(name=row.place).first()) is None:
                continue
            elif not can(store, Capability.ERASE_SESSIONS):
                code = Left.CANNOT_ERASE
            else:
                continue
            if count := records.filter(store__name=row.place).count():
                left[code] = left.get(code, 0) + count
        return left


def forget_released_holds(scope: SubjectScope) -> None:
    """Takes the ids of the person's sessions out of holds that were released."""
    holds = LegalHold.objects.filter(record_id__in=scope.records().values("id"), released_at__isnull=False)
    holds.exclude(session_id="").update(session_id="")


class AuditDetails(RowStep):
    """Reasons and values beside the events about the person. The events stay: they contain no personal data."""

    name = "audit_details"
    title = "Details in the audit log"
    what_happens = (
        "Reasons and values are deleted; the events stay without them. Those of the erasure itself are deleted, too,"
        " and not counted."
    )
    # Last, because each change of a governed row writes details. Finds them by our own ids, which stay.
    after = ("identity",)

    def rows(self, scope: SubjectScope) -> QuerySet[AuditDetail]:
        sessions = scope.records().values("id")
        about = Q(event__subject_ref__in=scope.group) | Q(event__object_ref__in=sessions)
        # One change of many rows has one event, which lists them and their subjects. Its details go as a whole.
        listed = Q(event__shown__overlap=scope.group) | Q(event__shown__overlap=ArraySubquery(sessions))
        about |= listed & ~Q(event__shown=[])
        # What happens to the case itself has no personal data, and goes on being recorded.
        return AuditDetail.objects.filter(about).exclude(event__object_kind="erasure.subjectrequest")

    def written_by_erasure(self, step: ErasureStep, keys: list[Any]) -> int:
        """Each governed row that a step changes adds details. Those that others add meanwhile are not among these."""
        of_case = AuditEvent.objects.filter(object_ref=step.request.id)
        started = of_case.filter(type=ERASURE_STARTED.name).order_by("at")
        workers = of_case.filter(type__in=[ERASURE_STARTED.name, ROWS_ERASED.name])
        since_start = AuditEvent.objects.filter(id__in=keys, at__gte=Subquery(started.values("at")[:1]))
        return since_start.filter(actor_ref__in=workers.values("actor_ref")).count()

    def erase_rows(self, scope: SubjectScope, rows: QuerySet[Any]) -> None:
        audit_erasing.erase_details_of([detail.pk for detail in rows.only("pk")], subject=scope.subject.pk)
