import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.db.models.lookups
import pgtrigger.compiler
import pgtrigger.migrations
import pgvector.django.indexes
import pgvector.django.vector
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Memories, who decided about them, what they came from, and who was told."""

    dependencies = [
        ("memories_app", "0001_functions"),
        ("sessions_app", "0014_register_sessions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        pgvector.django.VectorExtension(),
        migrations.CreateModel(
            name="Evidence",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("version", models.PositiveIntegerField(db_default=1, default=1)),
                ("record_id", models.UUIDField(null=True)),
                ("session_id", models.CharField(blank=True, db_default="", default="")),
                ("item_id", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("speaker", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("quote", models.TextField(blank=True, db_default="", default="")),
                ("quote_hash", models.CharField(db_default="", default="", editable=False, max_length=64)),
                ("said_at", models.DateTimeField(null=True)),
                ("gone_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "evidence",
            },
        ),
        migrations.CreateModel(
            name="LearningStop",
            fields=[
                (
                    "subject",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="learning_stop",
                        serialize=False,
                        to="sessions_app.subject",
                    ),
                ),
                ("since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                "permissions": [("stop_learning", "Can say that nothing is to be learned from a subject")],
            },
        ),
        migrations.CreateModel(
            name="Memory",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("preference", "preference"),
                            ("fact", "fact"),
                            ("procedure", "procedure"),
                            ("note", "note"),
                            ("summary", "summary"),
                        ],
                        max_length=16,
                    ),
                ),
                ("key", models.CharField(blank=True, db_default="", max_length=80)),
                ("statement", models.TextField(help_text="What agents read, word for word.")),
                ("data", models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict)),
                (
                    "agents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        blank=True,
                        db_default=models.Value("{}"),
                        default=list,
                        size=None,
                    ),
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
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("user", "user source"),
                            ("tool", "tool source"),
                            ("web", "web source"),
                            ("operator", "operator source"),
                            ("import", "import"),
                        ],
                        db_default="user",
                        default="user",
                        max_length=8,
                    ),
                ),
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
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40),
                        db_default=models.Value("{}"),
                        default=list,
                        editable=False,
                        size=None,
                    ),
                ),
                ("screened_hash", models.CharField(db_default="", default="", editable=False, max_length=64)),
                ("extractor", models.CharField(blank=True, db_default="", default="", max_length=80)),
                (
                    "proposed_at",
                    models.DateTimeField(db_default=django.contrib.postgres.functions.TransactionNow(), editable=False),
                ),
                (
                    "awaiting_since",
                    models.DateTimeField(db_default=django.contrib.postgres.functions.TransactionNow(), editable=False),
                ),
                ("decided_at", models.DateTimeField(editable=False, null=True)),
                ("claimed_until", models.DateTimeField(editable=False, null=True)),
                ("snoozed_until", models.DateTimeField(editable=False, null=True)),
                ("embedding", pgvector.django.vector.VectorField(dimensions=256, editable=False, null=True)),
                ("embedder", models.CharField(db_default="", default="", editable=False, max_length=80)),
                ("embedded_hash", models.CharField(db_default="", default="", editable=False, max_length=64)),
                (
                    "words",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django.contrib.postgres.search.SearchVector("statement", config="english"),
                        output_field=django.contrib.postgres.search.SearchVectorField(),
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "memories",
                "permissions": [
                    ("read_memory", "Can read what agents learned"),
                    ("review_memory", "Can decide which memories agents may use"),
                    ("retire_memory", "Can stop agents from recalling memories"),
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryVersion",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("statement", models.TextField(blank=True)),
                ("data", models.JSONField(db_default=models.Value({}, models.JSONField()))),
                ("content_hash", models.CharField(max_length=64)),
                ("author_kind", models.CharField(db_default="", max_length=16)),
                ("author_ref", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("erased_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Recall",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("record_id", models.UUIDField(null=True)),
                ("session_id", models.CharField(blank=True, db_default="", default="")),
                ("agent", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("embedder", models.CharField(blank=True, db_default="", default="", max_length=80)),
                ("token_budget", models.PositiveIntegerField(db_default=0, default=0)),
                ("token_count", models.PositiveIntegerField(db_default=0, default=0)),
                ("recalled_at", models.DateTimeField(db_default=django.contrib.postgres.functions.TransactionNow())),
            ],
        ),
        migrations.CreateModel(
            name="RecalledMemory",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("version", models.PositiveIntegerField()),
                ("place", models.PositiveSmallIntegerField()),
                ("score", models.FloatField(db_default=0.0, default=0.0)),
                ("recalled_at", models.DateTimeField(db_default=django.contrib.postgres.functions.TransactionNow())),
            ],
        ),
        migrations.CreateModel(
            name="Review",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
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
                ("decided_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("undone_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(blank=True, db_default="", default="", max_length=500)),
            ],
            options={
                "ordering": ["name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Signal",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
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
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("distilled_at", models.DateTimeField(editable=False, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="ApprovalRule",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=120, unique=True)),
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("preference", "preference"),
                                ("fact", "fact"),
                                ("procedure", "procedure"),
                                ("note", "note"),
                                ("summary", "summary"),
                            ],
                            max_length=16,
                        ),
                        db_default=models.Value("{}"),
                        default=list,
                        size=None,
                    ),
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
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("user", "user source"),
                                ("tool", "tool source"),
                                ("web", "web source"),
                                ("operator", "operator source"),
                                ("import", "import"),
                            ],
                            max_length=8,
                        ),
                        db_default=models.Value("{}"),
                        default=list,
                        size=None,
                    ),
                ),
                ("extractor", models.CharField(blank=True, db_default="", default="", max_length=80)),
                ("min_confidence", models.FloatField(db_default=0.9, default=0.9)),
                (
                    "sample_percent",
                    models.PositiveSmallIntegerField(
                        db_default=10, default=10, help_text="How many of a hundred a person sees all the same."
                    ),
                ),
                ("is_active", models.BooleanField(db_default=False, default=False)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Distillation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("record_id", models.UUIDField()),
                ("session_id", models.CharField()),
                ("distiller", models.CharField(max_length=80)),
                ("read_up_to", models.BigIntegerField(db_default=0, default=0)),
                ("began_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("done", "done"),
                            ("nonsense", "answered what cannot be read"),
                            ("timed_out", "took too long"),
                            ("failed", "failed"),
                            ("refused", "nothing may be learned here"),
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
            ],
            options={
                "indexes": [
                    models.Index(
                        models.F("record_id"),
                        models.OrderBy(models.F("began_at"), descending=True),
                        name="distillation_of_session",
                    ),
                    models.Index(
                        models.OrderBy(models.F("began_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="distillation_newest",
                    ),
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="learningstop",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('learning_stop', 'memories_app.learningstop', 'subject_id', 'ref', 'subject_id', 'subject_id', '')",
                    func="RETURN NULL;",
                    hash="1e07ed235973068d4ed5866028b0fce8aef9d030",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_27908",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_learningstop",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="learningstop",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('learning_stop', 'memories_app.learningstop', 'subject_id', 'ref', 'subject_id', 'subject_id', '')",
                    func="RETURN NULL;",
                    hash="22c0e32ce689300a17c63c89f629b44df05d9e8e",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_8ac67",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_learningstop",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="learningstop",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('learning_stop', 'memories_app.learningstop', 'subject_id', 'ref', 'subject_id', 'subject_id', '')",
                    func="RETURN NULL;",
                    hash="2e14fdb4ffdb3d741a784600b47089532adc473c",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_99452",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_learningstop",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="learningstop",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('learning_stop', 'memories_app.learningstop', 'subject_id', 'ref', 'subject_id', 'subject_id', '')",
                    func="RETURN NULL;",
                    hash="97b3cedeff3478b2f9efcbbb94aac3883957163a",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_1aaa6",
                    table="memories_app_learningstop",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddField(
            model_name="memory",
            name="claimed_by",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="memory",
            name="merged_into",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="merged",
                to="memories_app.memory",
            ),
        ),
        migrations.AddField(
            model_name="memory",
            name="proposed_by",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="memory",
            name="replaces",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="proposals",
                to="memories_app.memory",
            ),
        ),
        migrations.AddField(
            model_name="memory",
            name="subject",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="memories",
                to="sessions_app.subject",
            ),
        ),
        migrations.AddField(
            model_name="evidence",
            name="memory",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="evidence",
                to="memories_app.memory",
            ),
        ),
        migrations.AddField(
            model_name="memoryversion",
            name="memory",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="versions",
                to="memories_app.memory",
            ),
        ),
        migrations.AddField(
            model_name="recall",
            name="subject",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="recalls",
                to="sessions_app.subject",
            ),
        ),
        migrations.AddField(
            model_name="recalledmemory",
            name="memory",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="recalls",
                to="memories_app.memory",
            ),
        ),
        migrations.AddField(
            model_name="recalledmemory",
            name="recall",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="memories",
                to="memories_app.recall",
            ),
        ),
        migrations.AddField(
            model_name="review",
            name="memory",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="reviews",
                to="memories_app.memory",
            ),
        ),
        migrations.AddField(
            model_name="review",
            name="reviewer",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="review",
            name="rule",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="memories_app.approvalrule"
            ),
        ),
        migrations.AddField(
            model_name="savedview",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="signal",
            name="given_by",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="signal",
            name="memory",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="signals",
                to="memories_app.memory",
            ),
        ),
        migrations.AddField(
            model_name="signal",
            name="subject",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="signals",
                to="sessions_app.subject",
            ),
        ),
        migrations.AddField(
            model_name="evidence",
            name="signal",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="memories_app.signal"
            ),
        ),
        migrations.AddConstraint(
            model_name="approvalrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("min_confidence__gte", 0.0), ("min_confidence__lte", 1.0)),
                name="rule_confidence_is_between_0_and_1",
            ),
        ),
        migrations.AddConstraint(
            model_name="approvalrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("sample_percent__lte", 100)), name="sample_is_a_percentage"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="approvalrule",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('approval_rule', 'memories_app.approvalrule', 'id', 'uuid', '', 'name,kinds,provenance,sources,extractor,min_confidence,sample_percent,is_active', '')",
                    func="RETURN NULL;",
                    hash="5a33e6d4957c83b84572194d150103c161816e8a",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_4b364",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_approvalrule",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="approvalrule",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('approval_rule', 'memories_app.approvalrule', 'id', 'uuid', '', 'name,kinds,provenance,sources,extractor,min_confidence,sample_percent,is_active', '')",
                    func="RETURN NULL;",
                    hash="d5aeee3c2d7f2ec6647fd3bcbbb5bc9f3baec6c7",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_3de2c",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_approvalrule",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="approvalrule",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('approval_rule', 'memories_app.approvalrule', 'id', 'uuid', '', 'name,kinds,provenance,sources,extractor,min_confidence,sample_percent,is_active', '')",
                    func="RETURN NULL;",
                    hash="bbeeeed59557621c4f3ad3062ad4ed4124d67f03",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_55a3c",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_approvalrule",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="approvalrule",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('approval_rule', 'memories_app.approvalrule', 'id', 'uuid', '', 'name,kinds,provenance,sources,extractor,min_confidence,sample_percent,is_active', '')",
                    func="RETURN NULL;",
                    hash="2ac019de5529483751b7a4edb73d26e4aed6c978",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_5f9f0",
                    table="memories_app_approvalrule",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("subject"), models.F("status"), models.F("kind"), models.F("key"), name="memory_of_subject"
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("awaiting_since"),
                models.F("id"),
                condition=models.Q(("status__in", ["proposed", "needs_revalidation"])),
                name="memory_awaiting",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("awaiting_since"),
                models.F("id"),
                condition=models.Q(
                    ("status__in", ["proposed", "needs_revalidation"]),
                    models.Q(("screened_hash", models.F("content_hash")), _negated=True),
                ),
                name="memory_to_screen",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("embedder"),
                models.F("id"),
                condition=models.Q(("status__in", ["proposed", "needs_revalidation", "approved"])),
                name="memory_by_embedder",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.OrderBy(models.F("proposed_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="memory_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("replaces"), condition=models.Q(("replaces__isnull", False)), name="memory_replaces"
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=pgvector.django.indexes.HnswIndex(
                condition=models.Q(("status", "approved"), ("subject__isnull", True)),
                fields=["embedding"],
                name="memory_shared_vectors",
                opclasses=["vector_cosine_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=django.contrib.postgres.indexes.GinIndex(fastupdate=False, fields=["words"], name="memory_words"),
        ),
        migrations.AddConstraint(
            model_name="memory",
            constraint=models.CheckConstraint(
                condition=django.db.models.lookups.GreaterThanOrEqual(
                    django.db.models.functions.text.Length("statement"), 1
                ),
                name="statement_is_not_empty",
            ),
        ),
        migrations.AddConstraint(
            model_name="memory",
            constraint=models.CheckConstraint(
                condition=django.db.models.lookups.LessThanOrEqual(
                    django.db.models.functions.text.Length("statement"), 2000
                ),
                name="statement_is_short",
            ),
        ),
        migrations.AddConstraint(
            model_name="memory",
            constraint=models.CheckConstraint(
                condition=models.Q(("confidence__gte", 0.0), ("confidence__lte", 1.0)),
                name="confidence_is_between_0_and_1",
            ),
        ),
        migrations.AddConstraint(
            model_name="memory",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("base_version__isnull", True), ("replaces__isnull", True)),
                    models.Q(("base_version__isnull", False), ("replaces__isnull", False)),
                    _connector="OR",
                ),
                name="change_names_its_base",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="gate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_memory_gate()",
                    func="RETURN NULL;",
                    hash="249272b9776c55015f5e4bbd3d90a71c581cf0da",
                    operation="INSERT",
                    pgid="pgtrigger_gate_59fc0",
                    table="memories_app_memory",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="gate_changes",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_memory_gate()",
                    func="RETURN NULL;",
                    hash="360263b5bbcb3c76b4a7b624dc824c4b1ac2f06c",
                    operation="UPDATE",
                    pgid="pgtrigger_gate_changes_9b936",
                    table="memories_app_memory",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="keep_version",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_keep_version()",
                    func="RETURN NULL;",
                    hash="4784ed58397feff43a47647b18f3538c8aab9773",
                    operation="INSERT",
                    pgid="pgtrigger_keep_version_09794",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="keep_changed_version",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_keep_version()",
                    func="RETURN NULL;",
                    hash="20e00e9c3a53655510a5493914dd56a41c16c668",
                    operation="UPDATE",
                    pgid="pgtrigger_keep_changed_version_f4175",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,valid_from,valid_until,revalidate_on,version,risk_flags', 'key,statement,data')",
                    func="RETURN NULL;",
                    hash="69ae36542e93cbaea0df367bdb707bdd5861db11",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_1c367",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,valid_from,valid_until,revalidate_on,version,risk_flags', 'key,statement,data')",
                    func="RETURN NULL;",
                    hash="2e8e84216e201f7d10345bb851fe2fe39dcaf4ba",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_af581",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,valid_from,valid_until,revalidate_on,version,risk_flags', 'key,statement,data')",
                    func="RETURN NULL;",
                    hash="62a4fb59b25858c8c398993c824afd087bb10ad2",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_63670",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,valid_from,valid_until,revalidate_on,version,risk_flags', 'key,statement,data')",
                    func="RETURN NULL;",
                    hash="455e808134b184a4150886862a3bebd5928b7121",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_0e187",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="memoryversion",
            constraint=models.UniqueConstraint(fields=("memory", "number"), name="version_of_memory"),
        ),
        migrations.AddConstraint(
            model_name="memoryversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("erased_at__isnull", True), models.Q(("data", {}), ("statement", "")), _connector="OR"
                ),
                name="erased_version_has_no_text",
            ),
        ),
        migrations.AddIndex(
            model_name="recall",
            index=models.Index(models.F("record_id"), models.F("recalled_at"), name="recall_in_session"),
        ),
        migrations.AddIndex(
            model_name="recall",
            index=models.Index(
                models.F("subject"), models.OrderBy(models.F("recalled_at"), descending=True), name="recall_for_subject"
            ),
        ),
        migrations.AddIndex(
            model_name="recalledmemory",
            index=models.Index(models.F("recall"), models.F("place"), name="memories_of_recall"),
        ),
        migrations.AddIndex(
            model_name="recalledmemory",
            index=models.Index(
                models.F("memory"), models.OrderBy(models.F("recalled_at"), descending=True), name="recalls_of_memory"
            ),
        ),
        migrations.AddIndex(
            model_name="review",
            index=models.Index(models.F("memory"), models.F("decided_at"), name="review_of_memory"),
        ),
        migrations.AddIndex(
            model_name="review",
            index=models.Index(
                models.OrderBy(models.F("decided_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="review_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="review",
            index=models.Index(
                models.F("rule"),
                condition=models.Q(("agreed__isnull", True), ("is_sample", True)),
                name="review_samples_to_see",
            ),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(("rule__isnull", True), ("reviewer__isnull", True), _connector="OR"),
                name="a_person_or_a_rule_decides",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="review",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,content_hash,undone_at', '')",
                    func="RETURN NULL;",
                    hash="51a005f6407e88eda1e9dd087db7de914f513b54",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_799f8",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_review",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="review",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,content_hash,undone_at', '')",
                    func="RETURN NULL;",
                    hash="f3172696a566be7f22671ae6c6e7d203f6d224c0",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_5140a",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_review",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="review",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,content_hash,undone_at', '')",
                    func="RETURN NULL;",
                    hash="8a5cf66ecd292f49a82df28986a9caa889e296e9",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_28a84",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_review",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="review",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,content_hash,undone_at', '')",
                    func="RETURN NULL;",
                    hash="03c6f8defe2f3a3cc090c0c86a47462c0eb72e7c",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_08897",
                    table="memories_app_review",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="view_of_owner"),
        ),
        migrations.AddIndex(
            model_name="signal",
            index=models.Index(models.F("record_id"), models.F("item_id"), name="signal_of_item"),
        ),
        migrations.AddIndex(
            model_name="signal",
            index=models.Index(
                models.F("subject"), models.OrderBy(models.F("created_at"), descending=True), name="signal_of_subject"
            ),
        ),
        migrations.AddIndex(
            model_name="signal",
            index=models.Index(
                models.F("memory"), condition=models.Q(("memory__isnull", False)), name="signal_of_memory"
            ),
        ),
        migrations.AddIndex(
            model_name="signal",
            index=models.Index(
                models.F("created_at"),
                models.F("id"),
                condition=models.Q(("distilled_at__isnull", True)),
                name="signal_to_distil",
            ),
        ),
        migrations.AddConstraint(
            model_name="signal",
            constraint=models.CheckConstraint(
                condition=django.db.models.lookups.LessThanOrEqual(
                    django.db.models.functions.text.Length("text"), 4000
                ),
                name="signal_is_short",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signal",
            trigger=pgtrigger.compiler.Trigger(
                name="may_learn",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_may_learn()",
                    func="RETURN NULL;",
                    hash="1ddb38a55c92ca64bf7399fae39e59fb778fd410",
                    operation="INSERT",
                    pgid="pgtrigger_may_learn_76dba",
                    table="memories_app_signal",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="evidence",
            index=models.Index(models.F("memory"), models.F("version"), name="evidence_of_memory"),
        ),
        migrations.AddIndex(
            model_name="evidence",
            index=models.Index(models.F("record_id"), models.F("item_id"), name="evidence_of_item"),
        ),
        migrations.AddConstraint(
            model_name="evidence",
            constraint=models.CheckConstraint(
                condition=django.db.models.lookups.LessThanOrEqual(
                    django.db.models.functions.text.Length("quote"), 4000
                ),
                name="quote_is_short",
            ),
        ),
        migrations.AddConstraint(
            model_name="evidence",
            constraint=models.CheckConstraint(
                condition=models.Q(("gone_at__isnull", True), ("quote", ""), _connector="OR"),
                name="gone_evidence_has_no_quote",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
                name="hash_quote",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_hash_quote()",
                    func="RETURN NULL;",
                    hash="dd23f6509c8f9d8032818a3c5a13ca1eaca463ba",
                    operation="INSERT",
                    pgid="pgtrigger_hash_quote_776ba",
                    table="memories_app_evidence",
                    when="BEFORE",
                ),
            ),
        ),
    ]
