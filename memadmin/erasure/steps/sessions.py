"""Step: the conversations, in each store."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.timezone import now

from memadmin.batching import batched
from memadmin.erasure.exceptions import Left
from memadmin.erasure.models import ErasureStep
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.base import Counted, Done, Step
from memadmin.process_metrics import counting_store_call
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion
from sessions_app.stores import backend_for
from sessions_app.stores.base import UNCAPPED, Backend, Capability, StoreUnavailable

SESSIONS_AT_ONCE = 100
"""Sessions of one chunk, at most: each takes a few statements, however short it is."""


class Sessions(Step):
    name = "sessions"
    title = "Sessions"
    what_happens = "Items are deleted; the session cannot be written again."

    def places(self, scope: SubjectScope) -> list[str]:
        return sorted(
            SessionStore.objects.filter(pk__in=self.records(scope).values("store")).values_list("name", flat=True)
        )

    def records(self, scope: SubjectScope, place: str = "") -> SessionRecordQuerySet:
        """Sessions of the scope whose ids are still known, also those that were erased in part."""
        known = scope.records().filter(is_forgotten=False)
        return known.filter(store__name=place) if place else known

    def count(self, scope: SubjectScope, place: str) -> Counted:
        store = SessionStore.objects.filter(name=place).first()
        if store is None:
            return Counted(0)
        backend = backend_for(store)
        details = {"sessions": 0, "encrypted": 0, "expired": 0}
        rows = held = 0
        can_erase = Capability.ERASE_SESSIONS in backend.capabilities
        try:
            for batch in batched(self.records(scope, place).iterator(), SESSIONS_AT_ONCE):
                counts = backend.count_each([record.session_id for record in batch])
                for record in batch:
                    items = counts[record.session_id]
                    if not items and record.erased_at:
                        continue
                    rows += items
                    held += items if record.pk in scope.held_records else 0
                    details["sessions"] += 1
                    details["encrypted"] += record.is_encrypted
                    details["expired"] += bool(record.expires_at and record.expires_at <= now())
        except StoreUnavailable:
            return Counted(rows, held, details, problem="The store does not respond, so this is not counted.")
        return Counted(rows, held, details, exceptions={} if can_erase else {Left.CANNOT_ERASE.value: rows})

    def erase_some(self, scope: SubjectScope, step: ErasureStep, *, at_most: int) -> Done:
        store = SessionStore.objects.filter(name=step.place).first()
        if store is None:
            left = max(step.expected - step.erased, 0)
            return Done(exceptions={Left.STORE_REMOVED: left} if left else {})
        with counting_store_call(store.kind):
            return self.erase_from(store, scope, step, at_most=at_most)

    def erase_from(self, store: SessionStore, scope: SubjectScope, step: ErasureStep, *, at_most: int) -> Done:
        backend = backend_for(store)
        can_erase = Capability.ERASE_SESSIONS in backend.capabilities
        done = Done(cursor=step.cursor)
        records = self.records(scope, step.place).filter(session_id__gt=step.cursor).order_by("session_id", "pk")
        batch = list(records[:SESSIONS_AT_ONCE])
        is_held = is_any_held(batch)
        if can_erase and batch and not is_held and (whole := self.erase_whole(backend, batch, at_most)):
            return whole
        for record in batch:
            try:
                try:
                    if is_held and can_erase:
                        check_deletion(records=[record.pk])
                    if not self.erase_one(backend, record, done, at_most=at_most):
                        return done
                except DeletionRefused:
                    done.held += backend.count(record.session_id, cap=UNCAPPED)
            except StoreUnavailable:
                if done.passed:
                    # What went is counted; the next chunk meets the problem first.
                    return done
                raise
            done.passed += 1
            done.cursor = record.session_id
            if done.erased >= at_most:
                break
        return done

    def erase_one(self, backend: Backend, record: SessionRecord, done: Done, *, at_most: int) -> bool:
        """Erases items of one session; true if none is left that can go. Raises DeletionRefused, StoreUnavailable."""
        if Capability.ERASE_SESSIONS not in backend.capabilities:
            if left := backend.count(record.session_id, cap=UNCAPPED):
                done.exceptions[Left.CANNOT_ERASE] = done.exceptions.get(Left.CANNOT_ERASE, 0) + left
            return True
        deleted = backend.delete_some(record.session_id, at_most=at_most - done.erased)
        done.erased += deleted.count
        done.passed += deleted.count
        if deleted.count:
            done.shown.append(record.pk)
        if deleted.left:
            # What a chunk does must be saved before the next one, also if nothing went.
            done.passed = max(done.passed, 1)
            return False
        if not deleted.count:
            # Of a session without items, too: it must not be written again.
            SessionRecord.objects.filter(pk=record.pk, session_id=record.session_id, erased_at=None).update(
                erased_at=now()
            )
        return True

    def erase_whole(self, backend: Backend, batch: Sequence[SessionRecord], at_most: int) -> Done | None:
        """Erases the first sessions of the batch together; None if that is not possible."""
        items = backend.delete_whole([record.session_id for record in batch], at_most=at_most)
        gone = [record for record in batch if record.session_id in items]
        if not gone:
            return None
        erased = sum(items.values())
        shown = [record.pk for record in gone if items[record.session_id]]
        return Done(erased + len(gone), erased, cursor=gone[-1].session_id, shown=shown)


def is_any_held(records: Sequence[SessionRecord]) -> bool:
    """Whether a hold keeps one of these sessions; if not, none can be placed before the transaction ends. One query."""
    try:
        check_deletion(records=[record.pk for record in records])
    except DeletionRefused:
        return True
    return False
