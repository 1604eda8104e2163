"""A memory: what agents may know, or want to.

Agents insert proposals under a role of their own and see nothing that nobody approved: row policies and the trigger
`gate` hold that (migrations), whatever Python does. So every column an agent does not write has a database default, and
no key is a number from a sequence.
"""

from __future__ import annotations

from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID, TransactionNow
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Cast, Length, Now
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual
from django.urls import reverse
from pgvector.django import HnswIndex, VectorField

from memadmin import audit
from memadmin.audit.log.triggers import Calling
from memories_app.models import querysets
from sessions_app.models import Subject

DIMENSIONS = 256
"""Of every vector, whichever embedder made it."""

LONGEST_STATEMENT = 2000
"""In characters. A statement goes into prompts: what is longer is a document, and refused."""


MOST_AGENTS = 50

LONGEST_DATA = 40_000
"""In characters as PostgreSQL writes it out, which may be twice as many as those that Python counts."""


class Memory(models.Model):
    """What agents may know, or want to: one statement about a subject, or about none and then shared by all."""

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
        # A proposal that nobody decided about in time.
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

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    subject = models.ForeignKey(
        Subject, null=True, blank=True, on_delete=models.PROTECT, db_index=False, related_name="memories"
    )
    kind = models.CharField(max_length=16, choices=Kind)
    # Of what it speaks, such as `refund_method`: two memories of one subject, kind and key contradict each other.
    key = models.CharField(max_length=80, db_default="", blank=True)
    statement = models.TextField(help_text="What agents read, word for word.")
    data = models.JSONField(default=dict, db_default=Value({}, models.JSONField()), blank=True)
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

    # The trigger `gate` counts and computes these three; what anybody else writes into them is lost.
    version = models.PositiveIntegerField(db_default=1, default=1, editable=False)
    content_hash = models.CharField(max_length=64, db_default="", default="", editable=False)

    # Whether a person approved this text, and not a rule alone.
    is_verified = models.BooleanField(db_default=False, default=False, editable=False)

    # A proposal to change an approved memory names it, and the version that it was written against.
    replaces = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="proposals", editable=False
    )
    base_version = models.PositiveIntegerField(null=True, blank=True, editable=False)
    # Where its text went: the memory that it changed, or that it was merged into.
    merged_into = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="merged", editable=False
    )

    # What looked for risks, and in which text: an edited one is looked at again before anybody approves it.
    risk_flags = ArrayField(models.CharField(max_length=40), default=list, db_default=Value("{}"), editable=False)
    screened_hash = models.CharField(max_length=64, db_default="", default="", editable=False)

    # How a proposal stands to others, for who decides; see memories_app.dedup.similarity. The gate does not ask for it.
    hints = ArrayField(models.CharField(max_length=20), default=list, db_default=Value("{}"), editable=False)

    # Which text of it was held against what else is approved, and about whom that was: of one who is merged, the other.
    compared_hash = models.CharField(max_length=64, db_default="", default="", editable=False)
    compared_under = models.UUIDField(null=True, editable=False)

    # Who proposed it: a distiller and its version, an agent's own tool, an import; or a person.
    extractor = models.CharField(max_length=80, db_default="", default="", blank=True)
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    proposed_at = models.DateTimeField(db_default=TransactionNow(), editable=False)
    # Since when it waits for a decision, this time; approvals from before do not count.
    awaiting_since = models.DateTimeField(db_default=TransactionNow(), editable=False)
    decided_at = models.DateTimeField(null=True, editable=False)

    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    claimed_until = models.DateTimeField(null=True, editable=False)
    snoozed_until = models.DateTimeField(null=True, editable=False)

    # The gate forgets a vector whose text has changed.
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
            # Agents write these rows in their own words.
            models.CheckConstraint(
                condition=Q(kind__in=["preference", "fact", "procedure", "note", "summary"]),
                name="memory_kind_is_known",
            ),
            models.CheckConstraint(
                condition=Q(provenance__in=["explicit", "inferred"]), name="memory_provenance_is_known"
            ),
            models.CheckConstraint(
                condition=LessThanOrEqual(Length(Cast("data", models.TextField())), LONGEST_DATA),
                name="memory_data_is_small",
            ),
            models.CheckConstraint(condition=Q(agents__len__lte=MOST_AGENTS), name="memory_agents_are_few"),
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
            # What a run recalls, what a subject's page lists, and where a contradiction is looked for.
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
            # Of those, what takes two people: rare, and looked for by itself.
            models.Index(
                "awaiting_since",
                "id",
                condition=Q(status__in=["proposed", "needs_revalidation"])
                & (Q(subject__isnull=True) | ~Q(risk_flags=[])),
                name="memory_awaiting_two",
            ),
            # Of those, what few are of: a kind or source that many have would be found without.
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
            # Of those, what the look at other memories marked.
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
            # What comes to its end, or back to the queue, by time.
            models.Index("valid_until", condition=Q(status="approved", valid_until__isnull=False), name="memory_ends"),
            models.Index(
                "revalidate_on",
                condition=Q(status="approved", revalidate_on__isnull=False),
                name="memory_to_revalidate",
            ),
            models.Index("decided_at", condition=Q(status="approved", is_verified=False), name="memory_unverified"),
            models.Index("claimed_by", condition=Q(claimed_by__isnull=False), name="memory_claimed"),
            models.Index(F("proposed_at").desc(), F("id").desc(), name="memory_newest"),
            # One for each filter of the list: a rare value would be found by walking over everything newer.
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
            models.Index("replaces", condition=Q(replaces__isnull=False), name="memory_replaces"),
            # A subject's own memories are compared one by one, which is exact; only what all share is many.
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
                ],
                subject="subject",
                hidden=["key", "statement", "data"],
                agents_add=True,
            ),
        ]
        permissions: ClassVar = [
            ("read_memory", "Can read what agents learned"),
            ("review_memory", "Can decide which memories agents may use"),
            ("retire_memory", "Can stop agents from recalling memories"),
        ]

    def __str__(self) -> str:
        return f"memory {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("memories:memory", args=[self.pk])

    @property
    def is_shared(self) -> bool:
        """Whether agents recall it for everybody."""
        return self.subject_id is None

    @property
    def is_awaiting(self) -> bool:
        return self.status in self.AWAITING

    @property
    def is_screened(self) -> bool:
        """Whether risks were looked for in the text that it has now."""
        return bool(self.content_hash) and self.screened_hash == self.content_hash

    @property
    def needs_two(self) -> bool:
        """Whether two people must approve it. The trigger `gate` holds the same rule."""
        return self.is_shared or bool(self.risk_flags)


class VectorNote(models.Model):
    """A memory whose vector another index than the database's has to take in or let go. Written by the trigger
    `note_vector` alone, also where a memory is deleted: so without a foreign key."""

    memory_id = models.UUIDField(primary_key=True)
    # Another one for each change: what changed again while it was carried over stays noted.
    token = models.UUIDField(db_default=RandomUUID())
    noted_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes: ClassVar = [models.Index("noted_at", name="vector_note_oldest")]

    def __str__(self) -> str:
        return f"vector of memory {self.memory_id}"
