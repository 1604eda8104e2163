import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """Retention policies with their versions, and the results of sweeps."""

    dependencies = [
        ("retention", "0005_released_holds_forget"),
        ("runs", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        RunFile("retention", "policies.sql"),
        migrations.CreateModel(
            name="SweepResult",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("place", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("position", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("to_do", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("skipped", "skipped"),
                        ],
                        db_default="to_do",
                        default="to_do",
                        max_length=8,
                    ),
                ),
                ("reason", models.CharField(blank=True, db_default="", default="", max_length=400)),
                ("previewed", models.BigIntegerField(null=True)),
                ("previewed_items", models.BigIntegerField(null=True)),
                ("taken", models.BigIntegerField(db_default=0, default=0)),
                ("items", models.BigIntegerField(db_default=0, default=0)),
                ("held", models.BigIntegerField(db_default=0, default=0)),
                ("live", models.BigIntegerField(db_default=0, default=0)),
                ("left", models.JSONField(db_default={}, default=dict)),
                ("tables", models.JSONField(db_default={}, default=dict)),
                ("has_asked", models.BooleanField(db_default=False, default=False)),
                ("cursor", models.JSONField(db_default={}, default=dict)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("backlog", models.BigIntegerField(null=True)),
                ("behind_since", models.DateTimeField(null=True)),
                ("forecast", models.BigIntegerField(null=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="UnfinishedExpiry",
            fields=[
                ("record_id", models.UUIDField(primary_key=True, serialize=False)),
                ("since", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="RetentionPolicy",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=80, unique=True)),
                ("is_default", models.BooleanField(db_default=False, default=False, editable=False)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "verbose_name_plural": "retention policies",
                "permissions": [
                    ("view_policy", "Can see retention policies and their runs"),
                    ("change_policy", "Can propose and cancel changes of retention policies"),
                    ("approve_policy", "Can approve changes of retention policies"),
                ],
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)), fields=("is_default",), name="one_default_policy"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyVersion",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("target", models.CharField(max_length=20)),
                ("store", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("session_pattern", models.CharField(blank=True, db_default="", default="", max_length=300)),
                ("agent", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("label", models.CharField(blank=True, db_default="", default="", max_length=50)),
                ("subject_kind", models.CharField(blank=True, db_default="", default="", max_length=16)),
                ("is_encrypted", models.BooleanField(blank=True, null=True)),
                ("kind", models.CharField(blank=True, db_default="", default="", max_length=20)),
                ("status", models.CharField(blank=True, db_default="", default="", max_length=20)),
                ("clock", models.CharField(max_length=20)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("keep", "keep"),
                            ("delete", "delete"),
                            ("redact", "redact"),
                            ("expire", "expire"),
                            ("revalidate", "send to re-validation"),
                        ],
                        max_length=12,
                    ),
                ),
                ("length_count", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "length_unit",
                    models.CharField(
                        blank=True,
                        choices=[("days", "days"), ("months", "months"), ("years", "years")],
                        db_default="",
                        default="",
                        max_length=6,
                    ),
                ),
                ("minimum_count", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "minimum_unit",
                    models.CharField(
                        blank=True,
                        choices=[("days", "days"), ("months", "months"), ("years", "years")],
                        db_default="",
                        default="",
                        max_length=6,
                    ),
                ),
                ("minimum_reference", models.CharField(blank=True, db_default="", default="", max_length=300)),
                ("note", models.CharField(blank=True, db_default="", default="", max_length=500)),
                ("is_end", models.BooleanField(db_default=False, default=False)),
                ("reason", models.CharField(blank=True, db_default="", default="", max_length=500)),
                ("proposed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("preview", models.JSONField(db_default={}, default=dict)),
                ("needs_approval", models.BooleanField(db_default=True, default=True)),
                ("approved_at", models.DateTimeField(null=True)),
                ("starts_at", models.DateTimeField(null=True)),
                (
                    "closed_as",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("withdrawn", "withdrawn"),
                            ("rejected", "rejected"),
                            ("cancelled", "cancelled in the grace period"),
                        ],
                        db_default="",
                        default="",
                        max_length=12,
                    ),
                ),
                ("closed_at", models.DateTimeField(null=True)),
                ("closing_reason", models.CharField(blank=True, db_default="", default="", max_length=500)),
                (
                    "approved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "closed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "proposed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="versions",
                        to="retention.retentionpolicy",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="retentionpolicy",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('retention_policy', 'retention.retentionpolicy', 'id', 'uuid', '', 'name,is_default', '')",
                    func="RETURN NULL;",
                    hash="cb033721861297cd5e5a9090e0d3b643da8d67f8",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_d4d6f",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="retention_retentionpolicy",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="retentionpolicy",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('retention_policy', 'retention.retentionpolicy', 'id', 'uuid', '', 'name,is_default', '')",
                    func="RETURN NULL;",
                    hash="d753e5ba73dbe54e50e81a39b9e8258c0197b337",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_26a00",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="retention_retentionpolicy",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="retentionpolicy",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('retention_policy', 'retention.retentionpolicy', 'id', 'uuid', '', 'name,is_default', '')",
                    func="RETURN NULL;",
                    hash="7faacae7c284c92b4dd7cbd96e2781ba53f97b44",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_a70ea",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="retention_retentionpolicy",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="retentionpolicy",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('retention_policy', 'retention.retentionpolicy', 'id', 'uuid', '', 'name,is_default', '')",
                    func="RETURN NULL;",
                    hash="cfc3c7e1aba3de575bef84ee9eded1b6ca0a55db",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_ab379",
                    table="retention_retentionpolicy",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddField(
            model_name="sweepresult",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="sweep_results", to="runs.run"
            ),
        ),
        migrations.AddField(
            model_name="sweepresult",
            name="version",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="results", to="retention.policyversion"
            ),
        ),
        migrations.AddField(
            model_name="unfinishedexpiry",
            name="version",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="retention.policyversion"
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.UniqueConstraint(fields=("policy", "number"), name="policy_version_number"),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.UniqueConstraint(
                condition=models.Q(("closed_at__isnull", True), ("starts_at__isnull", True)),
                fields=("policy",),
                name="policy_one_change_awaits",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("action", "keep"), ("length_count__isnull", True), ("length_unit", "")),
                    models.Q(
                        models.Q(("action", "keep"), _negated=True),
                        ("length_count__gte", 1),
                        models.Q(("length_unit", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="policy_length_unless_kept",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("minimum_count__isnull", True), ("minimum_reference", ""), ("minimum_unit", "")),
                    models.Q(
                        ("minimum_count__gte", 1),
                        models.Q(("minimum_unit", ""), _negated=True),
                        models.Q(("minimum_reference", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="policy_minimum_has_reference",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("starts_at__isnull", True),
                    ("needs_approval", False),
                    ("approved_at__isnull", False),
                    _connector="OR",
                ),
                name="policy_starts_after_approval",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("approved_by__isnull", True),
                    ("proposed_by__isnull", True),
                    models.Q(("approved_by", models.F("proposed_by")), _negated=True),
                    _connector="OR",
                ),
                name="policy_approved_by_a_second_person",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_as", ""), ("closed_at__isnull", True)),
                    models.Q(models.Q(("closed_as", ""), _negated=True), ("closed_at__isnull", False)),
                    _connector="OR",
                ),
                name="policy_closed_for_a_reason",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="policyversion",
            trigger=pgtrigger.compiler.Trigger(
                name="keep",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_keep_policy_version()",
                    func="RETURN NULL;",
                    hash="39885438b8bb3e251236d927af2c731f68e8a7da",
                    operation="UPDATE",
                    pgid="pgtrigger_keep_9835a",
                    table="retention_policyversion",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="policyversion",
            trigger=pgtrigger.compiler.Trigger(
                name="keep_all",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_keep_policy_versions()",
                    func="RETURN NULL;",
                    hash="f4136f4d780684446a54f7d2ed4f33d09812a61a",
                    level="STATEMENT",
                    operation="UPDATE OR DELETE OR TRUNCATE",
                    pgid="pgtrigger_keep_all_c3548",
                    table="retention_policyversion",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="policyversion",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('retention_policy_version', 'retention.policyversion', 'id', 'uuid', '', 'policy_id,number,target,store,session_pattern,agent,label,subject_kind,is_encrypted,kind,status,clock,action,length_count,length_unit,minimum_count,minimum_unit,minimum_reference,note,is_end,reason,proposed_by_id,approved_by_id,approved_at,starts_at,closed_as,closed_by_id,closed_at,closing_reason', 'session_pattern,label,note,reason,closing_reason')",
                    func="RETURN NULL;",
                    hash="78fbca7117176898bc5bac9e1b466c560c196bae",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_e9827",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="retention_policyversion",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="policyversion",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('retention_policy_version', 'retention.policyversion', 'id', 'uuid', '', 'policy_id,number,target,store,session_pattern,agent,label,subject_kind,is_encrypted,kind,status,clock,action,length_count,length_unit,minimum_count,minimum_unit,minimum_reference,note,is_end,reason,proposed_by_id,approved_by_id,approved_at,starts_at,closed_as,closed_by_id,closed_at,closing_reason', 'session_pattern,label,note,reason,closing_reason')",
                    func="RETURN NULL;",
                    hash="d955b36ff0abff7a8cb070ae9ee79a5a415cf584",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_1cc6f",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="retention_policyversion",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="policyversion",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('retention_policy_version', 'retention.policyversion', 'id', 'uuid', '', 'policy_id,number,target,store,session_pattern,agent,label,subject_kind,is_encrypted,kind,status,clock,action,length_count,length_unit,minimum_count,minimum_unit,minimum_reference,note,is_end,reason,proposed_by_id,approved_by_id,approved_at,starts_at,closed_as,closed_by_id,closed_at,closing_reason', 'session_pattern,label,note,reason,closing_reason')",
                    func="RETURN NULL;",
                    hash="7f99f88fe236476d23c64118f61c79ac3acfd442",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_74804",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="retention_policyversion",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="policyversion",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('retention_policy_version', 'retention.policyversion', 'id', 'uuid', '', 'policy_id,number,target,store,session_pattern,agent,label,subject_kind,is_encrypted,kind,status,clock,action,length_count,length_unit,minimum_count,minimum_unit,minimum_reference,note,is_end,reason,proposed_by_id,approved_by_id,approved_at,starts_at,closed_as,closed_by_id,closed_at,closing_reason', 'session_pattern,label,note,reason,closing_reason')",
                    func="RETURN NULL;",
                    hash="82791411976ced7becdf15281bac87a1fe909a5c",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_fa7fa",
                    table="retention_policyversion",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="sweepresult",
            index=models.Index(fields=["version", "place", "-id"], name="sweep_result_of_version"),
        ),
        migrations.AddConstraint(
            model_name="sweepresult",
            constraint=models.UniqueConstraint(fields=("run", "version", "place"), name="sweep_result_once"),
        ),
    ]
