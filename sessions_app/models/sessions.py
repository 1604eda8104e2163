"""The registry: records of all sessions with their store and subject.

Conversation content is never copied here. `SessionRecord` is written from two sides: by a trigger inside the agents'
own transactions (`registry/`), and by our services. So each of its columns has a database default, its session id
changes only when it is forgotten, and nothing depends on its UUID being unique: the table can be partitioned or
distributed by session id without touching the code.
"""

from __future__ import annotations

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import OrderBy
from django.db.models.functions import Left, Lower, Now
from django.urls import reverse

from memadmin import audit
from memadmin.audit.log.triggers import Calling
from memadmin.clamped_times import REPRESENTABLE_IN_SQL
from sessions_app.models import querysets
from sessions_app.models.grams import Grams
from sessions_app.models.stores import SessionStore
from sessions_app.models.subjects import Subject, SubjectSource


def newest() -> tuple[OrderBy, OrderBy]:
    """Order of every session list, as index columns."""
    return F("last_activity_at").desc(), F("id").desc()


class SessionRecord(models.Model):
    """One session in a store: the row of session lists, and the fence that keeps an erased session out."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    store = models.ForeignKey(
        SessionStore, on_delete=models.PROTECT, db_constraint=False, db_index=False, related_name="sessions"
    )
    session_id = models.CharField(editable=False)
    subject = models.ForeignKey(
        Subject,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        db_constraint=False,
        db_index=False,
        related_name="sessions",
    )
    # "operator" without a subject: a user detached it, and patterns no longer change it.
    subject_source = models.CharField(max_length=8, choices=SubjectSource, db_default="", blank=True)
    subject_epoch = models.PositiveIntegerField(db_default=0, editable=False)
    ticket = models.CharField(max_length=200, db_default="", blank=True)
    agent = models.CharField(max_length=200, db_default="", blank=True)
    labels = ArrayField(models.CharField(max_length=50), db_default=models.Value("{}"), blank=True)
    is_encrypted = models.BooleanField(db_default=False, editable=False)
    # Of an encrypted session: whether some of its items are not encrypted. Those are read and searched like any others.
    has_plain_items = models.BooleanField(db_default=False, editable=False)
    is_sensitive = models.BooleanField(db_default=False, help_text="Reading the content of this session needs a grant.")
    finding_count = models.PositiveIntegerField(db_default=0, editable=False)
    registered_at = models.DateTimeField(db_default=Now(), editable=False)
    last_activity_at = models.DateTimeField(db_default=Now(), editable=False)
    # The trigger counts each write; an inspection notes how far it saw. Times would not do: a run that began earlier
    # can commit later, and would be missed.
    activity_count = models.BigIntegerField(db_default=0, editable=False)
    inspected_count = models.BigIntegerField(db_default=-1, editable=False)
    # Items that the last inspection saw: those after them are new to the counts per day.
    counted_items = models.BigIntegerField(db_default=0, editable=False)
    patterns_tried = models.PositiveIntegerField(db_default=0, editable=False)
    # Of a store without triggers: what discovery last saw of the session, and since when it has not seen it at all.
    change_mark = models.CharField(max_length=64, db_default="", editable=False)
    missing_since = models.DateTimeField(null=True, editable=False)
    # When the store would let go of the session by itself, as discovery last saw it.
    expires_at = models.DateTimeField(null=True, editable=False)
    erased_at = models.DateTimeField(null=True, editable=False)
    # Whether it is a tombstone: the session id is replaced by a keyed digest of it, which still keeps the session out.
    is_forgotten = models.BooleanField(db_default=False, editable=False)

    objects = querysets.SessionRecordQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            # Upserts aim at this one.
            models.UniqueConstraint(fields=["store", "session_id"], name="session_record_key"),
            # Makes erased_at a key column, so that every UPDATE of it takes the row lock that conflicts with the
            # FOR KEY SHARE of a writer in flight. Without it a write can slip past an erasure.
            models.UniqueConstraint(fields=["store", "session_id", "erased_at"], name="session_record_fence"),
        ]
        indexes: ClassVar = [
            models.Index(*newest(), name="record_newest"),
            # Without these a retired store, or old sessions without a subject, would be found by walking over
            # everything newer.
            models.Index("store", *newest(), name="record_store_newest"),
            # For retention by the time of creation, and of single items: the oldest first.
            models.Index("store", "registered_at", "id", name="record_store_oldest"),
            models.Index(
                *newest(), condition=Q(subject__isnull=True, erased_at__isnull=True), name="record_unattached_newest"
            ),
            models.Index("subject", *newest(), condition=Q(subject__isnull=False), name="record_attached_newest"),
            models.Index("ticket", *newest(), condition=~Q(ticket=""), name="record_ticket_newest"),
            models.Index("agent", *newest(), condition=~Q(agent=""), name="record_agent_newest"),
            models.Index(*newest(), condition=Q(finding_count__gt=0), name="record_findings_newest"),
            models.Index(*newest(), condition=Q(is_encrypted=True), name="record_encrypted_newest"),
            models.Index(*newest(), condition=Q(is_sensitive=True), name="record_sensitive_newest"),
            models.Index(
                "store",
                "last_activity_at",
                "id",
                condition=Q(erased_at__isnull=True) & ~Q(inspected_count=F("activity_count")),
                name="record_awaiting_inspection",
            ),
            models.Index(
                "store",
                "patterns_tried",
                condition=Q(erased_at__isnull=True) & (Q(subject__isnull=True, subject_source="") | Q(ticket="")),
                name="record_patterns_to_try",
            ),
            models.Index("session_id", condition=Q(is_forgotten=True), name="record_forgotten"),
            models.Index(
                OpClass(Lower(Left("session_id", 200)), name="text_pattern_ops"), name="record_session_id_prefix"
            ),
            # fastupdate off: these are written inside the agents' transactions, where a flush of the pending
            # list would be an unexpected pause.
            GinIndex(Grams("ticket"), fastupdate=False, condition=~Q(ticket=""), name="record_ticket_grams"),
            GinIndex(fields=["labels"], fastupdate=False, condition=~Q(labels=[]), name="record_labels"),
        ]
        # Agents write these rows through the triggers on their own tables; those writes are theirs, and recorded there.
        triggers: ClassVar = [
            Calling("refuse_forgotten", "memadmin_refuse_forgotten()", after="INSERT", level=pgtrigger.Row),
            *(
                Calling(
                    name,
                    "memadmin_clamp_activity()",
                    before=event,
                    level=pgtrigger.Row,
                    condition=pgtrigger.Condition(f"NOT ({REPRESENTABLE_IN_SQL.format('NEW.last_activity_at')})"),
                )
                for name, event in (("clamp", "INSERT"), ("clamp_changed", "UPDATE OF last_activity_at"))
            ),
            Calling(
                "subject_given",
                "memadmin_subject_of_session()",
                before="INSERT",
                level=pgtrigger.Row,
                condition=pgtrigger.Condition("NEW.subject_id IS NOT NULL"),
            ),
            Calling(
                "subject_changed",
                "memadmin_subject_of_session()",
                before="UPDATE OF subject_id",
                level=pgtrigger.Row,
                condition=pgtrigger.Condition("OLD.subject_id IS DISTINCT FROM NEW.subject_id"),
            ),
            Calling(
                "unlocked",
                "memadmin_require_unlocking()",
                before="UPDATE OF is_sensitive",
                level=pgtrigger.Row,
                condition=pgtrigger.Condition("OLD.is_sensitive AND NOT NEW.is_sensitive"),
            ),
            Calling(
                "note_forgotten",
                "memadmin_note_tombstones()",
                after="UPDATE OF is_forgotten",
                level=pgtrigger.Statement,
            ),
            *audit.govern(
                "session",
                columns=[
                    "store",
                    "session_id",
                    "subject",
                    "subject_source",
                    "ticket",
                    "agent",
                    "labels",
                    "is_sensitive",
                    "erased_at",
                ],
                subject="subject",
                except_by_triggers=True,
                agents_through_us=["INSERT", "UPDATE"],
            ),
        ]
        permissions: ClassVar = [
            ("read_content", "Can read the content of sessions"),
            ("attach_session", "Can attach sessions to a subject and label them"),
            ("mark_sensitive", "Can lock and unlock sessions"),
        ]

    def __str__(self) -> str:
        return f"session {self.id}"

    def get_absolute_url(self) -> str:
        return reverse("sessions:timeline", args=[self.pk])

    @property
    def has_run_out(self) -> bool:
        """Whether the store removed it at its expiry, as far as discovery knows."""
        return bool(self.missing_since and self.expires_at and self.expires_at <= self.missing_since)

    @property
    def is_unreadable(self) -> bool:
        """Whether all of its items are encrypted, as far as they were inspected."""
        return self.is_encrypted and not self.has_plain_items

    @property
    def is_locked(self) -> bool:
        """Whether reading its content needs a grant."""
        return self.is_sensitive or self.store.is_sensitive


class SessionFinding(models.Model):
    """A finding of the last inspection of a session. Contains no content."""

    record_id = models.UUIDField()
    session_id = models.CharField()
    kind = models.CharField(max_length=40)
    item_id = models.CharField(max_length=64)

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        indexes: ClassVar = [models.Index(fields=["record_id", "id"], name="finding_by_record")]

    def __str__(self) -> str:
        return f"finding {self.pk}"


class FenceOutbox(models.Model):
    """Writes that the triggers on the agents' tables discarded. Contains no content.

    A job moves it into the audit log within seconds; in the agents' transactions it is one small row.
    """

    session_id = models.CharField()
    store = models.ForeignKey(SessionStore, on_delete=models.CASCADE, db_constraint=False)
    event = models.CharField(max_length=32)
    happened_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        verbose_name_plural = "fence outbox"

    def __str__(self) -> str:
        return f"{self.event} {self.pk}"
