"""Memories: proposals and approved statements.

Agents insert proposals under a role of their own and see only approved memories: row policies and the trigger `gate`
enforce that in the database (memories_app/sql/), independent of Python. So every column that agents do not write has a
database default, and no key is a number from a sequence.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID, TransactionNow
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Cast, Coalesce, Length, Now
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThanOrEqual
from django.urls import reverse
from pgvector.django import HnswIndex, VectorField

from memadmin import audit
from memadmin.accounts.approvals.models import Approval
from memadmin.audit.log.triggers import Calling
from memadmin.clamped_times import is_representable
from memories_app.models import querysets
from memories_app.models.data import AnyJsonField
from sessions_app.models import Subject

DIMENSIONS = 256
"""Dimensions of all vectors, of any embedder."""

LONGEST_STATEMENT = 2000
"""In characters. Statements go into prompts: longer texts are documents, and are refused."""

LONGEST_QUOTE = 4000
"""In characters, of evidence and signals."""

MOST_AGENTS = 50

LONGEST_STORED_DATA = 40_000
"""In characters of PostgreSQL's text form, which may be twice as long as that of Python."""


class Memory(models.Model):
    """A memory or proposal: one statement about a subject, or without a subject and shared by all."""

    class Kind(models.TextChoices):
        PREFERENCE = "preference", "preference"
        FACT = "fact", "fact"
        PROCEDURE = "procedure", "procedure"
        NOTE = "note", "note"
        SUMMARY = "summary", "summary"

    class Status(models.TextChoices):
        PROPOSED = "proposed", "proposed"
        APPROVED = "approved", "approved"
        NEEDS_REVALIDATION = "needs_revalidation", "needs re-validation"
        REJECTED = "rejected", "rejected"
        MERGED = "merged", "merged"
        SUPERSEDED = "superseded", "superseded"
        EXPIRED = "expired", "expired"
        RETIRED = "retired", "retired"
        # A proposal without a decision in time.
        LAPSED = "lapsed", "expired unreviewed"

    class Provenance(models.TextChoices):
        EXPLICIT = "explicit", "explicit"
        INFERRED = "inferred", "inferred"

    class Source(models.TextChoices):
        USER = "user", "user source"
        TOOL = "tool", "tool source"
        WEB = "web", "web source"
        OPERATOR = "operator", "operator source"
        IMPORT = "import", "import"

    AWAITING: ClassVar = (Status.PROPOSED, Status.NEEDS_REVALIDATION)

    IN_USE: ClassVar = (Status.APPROVED, Status.NEEDS_REVALIDATION)
    """States of memories that can be changed: agents recall them, or did until they had to be approved again."""

    CURRENT: ClassVar = (*AWAITING, Status.APPROVED)
    """States of memories that agents recall or may recall later."""

    DETAILS: ClassVar = (
        "kind",
        "key",
        "agents",
        "provenance",
        "source",
        "confidence",
        "valid_from",
        "valid_until",
        "revalidate_on",
    )
    """Columns that a proposer sets, besides the text, its data and its subject."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    subject = models.ForeignKey(
        Subject, null=True, blank=True, on_delete=models.PROTECT, db_index=False, related_name="memories"
    )
    kind = models.CharField(max_length=16, choices=Kind)
    # The topic, such as `refund_method`: two memories of one subject, kind and key may contradict each other.
    key = models.CharField(max_length=80, db_default="", blank=True)
    statement = models.TextField(help_text="The exact text that agents read.")
    data = AnyJsonField(default=dict, db_default=Value({}, models.JSONField()), blank=True)
    # Names of the agents that may recall it; empty: all of them.
    agents = ArrayField(models.CharField(max_length=200), default=list, db_default=Value("{}"), blank=True)
    status = models.CharField(max_length=20, choices=Status, db_default=Status.PROPOSED, default=Status.PROPOSED)
    provenance = models.CharField(
        max_length=8, choices=Provenance, db_default=Provenance.INFERRED, default=Provenance.INFERRED
    )
    source = models.CharField(max_length=8, choices=Source, db_default=Source.USER, default=Source.USER)
    confidence = models.FloatField(db_default=0.5, default=0.5)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_until = models.DateTimeField(null=True, blank=True)
    revalidate_on = models.DateField(null=True, blank=True)

    # The trigger `gate` computes these three; other writes to them are overwritten.
    version = models.PositiveIntegerField(db_default=1, default=1, editable=False)
    content_hash = models.CharField(max_length=64, db_default="", default="", editable=False)

    # Whether a person approved this text, not only a rule.
    is_verified = models.BooleanField(db_default=False, default=False, editable=False)

    # A proposal to change an approved memory names it, and the version that it was written against.
    replaces = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="proposals", editable=False
    )
    base_version = models.PositiveIntegerField(null=True, blank=True, editable=False)
    # The memory that it changed, or that it was merged into.
    merged_into = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="merged", editable=False
    )

    # The screening version, and the screened text: an edited one is screened again before approval.
    risk_flags = ArrayField(models.CharField(max_length=40), default=list, db_default=Value("{}"), editable=False)
    screened_hash = models.CharField(max_length=64, db_default="", default="", editable=False)

    # Marks for reviewers about other memories; see memories_app.dedup.similarity. The gate does not use them.
    hints = ArrayField(models.CharField(max_length=20), default=list, db_default=Value("{}"), editable=False)

    # The text that was compared with other approved memories, and its subject: of a merged one, the other.
    compared_hash = models.CharField(max_length=64, db_default="", default="", editable=False)
    compared_under = models.UUIDField(null=True, editable=False)

    # Who proposed it: a distiller and its version, an agent's own tool, an import; or a person.
    extractor = models.CharField(max_length=80, db_default="", default="", blank=True)
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    proposed_at = models.DateTimeField(db_default=TransactionNow(), editable=False)
    # Start of the current wait for a decision; earlier approvals do not count.
    awaiting_since = models.DateTimeField(db_default=TransactionNow(), editable=False)
    decided_at = models.DateTimeField(null=True, editable=False)

    # The first of two approvals asks for the second.
    approval = models.OneToOneField(Approval, null=True, blank=True, on_delete=models.PROTECT, editable=False)

    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    claimed_until = models.DateTimeField(null=True, editable=False)
    snoozed_until = models.DateTimeField(null=True, editable=False)

    # The gate clears the vector when the text changes.
    embedding = VectorField(dimensions=DIMENSIONS, null=True, editable=False)
    embedder = models.CharField(max_length=80, db_default="", default="", editable=False)
    embedded_hash = models.CharField(max_length=64, db_default="", default="", editable=False)
    words = models.GeneratedField(
        expression=SearchVector("statement", config="english"), output_field=SearchVectorField(), db_persist=True
    )

    objects = querysets.MemoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "memories"
        constraints: ClassVar = [
            models.CheckConstraint(condition=GreaterThanOrEqual(Length("statement"), 1), name="statement_is_not_empty"),
            models.CheckConstraint(
                condition=LessThanOrEqual(Length("statement"), LONGEST_STATEMENT), name="statement_is_short"
            ),
            # Agents write these rows themselves.
            models.CheckConstraint(
                condition=Q(kind__in=["preference", "fact", "procedure", "note", "summary"]),
                name="memory_kind_is_known",
            ),
            models.CheckConstraint(
                condition=Q(provenance__in=["explicit", "inferred"]), name="memory_provenance_is_known"
            ),
            models.CheckConstraint(
                condition=LessThanOrEqual(Length(Cast("data", models.TextField())), LONGEST_STORED_DATA),
                name="memory_data_is_small",
            ),
            models.CheckConstraint(condition=Q(agents__len__lte=MOST_AGENTS), name="memory_agents_are_few"),
            models.CheckConstraint(
                condition=is_representable("valid_from") & is_representable("valid_until"),
                name="memory_validity_is_readable",
            ),
            models.CheckConstraint(
                condition=Q(agents=[])
                | Q(Exact(Func(F("agents"), function="array_ndims"), 1))
                & Q(Exact(Func(F("agents"), Value(None), function="array_remove"), F("agents"))),
                name="memory_agents_are_a_list",
            ),
            models.CheckConstraint(
                condition=Q(confidence__gte=0.0, confidence__lte=1.0), name="confidence_is_between_0_and_1"
            ),
            models.CheckConstraint(
                condition=Q(replaces__isnull=True, base_version__isnull=True)
                | Q(replaces__isnull=False, base_version__isnull=False),
                name="change_names_its_base",
            ),
        ]
        indexes: ClassVar = [
            # For recalls of runs, lists of subjects, and the search for contradictions.
            models.Index("subject", "status", "kind", "key", name="memory_of_subject"),
            models.Index(
                "awaiting_since",
                "id",
                condition=Q(status__in=["proposed", "needs_revalidation"]),
                name="memory_awaiting",
            ),
            models.Index(
                "awaiting_since",
                "id",
                condition=Q(status__in=["proposed", "needs_revalidation"]) & ~Q(screened_hash=F("content_hash")),
                name="memory_to_screen",
            ),
            models.Index(
                "embedder",
                "id",
                condition=Q(status__in=["proposed", "needs_revalidation", "approved"]),
                name="memory_by_embedder",
            ),
            # Of those, the ones that need two approvers: rare, with a filter of their own.
            models.Index(
                "awaiting_since",
                "id",
                condition=Q(status__in=["proposed", "needs_revalidation"])
                & (Q(subject__isnull=True) | ~Q(risk_flags=[])),
                name="memory_awaiting_two",
            ),
            # Of those, rare kinds and sources; frequent ones are found without an index.
            *(
                models.Index(
                    name,
                    "awaiting_since",
                    "id",
                    condition=Q(status__in=["proposed", "needs_revalidation"]),
                    name=f"memory_awaiting_{name}",
                )
                for name in ("kind", "source")
            ),
            # Of those, the ones marked by comparison with other memories.
            models.Index(
                "awaiting_since",
                "id",
                condition=Q(status__in=["proposed", "needs_revalidation"]) & ~Q(hints=[]),
                name="memory_awaiting_hinted",
            ),
            models.Index("decided_at", condition=Q(status="lapsed"), name="memory_lapsed"),
            models.Index(
                "id", condition=Q(status="approved") & ~Q(compared_hash=F("content_hash")), name="memory_to_compare"
            ),
            # Ends of validity and re-validations, by time.
            models.Index("valid_until", condition=Q(status="approved", valid_until__isnull=False), name="memory_ends"),
            models.Index(
                "revalidate_on",
                condition=Q(status="approved", revalidate_on__isnull=False),
                name="memory_to_revalidate",
            ),
            models.Index("decided_at", condition=Q(status="approved", is_verified=False), name="memory_unverified"),
            models.Index("claimed_by", condition=Q(claimed_by__isnull=False), name="memory_claimed"),
            models.Index(F("proposed_at").desc(), F("id").desc(), name="memory_newest"),
            # One for each filter of the list: a rare value would need a scan of all newer rows.
            *(
                models.Index(name, F("proposed_at").desc(), F("id").desc(), name=f"memory_{name}_newest")
                for name in ("status", "kind", "source")
            ),
            models.Index(
                F("proposed_at").desc(),
                F("id").desc(),
                condition=Q(subject__isnull=True),
                name="memory_shared_newest",
            ),
            # For lists of shared memories that agents read; the expression is that of memadmin.client.listing.
            models.Index(
                Coalesce("decided_at", Cast(Value("-infinity"), models.DateTimeField())).desc(),
                F("id").desc(),
                condition=Q(subject__isnull=True, status="approved"),
                name="memory_shared_by_decision",
            ),
            models.Index("replaces", condition=Q(replaces__isnull=False), name="memory_replaces"),
            # A subject's own memories are compared one by one, which is exact; only shared ones are many.
            HnswIndex(
                fields=["embedding"],
                opclasses=["vector_cosine_ops"],
                name="memory_shared_vectors",
                condition=Q(subject__isnull=True, status="approved"),
            ),
            # fastupdate off: agents write proposals in their own transactions.
            GinIndex(fields=["words"], fastupdate=False, name="memory_words"),
        ]
        triggers: ClassVar = [
            Calling("gate", "memadmin_memory_gate()", before="INSERT", level=pgtrigger.Row),
            Calling("gate_changes", "memadmin_memory_gate()", before="UPDATE", level=pgtrigger.Row),
            Calling("keep_version", "memadmin_keep_version()", after="INSERT", level=pgtrigger.Row),
            Calling("keep_changed_version", "memadmin_keep_version()", after="UPDATE", level=pgtrigger.Row),
            Calling(
                "note_vector",
                "memadmin_note_vector()",
                after="UPDATE",
                level=pgtrigger.Row,
                condition=pgtrigger.Condition(
                    "((OLD.status = 'approved' OR NEW.status = 'approved')"
                    " AND (OLD.status, OLD.embedder, OLD.embedded_hash)"
                    " IS DISTINCT FROM (NEW.status, NEW.embedder, NEW.embedded_hash))"
                ),
            ),
            Calling(
                "note_lost_vector",
                "memadmin_note_vector()",
                after="DELETE",
                level=pgtrigger.Row,
                condition=pgtrigger.Condition("OLD.status = 'approved'"),
            ),
            Calling("ends_approval", "memadmin_end_approval()", after="DELETE", level=pgtrigger.Row),
            *audit.govern(
                "memory",
                columns=[
                    "subject",
                    "kind",
                    "key",
                    "statement",
                    "data",
                    "agents",
                    "status",
                    "provenance",
                    "source",
                    "confidence",
                    "valid_from",
                    "valid_until",
                    "revalidate_on",
                    "version",
                    "is_verified",
                    "replaces",
                    "base_version",
                    "merged_into",
                    "risk_flags",
                    "screened_hash",
                    "extractor",
                    "proposed_by",
                    "awaiting_since",
                    "approval",
                ],
                subject="subject",
                hidden=["key", "statement", "data"],
                agents_add=True,
            ),
        ]
        permissions: ClassVar = [
            ("read_memory", "Can read memories"),
            ("review_memory", "Can review proposals and samples"),
            ("retire_memory", "Can retire memories"),
        ]

    def __str__(self) -> str:
        return f"memory {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("memories:memory", args=[self.pk])

    def proposal_columns(self) -> dict[str, Any]:
        """Arguments of a proposal to change this memory: its details and its data."""
        return {"data": self.data} | {name: getattr(self, name) for name in self.DETAILS}

    @property
    def is_shared(self) -> bool:
        """Whether agents recall it for all subjects."""
        return self.subject_id is None

    @property
    def is_awaiting(self) -> bool:
        return self.status in self.AWAITING

    @property
    def is_screened(self) -> bool:
        """Whether its current text was screened for risks."""
        return bool(self.content_hash) and self.screened_hash == self.content_hash

    @property
    def needs_two(self) -> bool:
        """Whether two people must approve it. The trigger `gate` has the same rule."""
        return self.is_shared or bool(self.risk_flags)


class VectorNote(models.Model):
    """A memory whose vector must be added to or removed from an external index. Written only by the trigger
    `note_vector`, also for deleted memories: so without a foreign key."""

    memory_id = models.UUIDField(primary_key=True)
    # New for each change: a change during processing keeps the note.
    token = models.UUIDField(db_default=RandomUUID())
    noted_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        indexes: ClassVar = [models.Index("noted_at", name="vector_note_oldest")]

    def __str__(self) -> str:
        return f"vector of memory {self.memory_id}"
