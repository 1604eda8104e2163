import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.db.models.lookups
import pgtrigger.compiler
import pgvector.django.indexes
import pgvector.django.vector
from django.conf import settings
from django.db import migrations, models

from memories_app.vector_column import MakeVectorColumn


class Migration(migrations.Migration):
    """Memories, what they rest on, and what was decided about them."""

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("memories_app", "0001_gate"),
        ("sessions_app", "0002_tables"),
    ]

    operations = [
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
                    "subject",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memories",
                        to="sessions_app.subject",
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
                ("statement", models.TextField(help_text="The exact text that agents read.")),
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
                (
                    "replaces",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="proposals",
                        to="memories_app.memory",
                    ),
                ),
                ("base_version", models.PositiveIntegerField(blank=True, editable=False, null=True)),
                (
                    "merged_into",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="merged",
                        to="memories_app.memory",
                    ),
                ),
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
                (
                    "hints",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20),
                        db_default=models.Value("{}"),
                        default=list,
                        editable=False,
                        size=None,
                    ),
                ),
                ("compared_hash", models.CharField(db_default="", default="", editable=False, max_length=64)),
                ("compared_under", models.UUIDField(editable=False, null=True)),
                ("extractor", models.CharField(blank=True, db_default="", default="", max_length=80)),
                (
                    "proposed_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "proposed_at",
                    models.DateTimeField(db_default=django.contrib.postgres.functions.TransactionNow(), editable=False),
                ),
                (
                    "awaiting_since",
                    models.DateTimeField(db_default=django.contrib.postgres.functions.TransactionNow(), editable=False),
                ),
                ("decided_at", models.DateTimeField(editable=False, null=True)),
                (
                    "claimed_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
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
                        expression=django.contrib.postgres.search.SearchVector("statement", config="english"),
                        output_field=django.contrib.postgres.search.SearchVectorField(),
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
                    models.Index(
                        models.F("subject"),
                        models.F("status"),
                        models.F("kind"),
                        models.F("key"),
                        name="memory_of_subject",
                    ),
                    models.Index(
                        models.F("awaiting_since"),
                        models.F("id"),
                        condition=models.Q(("status__in", ["proposed", "needs_revalidation"])),
                        name="memory_awaiting",
                    ),
                    models.Index(
                        models.F("awaiting_since"),
                        models.F("id"),
                        condition=models.Q(
                            ("status__in", ["proposed", "needs_revalidation"]),
                            models.Q(("screened_hash", models.F("content_hash")), _negated=True),
                        ),
                        name="memory_to_screen",
                    ),
                    models.Index(
                        models.F("embedder"),
                        models.F("id"),
                        condition=models.Q(("status__in", ["proposed", "needs_revalidation", "approved"])),
                        name="memory_by_embedder",
                    ),
                    models.Index(
                        models.F("awaiting_since"),
                        models.F("id"),
                        condition=models.Q(
                            ("status__in", ["proposed", "needs_revalidation"]),
                            models.Q(
                                ("subject__isnull", True), models.Q(("risk_flags", []), _negated=True), _connector="OR"
                            ),
                        ),
                        name="memory_awaiting_two",
                    ),
                    models.Index(
                        models.F("kind"),
                        models.F("awaiting_since"),
                        models.F("id"),
                        condition=models.Q(("status__in", ["proposed", "needs_revalidation"])),
                        name="memory_awaiting_kind",
                    ),
                    models.Index(
                        models.F("source"),
                        models.F("awaiting_since"),
                        models.F("id"),
                        condition=models.Q(("status__in", ["proposed", "needs_revalidation"])),
                        name="memory_awaiting_source",
                    ),
                    models.Index(
                        models.F("awaiting_since"),
                        models.F("id"),
                        condition=models.Q(
                            ("status__in", ["proposed", "needs_revalidation"]), models.Q(("hints", []), _negated=True)
                        ),
                        name="memory_awaiting_hinted",
                    ),
                    models.Index(
                        models.F("decided_at"), condition=models.Q(("status", "lapsed")), name="memory_lapsed"
                    ),
                    models.Index(
                        models.F("id"),
                        condition=models.Q(
                            ("status", "approved"), models.Q(("compared_hash", models.F("content_hash")), _negated=True)
                        ),
                        name="memory_to_compare",
                    ),
                    models.Index(
                        models.F("valid_until"),
                        condition=models.Q(("status", "approved"), ("valid_until__isnull", False)),
                        name="memory_ends",
                    ),
                    models.Index(
                        models.F("revalidate_on"),
                        condition=models.Q(("revalidate_on__isnull", False), ("status", "approved")),
                        name="memory_to_revalidate",
                    ),
                    models.Index(
                        models.F("decided_at"),
                        condition=models.Q(("is_verified", False), ("status", "approved")),
                        name="memory_unverified",
                    ),
                    models.Index(
                        models.F("claimed_by"), condition=models.Q(("claimed_by__isnull", False)), name="memory_claimed"
                    ),
                    models.Index(
                        models.OrderBy(models.F("proposed_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="memory_newest",
                    ),
                    models.Index(
                        models.F("status"),
                        models.OrderBy(models.F("proposed_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="memory_status_newest",
                    ),
                    models.Index(
                        models.F("kind"),
                        models.OrderBy(models.F("proposed_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="memory_kind_newest",
                    ),
                    models.Index(
                        models.F("source"),
                        models.OrderBy(models.F("proposed_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="memory_source_newest",
                    ),
                    models.Index(
                        models.OrderBy(models.F("proposed_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        condition=models.Q(("subject__isnull", True)),
                        name="memory_shared_newest",
                    ),
                    models.Index(
                        models.F("replaces"), condition=models.Q(("replaces__isnull", False)), name="memory_replaces"
                    ),
                    django.contrib.postgres.indexes.GinIndex(fastupdate=False, fields=["words"], name="memory_words"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=django.db.models.lookups.GreaterThanOrEqual(
                            django.db.models.functions.text.Length("statement"), 1
                        ),
                        name="statement_is_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=django.db.models.lookups.LessThanOrEqual(
                            django.db.models.functions.text.Length("statement"), 2000
                        ),
                        name="statement_is_short",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["preference", "fact", "procedure", "note", "summary"])),
                        name="memory_kind_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("provenance__in", ["explicit", "inferred"])),
                        name="memory_provenance_is_known",
                    ),
                    models.CheckConstraint(
                        condition=django.db.models.lookups.LessThanOrEqual(
                            django.db.models.functions.text.Length(
                                django.db.models.functions.comparison.Cast("data", models.TextField())
                            ),
                            40000,
                        ),
                        name="memory_data_is_small",
                    ),
                    models.CheckConstraint(condition=models.Q(("agents__len__lte", 50)), name="memory_agents_are_few"),
                    models.CheckConstraint(
                        condition=models.Q(("confidence__gte", 0.0), ("confidence__lte", 1.0)),
                        name="confidence_is_between_0_and_1",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("base_version__isnull", True), ("replaces__isnull", True)),
                            models.Q(("base_version__isnull", False), ("replaces__isnull", False)),
                            _connector="OR",
                        ),
                        name="change_names_its_base",
                    ),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
                        name="note_vector",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN ((OLD.status = 'approved' OR NEW.status = 'approved') AND (OLD.status, OLD.embedder, OLD.embedded_hash) IS DISTINCT FROM (NEW.status, NEW.embedder, NEW.embedded_hash))",
                            execute="memadmin_note_vector()",
                            func="RETURN NULL;",
                            hash="8be942365a6fe3a2af3a1e7d126c61b7b00ee87d",
                            operation="UPDATE",
                            pgid="pgtrigger_note_vector_7bfdb",
                            table="memories_app_memory",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_lost_vector",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (OLD.status = 'approved')",
                            execute="memadmin_note_vector()",
                            func="RETURN NULL;",
                            hash="7cdaededd23e5aa6afd1d784483df8af841d8f99",
                            operation="DELETE",
                            pgid="pgtrigger_note_lost_vector_130c0",
                            table="memories_app_memory",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_agents_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (current_user = session_user)",
                            execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data', 'agents')",
                            func="RETURN NULL;",
                            hash="3783628a8b94577f7715122145cfdf907ad36c06",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_agents_insert_aadba",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="memories_app_memory",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT (current_user = session_user))",
                            execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data')",
                            func="RETURN NULL;",
                            hash="e26ed9b90227ebf4c6eb97988a74038e7647a3c5",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_1c367",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="memories_app_memory",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data')",
                            func="RETURN NULL;",
                            hash="1737f335d27f00a86297993a9e1d81039bd85a73",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_af581",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="memories_app_memory",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data')",
                            func="RETURN NULL;",
                            hash="c15b7ce704bf8e682a8431ab8200385964bd003e",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_63670",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="memories_app_memory",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data')",
                            func="RETURN NULL;",
                            hash="35baeebf2823a43adfdc5dda486ca327ac40c8a0",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_0e187",
                            table="memories_app_memory",
                            when="AFTER",
                        ),
                    ),
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[MakeVectorColumn()],
            state_operations=[
                migrations.AlterField(
                    "memory",
                    "embedding",
                    pgvector.django.vector.VectorField(dimensions=256, editable=False, null=True),
                ),
                migrations.AddIndex(
                    "memory",
                    pgvector.django.indexes.HnswIndex(
                        condition=models.Q(("status", "approved"), ("subject__isnull", True)),
                        fields=["embedding"],
                        name="memory_shared_vectors",
                        opclasses=["vector_cosine_ops"],
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="VectorNote",
            fields=[
                ("memory_id", models.UUIDField(primary_key=True, serialize=False)),
                ("token", models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID())),
                ("noted_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "indexes": [models.Index(models.F("noted_at"), name="vector_note_oldest")],
            },
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
                        db_default=10,
                        default=10,
                        help_text="Percentage of approved proposals that a reviewer checks afterwards.",
                    ),
                ),
                ("is_active", models.BooleanField(db_default=False, default=False)),
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
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("min_confidence__gte", 0.0), ("min_confidence__lte", 1.0)),
                        name="rule_confidence_is_between_0_and_1",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("sample_percent__lte", 100)), name="sample_is_a_percentage"
                    ),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
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
                ],
            },
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
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reviews",
                        to="memories_app.memory",
                    ),
                ),
                (
                    "reviewer",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="memories_app.approvalrule",
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
                ("before", models.JSONField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(models.F("memory"), models.F("decided_at"), name="review_of_memory"),
                    models.Index(
                        models.OrderBy(models.F("decided_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="review_newest",
                    ),
                    models.Index(
                        models.F("rule"),
                        condition=models.Q(("agreed__isnull", True), ("is_sample", True)),
                        name="review_samples_to_see",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("rule__isnull", True), ("reviewer__isnull", True), _connector="OR"),
                        name="a_person_or_a_rule_decides",
                    )
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,note,content_hash,was_edited,is_sample,agreed,decided_at,undone_at', 'note')",
                            func="RETURN NULL;",
                            hash="8e1b7d31fbaafccb681846d2901541cabd255f7e",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_799f8",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="memories_app_review",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,note,content_hash,was_edited,is_sample,agreed,decided_at,undone_at', 'note')",
                            func="RETURN NULL;",
                            hash="527048ee8f62ef8189ed058f71687522155ec272",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_5140a",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="memories_app_review",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,note,content_hash,was_edited,is_sample,agreed,decided_at,undone_at', 'note')",
                            func="RETURN NULL;",
                            hash="b2c10deb4f5c47bb9267b4b84c4e837ef66af6ce",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_28a84",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="memories_app_review",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,note,content_hash,was_edited,is_sample,agreed,decided_at,undone_at', 'note')",
                            func="RETURN NULL;",
                            hash="989477825cd46984790e27fee82ac87ad41d121e",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_08897",
                            table="memories_app_review",
                            when="AFTER",
                        ),
                    ),
                ],
            },
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
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(blank=True, db_default="", default="", max_length=500)),
            ],
            options={
                "ordering": ["name", "pk"],
                "constraints": [models.UniqueConstraint(fields=("owner", "name"), name="view_of_owner")],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('saved_view', 'memories_app.savedview', 'id', 'uuid', '', 'owner_id,name,query', 'name,query')",
                            func="RETURN NULL;",
                            hash="12ee5f62f7bc73739c27bdc2297944c07342a214",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_ef483",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="memories_app_savedview",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('saved_view', 'memories_app.savedview', 'id', 'uuid', '', 'owner_id,name,query', 'name,query')",
                            func="RETURN NULL;",
                            hash="2b6eb4c3734ee89858fdb78063440c2da09b42a8",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_55812",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="memories_app_savedview",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('saved_view', 'memories_app.savedview', 'id', 'uuid', '', 'owner_id,name,query', 'name,query')",
                            func="RETURN NULL;",
                            hash="eaeaf8106df1730b9dd1bda87a767b60ea9090ee",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_174cd",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="memories_app_savedview",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('saved_view', 'memories_app.savedview', 'id', 'uuid', '', 'owner_id,name,query', 'name,query')",
                            func="RETURN NULL;",
                            hash="b2e2ec754b4ee6e93238975915f9bbcff945063e",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_d1514",
                            table="memories_app_savedview",
                            when="AFTER",
                        ),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Digest",
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
                ("on", models.DateField()),
                ("way", models.CharField(choices=[("mail", "e-mail"), ("webhook", "webhook")], max_length=8)),
                ("tries", models.PositiveIntegerField(db_default=0, default=0)),
                ("try_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("sent_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("on", "way"), name="digest_once_a_day")],
            },
        ),
        migrations.CreateModel(
            name="NoDigest",
            fields=[
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
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
                (
                    "subject",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="signals",
                        to="sessions_app.subject",
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
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="signals",
                        to="memories_app.memory",
                    ),
                ),
                (
                    "given_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("distilled_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(models.F("record_id"), models.F("item_id"), name="signal_of_item"),
                    models.Index(
                        models.F("subject"),
                        models.OrderBy(models.F("created_at"), descending=True),
                        name="signal_of_subject",
                    ),
                    models.Index(
                        models.F("memory"), condition=models.Q(("memory__isnull", False)), name="signal_of_memory"
                    ),
                    models.Index(
                        models.F("created_at"),
                        models.F("id"),
                        condition=models.Q(("distilled_at__isnull", True)),
                        name="signal_to_distil",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=django.db.models.lookups.LessThanOrEqual(
                            django.db.models.functions.text.Length("text"), 4000
                        ),
                        name="signal_is_short",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["correction", "preference", "outcome", "rating", "feedback"])),
                        name="signal_kind_is_known",
                    ),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
                        name="note_agents_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (current_user = session_user)",
                            execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text', 'agents')",
                            func="RETURN NULL;",
                            hash="2b7499479bb1262f0fd76c0039f50782730bd9aa",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_agents_insert_9e209",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="memories_app_signal",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT (current_user = session_user))",
                            execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text')",
                            func="RETURN NULL;",
                            hash="61e859e8e9fb44706cae5f99de79e7f4693e0f1e",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_21138",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="memories_app_signal",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text')",
                            func="RETURN NULL;",
                            hash="f144723c54baf2af1c5d0cfcbde2a9ae1ec7f8b7",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_64237",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="memories_app_signal",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text')",
                            func="RETURN NULL;",
                            hash="afc3ee8a268884a262746067e93f8d51e065cb40",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_44723",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="memories_app_signal",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text')",
                            func="RETURN NULL;",
                            hash="f2506fdbb84860a70bcd5eff3de629c170cc8b5f",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_9f435",
                            table="memories_app_signal",
                            when="AFTER",
                        ),
                    ),
                ],
            },
        ),
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
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="evidence",
                        to="memories_app.memory",
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
                (
                    "tools",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200), blank=True, null=True, size=None
                    ),
                ),
                (
                    "signal",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="memories_app.signal",
                    ),
                ),
                ("gone_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "evidence",
                "indexes": [
                    models.Index(models.F("memory"), models.F("version"), name="evidence_of_memory"),
                    models.Index(models.F("record_id"), models.F("item_id"), name="evidence_of_item"),
                    django.contrib.postgres.indexes.GinIndex(fields=["tools"], name="evidence_by_tool"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=django.db.models.lookups.LessThanOrEqual(
                            django.db.models.functions.text.Length("quote"), 4000
                        ),
                        name="quote_is_short",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("gone_at__isnull", True), ("quote", ""), _connector="OR"),
                        name="gone_evidence_has_no_quote",
                    ),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
                        name="note_agents_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (current_user = session_user)",
                            execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,tools,signal_id', 'session_id,quote', 'agents')",
                            func="RETURN NULL;",
                            hash="40cc114063b04fa9ea9913e0e91709845d034647",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_agents_insert_a99dc",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="memories_app_evidence",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT (current_user = session_user))",
                            execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,tools,signal_id', 'session_id,quote')",
                            func="RETURN NULL;",
                            hash="99f91f14edb94e1e912756ed0b30de5fae13bcb3",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_0beb2",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="memories_app_evidence",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,tools,signal_id', 'session_id,quote')",
                            func="RETURN NULL;",
                            hash="e5f0c0f71acead91027c8206501f0eb6a1af1081",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_41349",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="memories_app_evidence",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,tools,signal_id', 'session_id,quote')",
                            func="RETURN NULL;",
                            hash="81e4ca776291227ffea8c2b1dbb64612ddd9239a",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_61c2f",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="memories_app_evidence",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,tools,signal_id', 'session_id,quote')",
                            func="RETURN NULL;",
                            hash="4c57a8cbd79178d7aaebe1557c33ce3644a7db49",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_28954",
                            table="memories_app_evidence",
                            when="AFTER",
                        ),
                    ),
                ],
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
                "permissions": [("stop_learning", "Can stop and allow learning about a subject")],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="wait_for_learners",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_wait_for_learners()",
                            func="RETURN NULL;",
                            hash="67b1a25fc7ea6fdb208b4e8af544c867b5d49cf5",
                            operation="INSERT",
                            pgid="pgtrigger_wait_for_learners_35144",
                            table="memories_app_learningstop",
                            when="BEFORE",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
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
                    pgtrigger.compiler.Trigger(
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
                ],
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
                ("last_item_id", models.CharField(db_default="", default="", max_length=200)),
                ("last_item_hash", models.CharField(db_default="", default="", max_length=64)),
                ("began_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
                ("left_out", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
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
                (
                    "subject",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="recalls",
                        to="sessions_app.subject",
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
            options={
                "indexes": [
                    models.Index(models.F("record_id"), models.F("recalled_at"), name="recall_in_session"),
                    models.Index(
                        models.F("subject"),
                        models.OrderBy(models.F("recalled_at"), descending=True),
                        name="recall_for_subject",
                    ),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('recall', 'memories_app.recall', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,agent,recalled_at', 'session_id')",
                            func="RETURN NULL;",
                            hash="05249369747e7de0fddc564dc7fd6f3a3537584a",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_90c95",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="memories_app_recall",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('recall', 'memories_app.recall', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,agent,recalled_at', 'session_id')",
                            func="RETURN NULL;",
                            hash="dd3aaebcb3513707848c2aaaeadcb3db016460c8",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_62dc5",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="memories_app_recall",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('recall', 'memories_app.recall', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,agent,recalled_at', 'session_id')",
                            func="RETURN NULL;",
                            hash="ef1e20a18620b3477686a2f7730494d9ab329320",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_8550c",
                            table="memories_app_recall",
                            when="AFTER",
                        ),
                    ),
                ],
            },
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
                (
                    "recall",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memories",
                        to="memories_app.recall",
                    ),
                ),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="recalls",
                        to="memories_app.memory",
                    ),
                ),
                ("version", models.PositiveIntegerField()),
                ("place", models.PositiveSmallIntegerField()),
                ("score", models.FloatField(db_default=0.0, default=0.0)),
                ("recalled_at", models.DateTimeField(db_default=django.contrib.postgres.functions.TransactionNow())),
            ],
            options={
                "indexes": [
                    models.Index(models.F("recall"), models.F("place"), name="memories_of_recall"),
                    models.Index(
                        models.F("memory"),
                        models.OrderBy(models.F("recalled_at"), descending=True),
                        name="recalls_of_memory",
                    ),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('recalled_memory', 'memories_app.recalledmemory', 'id', 'uuid', '', 'recall_id,memory_id,version,place', '')",
                            func="RETURN NULL;",
                            hash="2d2549439892a6120682a084a2d80b442ff61e57",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_556c6",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="memories_app_recalledmemory",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('recalled_memory', 'memories_app.recalledmemory', 'id', 'uuid', '', 'recall_id,memory_id,version,place', '')",
                            func="RETURN NULL;",
                            hash="55fd19994322fac29a66052481d6664e488d92f6",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_4de78",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="memories_app_recalledmemory",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('recalled_memory', 'memories_app.recalledmemory', 'id', 'uuid', '', 'recall_id,memory_id,version,place', '')",
                            func="RETURN NULL;",
                            hash="d76eff1c502ecb358ec73f78122f916bec04a4ad",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_424e7",
                            table="memories_app_recalledmemory",
                            when="AFTER",
                        ),
                    ),
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
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="memories_app.memory",
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
            options={
                "permissions": [("erase_version", "Can erase the text of a version of a memory")],
                "constraints": [
                    models.UniqueConstraint(fields=("memory", "number"), name="version_of_memory"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("erased_at__isnull", True), models.Q(("data", {}), ("statement", "")), _connector="OR"
                        ),
                        name="erased_version_has_no_text",
                    ),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="only_erased",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_only_erased()",
                            func="RETURN NULL;",
                            hash="177134b23bb2d132d3effe99f6e80c22b3c9d56e",
                            operation="UPDATE",
                            pgid="pgtrigger_only_erased_b1f83",
                            table="memories_app_memoryversion",
                            when="BEFORE",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT memadmin_by_our_trigger())",
                            execute="memadmin_note_rows('memory_version', 'memories_app.memoryversion', 'id', 'uuid', '', 'memory_id,number,statement,data,content_hash,author_kind,author_ref,erased_at', 'statement,data')",
                            func="RETURN NULL;",
                            hash="68a3dd99ec79970bbe8b8f5938de9ff824374a78",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_bb542",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="memories_app_memoryversion",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT memadmin_by_our_trigger())",
                            execute="memadmin_note_rows('memory_version', 'memories_app.memoryversion', 'id', 'uuid', '', 'memory_id,number,statement,data,content_hash,author_kind,author_ref,erased_at', 'statement,data')",
                            func="RETURN NULL;",
                            hash="50f114b598389feba381a0b3a921b6588e91911a",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_7ebf2",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="memories_app_memoryversion",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT memadmin_by_our_trigger())",
                            execute="memadmin_note_rows('memory_version', 'memories_app.memoryversion', 'id', 'uuid', '', 'memory_id,number,statement,data,content_hash,author_kind,author_ref,erased_at', 'statement,data')",
                            func="RETURN NULL;",
                            hash="7f99dc2b144cd46c8b55c62a567643d735703d72",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_e919c",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="memories_app_memoryversion",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('memory_version', 'memories_app.memoryversion', 'id', 'uuid', '', 'memory_id,number,statement,data,content_hash,author_kind,author_ref,erased_at', 'statement,data')",
                            func="RETURN NULL;",
                            hash="c14164333301c780a0c377f29eaf30fc7a8190bb",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_7fdd0",
                            table="memories_app_memoryversion",
                            when="AFTER",
                        ),
                    ),
                ],
            },
        ),
    ]
