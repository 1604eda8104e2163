"""The tables of the audit log.

Events contain no personal data: ids, times, counts and words from a register. Data that could identify a person is in
two tables that can be erased without changing an event: `AuditActor` (names of actors) and `AuditDetail` (reasons,
values before and after), to whose contents an event commits by a salted hash.

An event is written by its transaction; the sequencer then assigns it an index in the tree (`AuditLeaf`).
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.expressions import OrderBy
from django.db.models.functions import Length, Now
from django.db.models.lookups import Exact
from django.urls import reverse

from memadmin.audit import querysets
from memadmin.audit.log import triggers
from memadmin.log_context import request_id_of


class Uuid7(Func):
    """A new id that begins with the time."""

    function = "memadmin_uuid7"
    output_field: ClassVar = models.UUIDField()


class NumberOfConnection(Func):
    """The number in a setting of the connection; NULL without one. After a transaction that set it, it is empty."""

    function = "current_setting"
    template = "nullif(%(function)s(%(expressions)s, true), '')::bigint"
    output_field: ClassVar = models.BigIntegerField()


PLAIN_COLUMNS = (
    "id",
    "type",
    "actor_kind",
    "object_kind",
    "object_ref",
    "shown",
    "outcome",
    "reason_code",
    "counters",
    "commitment",
)


class IsPlain(Func):
    """Whether the columns of an event contain only ids, known words and counts, and no free text.

    Types, kinds and reasons are words; counters are at most twenty whole numbers of at most fifteen digits, as numbers
    are doubles in canonical JSON.
    """

    function = "memadmin_is_plain"
    output_field: ClassVar = models.BooleanField()


def is_hash(column: str) -> Exact[int]:
    return Exact(Length(column), 32)


class ActorKind(models.TextChoices):
    PERSON = "person", "person"
    AGENT = "agent", "agent"
    JOB = "job", "background job"
    COMMAND = "command", "command"
    DATABASE = "database", "database role"
    SYSTEM = "system", "system"


class Outcome(models.TextChoices):
    SUCCEEDED = "succeeded", "succeeded"
    DENIED = "denied", "denied"
    FAILED = "failed", "failed"


class AuditActor(models.Model):
    """Name of an actor: the only link from an event to a person. Erasing the row removes it for good."""

    ref = models.UUIDField(primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False)
    kind = models.CharField(max_length=16, choices=ActorKind)
    label = models.CharField(max_length=200)
    user_id = models.BigIntegerField(null=True)
    first_seen_at = models.DateTimeField(db_default=Now())
    # Of people: `actor.named` commits to label and account with it. Ids of others are derived from their label.
    salt = models.BinaryField(null=True)

    class Meta:
        db_table = "audit_actor"
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kind", "user_id"], name="audit_actor_of_user"),
            models.UniqueConstraint(
                fields=["kind", "label"], condition=Q(user_id__isnull=True), name="audit_actor_of_label"
            ),
            models.CheckConstraint(condition=Q(kind__in=ActorKind.values), name="audit_actor_kind"),
            models.CheckConstraint(
                condition=Q(user_id__isnull=True) | Q(salt__isnull=False), name="audit_actor_is_bound"
            ),
        ]

    def __str__(self) -> str:
        return f"actor {self.ref}"


def newest() -> tuple[OrderBy, OrderBy]:
    """The order of the log's pages, as index columns."""
    return F("at").desc(), F("number").desc()


