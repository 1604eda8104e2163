from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID, TransactionNow
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import migrations, models
from django.db.models import CASCADE, PROTECT, SET_NULL, CheckConstraint, F, Index, Q, UniqueConstraint, Value
from django.db.models.functions import Cast, Coalesce, Length, Now
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual
from pgvector.django import HnswIndex, VectorField

from memories_app.vector_column import CreateExtensionIfPossible, MakeVectorColumn

USER = settings.AUTH_USER_MODEL
KINDS = [
    ("preference", "preference"),
    ("fact", "fact"),
    ("procedure", "procedure"),
    ("note", "note"),
    ("summary", "summary"),
]
SOURCES = [
    ("user", "user source"),
    ("tool", "tool source"),
    ("web", "web source"),
    ("operator", "operator source"),
    ("import", "import"),
]
WAITING = ["proposed", "needs_revalidation"]
NEWEST = (F("proposed_at").desc(), F("id").desc())


class Migration(migrations.Migration):
    """Memories, their evidence and the decisions about them, with the type of vectors."""

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(USER),
        ("sessions_app", "0001_model_tables"),
    ]

    operations = [
        CreateExtensionIfPossible(),
        migrations.CreateModel(
            name="LearningStop",
            fields=[
                (
                    "subject",
                    models.OneToOneField(
                        "sessions_app.subject", CASCADE, primary_key=True, related_name="learning_stop", serialize=False
                    ),
                ),
                ("since", models.DateTimeField(db_default=Now(), editable=False)),
            ],
            options={"permissions": [("stop_learning", "Can stop and allow learning about a subject")]},
        ),
        migrations.CreateModel(
            name="NoDigest",
            fields=[
                ("person", models.OneToOneField(USER, CASCADE, primary_key=True, related_name="+", serialize=False))
            ],
        ),
        migrations.CreateModel(
            name="ApprovalRule",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=120, unique=True)),
                (
                    "kinds",
                    ArrayField(models.CharField(choices=KINDS, max_length=16), db_default=Value("{}"), default=list),
                ),
                (
                    "provenance",
                    models.CharField(
                        blank=True,
                        choices=[("explicit", "explicit"), ("inferred", "inferred")],
                        db_default="",
                        default="",
                        max_length=8,
                    ),
                ),
                (
                    "sources",
                    ArrayField(models.CharField(choices=SOURCES, max_length=8), db_default=Value("{}"), default=list),
                ),
                ("extractor", models.CharField(blank=True, db_default="", default="", max_length=80)),
                ("min_confidence", models.FloatField(db_default=0.9, default=0.9)),
                (
                    "sample_percent",
                    models.PositiveSmallIntegerField(
                        db_default=10,
                        default=10,
                        help_text="Percentage of approved proposals that a reviewer checks afterwards.",
                    ),
                ),
                ("is_active", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("created_by", models.ForeignKey(USER, SET_NULL, editable=False, null=True, related_name="+")),
            ],
            options={
                "ordering": ["name", "pk"],
                "constraints": [
                    CheckConstraint(
                        condition=Q(("min_confidence__gte", 0.0), ("min_confidence__lte", 1.0)),
                        name="rule_confidence_is_between_0_and_1",
                    ),
                    CheckConstraint(condition=Q(("sample_percent__lte", 100)), name="sample_is_a_percentage"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Digest",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("on", models.DateField()),
                ("way", models.CharField(choices=[("mail", "e-mail"), ("webhook", "webhook")], max_length=8)),
                ("tries", models.PositiveIntegerField(db_default=0, default=0)),
                ("try_at", models.DateTimeField(db_default=Now())),
                ("sent_at", models.DateTimeField(null=True)),
            ],
            options={"constraints": [UniqueConstraint(fields=("on", "way"), name="digest_once_a_day")]},
        ),
        migrations.CreateModel(
            name="Distillation",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("record_id", models.UUIDField()),
                ("session_id", models.CharField()),
                ("distiller", models.CharField(max_length=80)),
                ("read_up_to", models.BigIntegerField(db_default=0, default=0)),
                ("last_item_id", models.CharField(db_default="", default="", max_length=200)),
                ("last_item_hash", models.CharField(db_default="", default="", max_length=64)),
                ("began_at", models.DateTimeField(db_default=Now())),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("done", "done"),
                            ("nonsense", "unreadable answer"),
                            ("timed_out", "timed out"),
                            ("failed", "failed"),
                            ("refused", "learning not allowed"),
                        ],
                        db_default="running",
                        default="running",
                        max_length=12,
                    ),
                ),
                ("model_calls", models.PositiveIntegerField(db_default=0, default=0)),
                ("input_tokens", models.PositiveBigIntegerField(db_default=0, default=0)),
                ("output_tokens", models.PositiveBigIntegerField(db_default=0, default=0)),
                ("proposal_count", models.PositiveIntegerField(db_default=0, default=0)),
                ("left_out", models.JSONField(db_default=Value({}, models.JSONField()), default=dict)),
            ],
            options={
                "indexes": [
                    Index("record_id", F("began_at").desc(), name="distillation_of_session"),
                    Index(F("began_at").desc(), F("id").desc(), name="distillation_newest"),
                ]
            },
        ),
        migrations.CreateModel(
            name="Memory",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("kind", models.CharField(choices=KINDS, max_length=16)),
                ("key", models.CharField(blank=True, db_default="", max_length=80)),
                ("statement", models.TextField(help_text="The exact text that agents read.")),
                ("data", models.JSONField(blank=True, db_default=Value({}, models.JSONField()), default=dict)),
                (
                    "agents",
                    ArrayField(models.CharField(max_length=200), blank=True, db_default=Value("{}"), default=list),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("proposed", "proposed"),
                            ("approved", "approved"),
                            ("needs_revalidation", "needs re-validation"),
                            ("rejected", "rejected"),
                            ("merged", "merged"),
                            ("superseded", "superseded"),
                            ("expired", "expired"),
                            ("retired", "retired"),
                            ("lapsed", "expired unreviewed"),
                        ],
                        db_default="proposed",
                        default="proposed",
                        max_length=20,
                    ),
                ),
                (
                    "provenance",
                    models.CharField(
                        choices=[("explicit", "explicit"), ("inferred", "inferred")],
                        db_default="inferred",
                        default="inferred",
                        max_length=8,
                    ),
                ),
                ("source", models.CharField(choices=SOURCES, db_default="user", default="user", max_length=8)),
                ("confidence", models.FloatField(db_default=0.5, default=0.5)),
                ("valid_from", models.DateTimeField(blank=True, null=True)),
                ("valid_until", models.DateTimeField(blank=True, null=True)),
                ("revalidate_on", models.DateField(blank=True, null=True)),
                ("version", models.PositiveIntegerField(db_default=1, default=1, editable=False)),
                ("content_hash", models.CharField(db_default="", default="", editable=False, max_length=64)),
                ("is_verified", models.BooleanField(db_default=False, default=False, editable=False)),
                ("base_version", models.PositiveIntegerField(blank=True, editable=False, null=True)),
                (
                    "risk_flags",
                    ArrayField(models.CharField(max_length=40), db_default=Value("{}"), default=list, editable=False),
                ),
                ("screened_hash", models.CharField(db_default="", default="", editable=False, max_length=64)),
                (
                    "hints",
                    ArrayField(models.CharField(max_length=20), db_default=Value("{}"), default=list, editable=False),
                ),
                ("compared_hash", models.CharField(db_default="", default="", editable=False, max_length=64)),
                ("compared_under", models.UUIDField(editable=False, null=True)),
                ("extractor", models.CharField(blank=True, db_default="", default="", max_length=80)),
                ("proposed_at", models.DateTimeField(db_default=TransactionNow(), editable=False)),
                ("awaiting_since", models.DateTimeField(db_default=TransactionNow(), editable=False)),
                ("decided_at", models.DateTimeField(editable=False, null=True)),
                ("claimed_until", models.DateTimeField(editable=False, null=True)),
                ("snoozed_until", models.DateTimeField(editable=False, null=True)),
                # Of vectors below, where the database has pgvector.
                ("embedding", models.TextField(editable=False, null=True)),
                ("embedder", models.CharField(db_default="", default="", editable=False, max_length=80)),
                ("embedded_hash", models.CharField(db_default="", default="", editable=False, max_length=64)),
                (
                    "words",
                    models.GeneratedField(
                        db_persist=True,
                        expression=SearchVector("statement", config="english"),
                        output_field=SearchVectorField(),
                    ),
                ),
                (
                    "claimed_by",
                    models.ForeignKey(USER, SET_NULL, blank=True, editable=False, null=True, related_name="+"),
                ),
                (
                    "merged_into",
                    models.ForeignKey(
                        "memories_app.memory", SET_NULL, blank=True, editable=False, null=True, related_name="merged"
                    ),
                ),
                (
                    "proposed_by",
                    models.ForeignKey(USER, SET_NULL, blank=True, editable=False, null=True, related_name="+"),
                ),
                (
                    "replaces",
                    models.ForeignKey(
                        "memories_app.memory", CASCADE, blank=True, editable=False, null=True, related_name="proposals"
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        "sessions_app.subject", PROTECT, blank=True, db_index=False, null=True, related_name="memories"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "memories",
                "permissions": [
                    ("read_memory", "Can read memories"),
                    ("review_memory", "Can review proposals and samples"),
                    ("retire_memory", "Can retire memories"),
                ],
                "indexes": [
                    Index("subject", "status", "kind", "key", name="memory_of_subject"),
                    Index("awaiting_since", "id", condition=Q(("status__in", WAITING)), name="memory_awaiting"),
                    Index(
                        "awaiting_since",
                        "id",
                        condition=Q(("status__in", WAITING), Q(("screened_hash", F("content_hash")), _negated=True)),
                        name="memory_to_screen",
                    ),
                    Index(
                        "embedder",
                        "id",
                        condition=Q(("status__in", ["proposed", "needs_revalidation", "approved"])),
                        name="memory_by_embedder",
                    ),
                    Index(
                        "awaiting_since",
                        "id",
                        condition=Q(
                            ("status__in", WAITING),
                            Q(("subject__isnull", True), Q(("risk_flags", []), _negated=True), _connector="OR"),
                        ),
                        name="memory_awaiting_two",
                    ),
                    Index(
                        "kind",
                        "awaiting_since",
                        "id",
                        condition=Q(("status__in", WAITING)),
                        name="memory_awaiting_kind",
                    ),
                    Index(
                        "source",
                        "awaiting_since",
                        "id",
                        condition=Q(("status__in", WAITING)),
                        name="memory_awaiting_source",
                    ),
                    Index(
                        "awaiting_since",
                        "id",
                        condition=Q(("status__in", WAITING), Q(("hints", []), _negated=True)),
                        name="memory_awaiting_hinted",
                    ),
                    Index("decided_at", condition=Q(("status", "lapsed")), name="memory_lapsed"),
                    Index(
                        "id",
                        condition=Q(("status", "approved"), Q(("compared_hash", F("content_hash")), _negated=True)),
                        name="memory_to_compare",
                    ),
                    Index(
                        "valid_until",
                        condition=Q(("status", "approved"), ("valid_until__isnull", False)),
                        name="memory_ends",
                    ),
                    Index(
                        "revalidate_on",
                        condition=Q(("revalidate_on__isnull", False), ("status", "approved")),
                        name="memory_to_revalidate",
                    ),
                    Index(
                        "decided_at",
                        condition=Q(("is_verified", False), ("status", "approved")),
                        name="memory_unverified",
                    ),
                    Index("claimed_by", condition=Q(("claimed_by__isnull", False)), name="memory_claimed"),
                    Index(*NEWEST, name="memory_newest"),
                    Index("status", *NEWEST, name="memory_status_newest"),
                    Index("kind", *NEWEST, name="memory_kind_newest"),
                    Index("source", *NEWEST, name="memory_source_newest"),
                    Index(*NEWEST, condition=Q(("subject__isnull", True)), name="memory_shared_newest"),
                    Index(
                        models.OrderBy(
                            Coalesce("decided_at", Cast(Value("-infinity"), models.DateTimeField())), descending=True
                        ),
                        F("id").desc(),
                        condition=Q(("status", "approved"), ("subject__isnull", True)),
                        name="memory_shared_by_decision",
                    ),
                    Index("replaces", condition=Q(("replaces__isnull", False)), name="memory_replaces"),
                    GinIndex(fastupdate=False, fields=["words"], name="memory_words"),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=GreaterThanOrEqual(Length("statement"), 1), name="statement_is_not_empty"
                    ),
                    CheckConstraint(condition=LessThanOrEqual(Length("statement"), 2000), name="statement_is_short"),
                    CheckConstraint(
                        condition=Q(("kind__in", ["preference", "fact", "procedure", "note", "summary"])),
                        name="memory_kind_is_known",
                    ),
                    CheckConstraint(
                        condition=Q(("provenance__in", ["explicit", "inferred"])), name="memory_provenance_is_known"
                    ),
                    CheckConstraint(
                        condition=LessThanOrEqual(Length(Cast("data", models.TextField())), 40000),
                        name="memory_data_is_small",
                    ),
                    CheckConstraint(condition=Q(("agents__len__lte", 50)), name="memory_agents_are_few"),
                    CheckConstraint(
                        condition=Q(("confidence__gte", 0.0), ("confidence__lte", 1.0)),
                        name="confidence_is_between_0_and_1",
                    ),
                    CheckConstraint(
                        condition=Q(
                            Q(("base_version__isnull", True), ("replaces__isnull", True)),
                            Q(("base_version__isnull", False), ("replaces__isnull", False)),
                            _connector="OR",
                        ),
                        name="change_names_its_base",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryVersion",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("statement", models.TextField(blank=True)),
                ("data", models.JSONField(db_default=Value({}, models.JSONField()))),
                ("content_hash", models.CharField(max_length=64)),
                ("author_kind", models.CharField(db_default="", max_length=16)),
                ("author_ref", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("erased_at", models.DateTimeField(null=True)),
                ("memory", models.ForeignKey("memories_app.memory", CASCADE, db_index=False, related_name="versions")),
            ],
            options={
                "permissions": [("erase_version", "Can erase the text of a version of a memory")],
                "constraints": [
                    UniqueConstraint(fields=("memory", "number"), name="version_of_memory"),
                    CheckConstraint(
                        condition=Q(("erased_at__isnull", True), Q(("data", {}), ("statement", "")), _connector="OR"),
                        name="erased_version_has_no_text",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Recall",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("record_id", models.UUIDField(null=True)),
                ("session_id", models.CharField(blank=True, db_default="", default="")),
                ("agent", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("embedder", models.CharField(blank=True, db_default="", default="", max_length=80)),
                ("token_budget", models.PositiveIntegerField(db_default=0, default=0)),
                ("token_count", models.PositiveIntegerField(db_default=0, default=0)),
                ("recalled_at", models.DateTimeField(db_default=TransactionNow())),
                (
                    "subject",
                    models.ForeignKey(
                        "sessions_app.subject", PROTECT, blank=True, db_index=False, null=True, related_name="recalls"
                    ),
                ),
            ],
            options={
                "indexes": [
                    Index("record_id", "recalled_at", name="recall_in_session"),
                    Index("subject", F("recalled_at").desc(), name="recall_for_subject"),
                    Index("recalled_at", "id", name="recall_oldest"),
                ]
            },
        ),
        migrations.CreateModel(
            name="RecalledMemory",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                ("place", models.PositiveSmallIntegerField()),
                ("score", models.FloatField(db_default=0.0, default=0.0)),
                ("recalled_at", models.DateTimeField(db_default=TransactionNow())),
                (
                    "memory",
                    models.ForeignKey(
                        "memories_app.memory", SET_NULL, db_index=False, null=True, related_name="recalls"
                    ),
                ),
                ("recall", models.ForeignKey("memories_app.recall", CASCADE, db_index=False, related_name="memories")),
            ],
            options={
                "indexes": [
                    Index("recall", "place", name="memories_of_recall"),
                    Index("memory", F("recalled_at").desc(), name="recalls_of_memory"),
                ]
            },
        ),
        migrations.CreateModel(
            name="Review",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                (
                    "decision",
                    models.CharField(
                        choices=[
                            ("approve", "approved"),
                            ("reject", "rejected"),
                            ("merge", "merged"),
                            ("retire", "retired"),
                        ],
                        max_length=8,
                    ),
                ),
                ("reason_code", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("note", models.CharField(blank=True, db_default="", default="", max_length=1000)),
                ("content_hash", models.CharField(max_length=64)),
                ("was_edited", models.BooleanField(db_default=False, default=False)),
                ("is_sample", models.BooleanField(db_default=False, default=False)),
                ("agreed", models.BooleanField(null=True)),
                ("waited", models.DurationField(null=True)),
                ("decided_at", models.DateTimeField(db_default=Now())),
                ("undone_at", models.DateTimeField(null=True)),
                ("before", models.JSONField(null=True)),
                ("memory", models.ForeignKey("memories_app.memory", CASCADE, db_index=False, related_name="reviews")),
                ("reviewer", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("rule", models.ForeignKey("memories_app.approvalrule", PROTECT, null=True, related_name="+")),
            ],
            options={
                "indexes": [
                    Index("memory", "decided_at", name="review_of_memory"),
                    Index(F("decided_at").desc(), F("id").desc(), name="review_newest"),
                    Index(
                        "rule", condition=Q(("agreed__isnull", True), ("is_sample", True)), name="review_samples_to_see"
                    ),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(("rule__isnull", True), ("reviewer__isnull", True), _connector="OR"),
                        name="a_person_or_a_rule_decides",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Signal",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("record_id", models.UUIDField(null=True)),
                ("session_id", models.CharField(blank=True, db_default="", default="")),
                ("item_id", models.CharField(blank=True, db_default="", default="", max_length=200)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("correction", "correction"),
                            ("preference", "preference"),
                            ("outcome", "outcome"),
                            ("rating", "rating"),
                            ("feedback", "operator feedback"),
                        ],
                        max_length=12,
                    ),
                ),
                ("value", models.SmallIntegerField(null=True)),
                ("text", models.TextField(blank=True, db_default="", default="")),
                ("agent", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("distilled_at", models.DateTimeField(editable=False, null=True)),
                (
                    "given_by",
                    models.ForeignKey(USER, SET_NULL, blank=True, editable=False, null=True, related_name="+"),
                ),
                (
                    "memory",
                    models.ForeignKey(
                        "memories_app.memory", CASCADE, db_index=False, null=True, related_name="signals"
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        "sessions_app.subject", PROTECT, blank=True, db_index=False, null=True, related_name="signals"
                    ),
                ),
            ],
            options={
                "indexes": [
                    Index("record_id", "item_id", name="signal_of_item"),
                    Index("subject", F("created_at").desc(), name="signal_of_subject"),
                    Index("memory", condition=Q(("memory__isnull", False)), name="signal_of_memory"),
                    Index("created_at", "id", name="signal_oldest"),
                    Index("created_at", "id", condition=Q(("distilled_at__isnull", True)), name="signal_to_distil"),
                ],
                "constraints": [
                    CheckConstraint(condition=LessThanOrEqual(Length("text"), 4000), name="signal_is_short"),
                    CheckConstraint(
                        condition=Q(("kind__in", ["correction", "preference", "outcome", "rating", "feedback"])),
                        name="signal_kind_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Evidence",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField(db_default=1, default=1)),
                ("record_id", models.UUIDField(null=True)),
                ("session_id", models.CharField(blank=True, db_default="", default="")),
                ("item_id", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("speaker", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("quote", models.TextField(blank=True, db_default="", default="")),
                ("quote_hash", models.CharField(db_default="", default="", editable=False, max_length=64)),
                ("said_at", models.DateTimeField(null=True)),
                ("tools", ArrayField(models.CharField(max_length=200), blank=True, null=True)),
                ("said_by_user", models.BooleanField(editable=False, null=True)),
                ("gone_at", models.DateTimeField(null=True)),
                ("memory", models.ForeignKey("memories_app.memory", CASCADE, db_index=False, related_name="evidence")),
                ("signal", models.ForeignKey("memories_app.signal", SET_NULL, null=True, related_name="+")),
            ],
            options={
                "verbose_name_plural": "evidence",
                "indexes": [
                    Index("memory", "version", name="evidence_of_memory"),
                    Index("record_id", "item_id", name="evidence_of_item"),
                    GinIndex(fields=["tools"], name="evidence_by_tool"),
                ],
                "constraints": [
                    CheckConstraint(condition=LessThanOrEqual(Length("quote"), 4000), name="quote_is_short"),
                    CheckConstraint(
                        condition=Q(("gone_at__isnull", True), ("quote", ""), _connector="OR"),
                        name="gone_evidence_has_no_quote",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="VectorNote",
            fields=[
                ("memory_id", models.UUIDField(primary_key=True, serialize=False)),
                ("token", models.UUIDField(db_default=RandomUUID())),
                ("noted_at", models.DateTimeField(db_default=Now())),
            ],
            options={"indexes": [Index("noted_at", name="vector_note_oldest")]},
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[MakeVectorColumn()],
            state_operations=[
                migrations.AlterField("memory", "embedding", VectorField(dimensions=256, editable=False, null=True)),
                migrations.AddIndex(
                    "memory",
                    HnswIndex(
                        condition=Q(("status", "approved"), ("subject__isnull", True)),
                        fields=["embedding"],
                        name="memory_shared_vectors",
                        opclasses=["vector_cosine_ops"],
                    ),
                ),
            ],
        ),
    ]