class AuditEvent(models.Model):
    """A recorded action, read or attempt. Insert-only; written through `recording`, never by `save()`.

    `at` and `role_ref` are set by the database, whatever the client sends.
    """

    number = models.BigAutoField(primary_key=True)
    id = models.UUIDField(unique=True, db_default=Uuid7(), editable=False)
    type = models.CharField(max_length=64)
    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=16, choices=ActorKind)
    actor_ref = models.UUIDField()
    role_ref = models.UUIDField()
    object_kind = models.CharField(max_length=80, null=True)  # noqa: DJ001  # no object is not an empty one
    object_ref = models.UUIDField(null=True)
    subject_ref = models.UUIDField(null=True)
    # Further records and subjects that were shown or changed together.
    shown = ArrayField(models.UUIDField(), db_default=models.Value("{}"))
    outcome = models.CharField(max_length=16, choices=Outcome, db_default=Outcome.SUCCEEDED)
    reason_code = models.CharField(max_length=40, db_default="")
    counters = models.JSONField(db_default=models.Value("{}"))
    # The verb's event in the same transaction, for events of changed rows.
    cause = models.UUIDField(null=True)
    commitment = models.BinaryField(null=True)
    # Web request or background job, as lines of the server's log name them. Not part of the hashed form, which stays
    # that of older events, older workers and copies of the verifier that auditors keep. Nor does the log prove any.
    request_id = models.BigIntegerField(null=True, db_default=NumberOfConnection(models.Value("memadmin.request_id")))
    job_id = models.BigIntegerField(null=True, db_default=NumberOfConnection(models.Value("memadmin.job_id")))

    objects = querysets.AuditEventQuerySet.as_manager()

    class Meta:
        db_table = "audit_event"
        default_permissions = ()
        permissions: ClassVar = [
            ("view_auditevent", "Can read the audit log"),
            ("export_log", "Can download the audit log"),
            ("verify_log", "Can verify the audit log"),
            ("erase_beside_log", "Can erase event details and the names of people in the audit log"),
        ]
        constraints: ClassVar = [
            # One constraint, because each is evaluated for every event; the function defines the allowed values.
            models.CheckConstraint(condition=IsPlain(*PLAIN_COLUMNS), name="audit_event_is_plain"),
        ]
        indexes: ClassVar = [
            # One for each filter of the list, in its order: however old the matches are, no newer rows are read.
            # The unfiltered list is the union of two, so that each event is in only one of them.
            models.Index(*newest(), condition=~Q(actor_kind__in=querysets.BUSY), name="audit_event_people_newest"),
            models.Index(*newest(), condition=Q(actor_kind__in=querysets.BUSY), name="audit_event_busy_newest"),
            models.Index("actor_ref", *newest(), name="audit_event_actor_newest"),
            models.Index("type", *newest(), name="audit_event_type_newest"),
            models.Index(
                "object_ref", *newest(), condition=Q(object_ref__isnull=False), name="audit_event_object_newest"
            ),
            models.Index(
                "subject_ref", *newest(), condition=Q(subject_ref__isnull=False), name="audit_event_subject_newest"
            ),
            models.Index("outcome", *newest(), condition=~Q(outcome="succeeded"), name="audit_event_outcome_newest"),
            models.Index(
                *newest(), condition=Q(actor_kind="database", cause__isnull=True), name="audit_event_outside_newest"
            ),
            models.Index("cause", "number", condition=Q(cause__isnull=False), name="audit_event_by_cause"),
            models.Index(
                "request_id", *newest(), condition=Q(request_id__isnull=False), name="audit_event_request_newest"
            ),
            models.Index("job_id", *newest(), condition=Q(job_id__isnull=False), name="audit_event_job_newest"),
            # Queries on `shown` must also contain `shown <> '{}'`: most events list no further records.
            GinIndex(fields=["shown"], condition=~Q(shown=[]), name="audit_event_shown_ids"),
        ]
        triggers: ClassVar = [
            triggers.Calling("stamp", "memadmin_stamp_event()", before="INSERT"),
            triggers.guard(),
        ]

    def __str__(self) -> str:
        return f"event {self.id}"

    def get_absolute_url(self) -> str:
        return reverse("audit:event", args=[self.id])

    @property
    def request(self) -> str:
        """The request's id as lines of the log have it; empty for an event of no request."""
        return "" if self.request_id is None else request_id_of(self.request_id)


class AuditDetail(models.Model):
    """Details that an event commits to but may not contain: a reason, values before and after. Erasable row by row."""

    event = models.OneToOneField(
        AuditEvent,
        to_field="id",
        primary_key=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="detail",
    )
    salt = models.BinaryField()
    # JSON, byte by byte as it was hashed: jsonb would reformat it.
    details = models.TextField()

    class Meta:
        db_table = "audit_detail"
        default_permissions = ()
        constraints: ClassVar = [models.CheckConstraint(condition=is_hash("salt"), name="audit_detail_salt")]

    def __str__(self) -> str:
        return f"details of event {self.pk}"


class AuditPending(models.Model):
    """Queue of events for the sequencer: written by the trigger that stamps them, removed when the leaf is written.

    A number may have no event, after an insert that was skipped by a conflict; the sequencer removes it, too.
    """

    number = models.BigIntegerField(primary_key=True)

    class Meta:
        db_table = "audit_pending"
        default_permissions = ()

    def __str__(self) -> str:
        return f"event number {self.number}"


class AuditLeaf(models.Model):
    """The index of an event in the tree."""

    index = models.BigIntegerField(primary_key=True)
    event_number = models.BigIntegerField(unique=True)
    hash = models.BinaryField()

    class Meta:
        db_table = "audit_leaf"
        default_permissions = ()
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(index__gte=0), name="audit_leaf_index"),
            models.CheckConstraint(condition=is_hash("hash"), name="audit_leaf_hash"),
        ]
        triggers: ClassVar = [triggers.guard()]

    def __str__(self) -> str:
        return f"leaf {self.index}"


class AuditNode(models.Model):
    """The hash of a complete subtree of 2^level leaves; only every eighth level is kept."""

    pk = models.CompositePrimaryKey("level", "index")
    level = models.SmallIntegerField()
    index = models.BigIntegerField()
    hash = models.BinaryField()

    class Meta:
        db_table = "audit_node"
        default_permissions = ()
        constraints: ClassVar = [models.CheckConstraint(condition=is_hash("hash"), name="audit_node_hash")]
        triggers: ClassVar = [triggers.guard()]

    def __str__(self) -> str:
        return f"node {self.level}/{self.index}"


class AuditCheckpoint(models.Model):
    """A signed statement of the tree's root at a size."""

    size = models.BigIntegerField(primary_key=True)
    root = models.BinaryField()
    at = models.DateTimeField()
    key_id = models.CharField(max_length=64)
    note = models.TextField()

    class Meta:
        db_table = "audit_checkpoint"
        default_permissions = ()
        constraints: ClassVar = [models.CheckConstraint(condition=is_hash("root"), name="audit_checkpoint_root")]
        triggers: ClassVar = [triggers.guard()]

    def __str__(self) -> str:
        return f"checkpoint of {self.size}"


class AuditAnchor(models.Model):
    """An attempt to store a checkpoint outside of the database."""

    checkpoint_size = models.BigIntegerField()
    sink = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())
    outcome = models.CharField(max_length=16)
    receipt = models.TextField(db_default="")

    class Meta:
        db_table = "audit_anchor"
        default_permissions = ()
        indexes: ClassVar = [models.Index("sink", F("checkpoint_size").desc(), name="audit_anchor_by_sink")]
        triggers: ClassVar = [triggers.guard()]

    def __str__(self) -> str:
        return f"anchor {self.pk}"


class AuditVerdict(models.Model):
    """Result of a verification."""

    at = models.DateTimeField(db_default=Now())
    verdict = models.CharField(max_length=16)
    size = models.BigIntegerField()
    root = models.BinaryField(null=True)
    findings = models.JSONField(db_default=models.Value("[]"))

    class Meta:
        db_table = "audit_verdict"
        default_permissions = ()
        get_latest_by = "at"

    def __str__(self) -> str:
        return f"verdict {self.pk}"
