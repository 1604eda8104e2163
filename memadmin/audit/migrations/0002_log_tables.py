import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.db.models.lookups
import pgtrigger.compiler
from django.db import migrations, models

import memadmin.audit.models


class Migration(migrations.Migration):
    """The tables of the log, and their triggers, which the next migration installs."""

    initial = True

    dependencies = [
        ("audit", "0001_log_functions"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditActor",
            fields=[
                (
                    "ref",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("person", "person"),
                            ("agent", "agent"),
                            ("job", "background job"),
                            ("command", "command"),
                            ("database", "database role"),
                            ("system", "system"),
                        ],
                        max_length=16,
                    ),
                ),
                ("label", models.CharField(max_length=200)),
                ("user_id", models.BigIntegerField(null=True)),
                ("first_seen_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "audit_actor",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "user_id"), name="audit_actor_of_user"),
                    models.UniqueConstraint(
                        condition=models.Q(("user_id__isnull", True)),
                        fields=("kind", "label"),
                        name="audit_actor_of_label",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["person", "agent", "job", "command", "database", "system"])),
                        name="audit_actor_kind",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("id", models.UUIDField(db_default=memadmin.audit.models.Uuid7(), editable=False, unique=True)),
                ("type", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                (
                    "actor_kind",
                    models.CharField(
                        choices=[
                            ("person", "person"),
                            ("agent", "agent"),
                            ("job", "background job"),
                            ("command", "command"),
                            ("database", "database role"),
                            ("system", "system"),
                        ],
                        max_length=16,
                    ),
                ),
                ("actor_ref", models.UUIDField()),
                ("role_ref", models.UUIDField()),
                ("object_kind", models.CharField(max_length=80, null=True)),
                ("object_ref", models.UUIDField(null=True)),
                ("subject_ref", models.UUIDField(null=True)),
                (
                    "shown",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), db_default=models.Value("{}"), size=None
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[("succeeded", "succeeded"), ("denied", "denied"), ("failed", "failed")],
                        db_default="succeeded",
                        max_length=16,
                    ),
                ),
                ("reason_code", models.CharField(db_default="", max_length=40)),
                ("counters", models.JSONField(db_default=models.Value("{}"))),
                ("cause", models.UUIDField(null=True)),
                ("commitment", models.BinaryField(null=True)),
            ],
            options={
                "db_table": "audit_event",
                "permissions": [
                    ("view_auditevent", "Can read the audit log"),
                    ("export_log", "Can download the audit log"),
                    ("verify_log", "Can verify the audit log"),
                    ("erase_beside_log", "Can erase event details and the names of people in the audit log"),
                ],
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("at"), descending=True),
                        models.OrderBy(models.F("number"), descending=True),
                        condition=models.Q(("actor_kind__in", ("agent", "job")), _negated=True),
                        name="audit_event_people_newest",
                    ),
                    models.Index(
                        models.OrderBy(models.F("at"), descending=True),
                        models.OrderBy(models.F("number"), descending=True),
                        condition=models.Q(("actor_kind__in", ("agent", "job"))),
                        name="audit_event_busy_newest",
                    ),
                    models.Index(
                        models.F("actor_ref"),
                        models.OrderBy(models.F("at"), descending=True),
                        models.OrderBy(models.F("number"), descending=True),
                        name="audit_event_actor_newest",
                    ),
                    models.Index(
                        models.F("type"),
                        models.OrderBy(models.F("at"), descending=True),
                        models.OrderBy(models.F("number"), descending=True),
                        name="audit_event_type_newest",
                    ),
                    models.Index(
                        models.F("object_ref"),
                        models.OrderBy(models.F("at"), descending=True),
                        models.OrderBy(models.F("number"), descending=True),
                        condition=models.Q(("object_ref__isnull", False)),
                        name="audit_event_object_newest",
                    ),
                    models.Index(
                        models.F("subject_ref"),
                        models.OrderBy(models.F("at"), descending=True),
                        models.OrderBy(models.F("number"), descending=True),
                        condition=models.Q(("subject_ref__isnull", False)),
                        name="audit_event_subject_newest",
                    ),
                    models.Index(
                        models.F("outcome"),
                        models.OrderBy(models.F("at"), descending=True),
                        models.OrderBy(models.F("number"), descending=True),
                        condition=models.Q(("outcome", "succeeded"), _negated=True),
                        name="audit_event_outcome_newest",
                    ),
                    models.Index(
                        models.OrderBy(models.F("at"), descending=True),
                        models.OrderBy(models.F("number"), descending=True),
                        condition=models.Q(("actor_kind", "database"), ("cause__isnull", True)),
                        name="audit_event_outside_newest",
                    ),
                    models.Index(
                        models.F("cause"),
                        models.F("number"),
                        condition=models.Q(("cause__isnull", False)),
                        name="audit_event_by_cause",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        condition=models.Q(("shown", []), _negated=True), fields=["shown"], name="audit_event_shown_ids"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=memadmin.audit.models.IsPlain(
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
                        ),
                        name="audit_event_is_plain",
                    )
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="stamp",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_stamp_event()",
                            func="RETURN NULL;",
                            hash="d73ebd4247b27ff5a44912d7b2a785c3c7c1034c",
                            operation="INSERT",
                            pgid="pgtrigger_stamp_88c87",
                            table="audit_event",
                            when="BEFORE",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="guard",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_refuse_change()",
                            func="RETURN NULL;",
                            hash="eca509db4dadac66059c6733451ee938fc079aab",
                            level="STATEMENT",
                            operation="UPDATE OR DELETE OR TRUNCATE",
                            pgid="pgtrigger_guard_2ef66",
                            table="audit_event",
                            when="BEFORE",
                        ),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditDetail",
            fields=[
                (
                    "event",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="detail",
                        serialize=False,
                        to="audit.auditevent",
                        to_field="id",
                    ),
                ),
                ("salt", models.BinaryField()),
                ("details", models.TextField()),
            ],
            options={
                "db_table": "audit_detail",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=django.db.models.lookups.Exact(django.db.models.functions.text.Length("salt"), 32),
                        name="audit_detail_salt",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditPending",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
            ],
            options={
                "db_table": "audit_pending",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="AuditLeaf",
            fields=[
                ("index", models.BigIntegerField(primary_key=True, serialize=False)),
                ("event_number", models.BigIntegerField(unique=True)),
                ("hash", models.BinaryField()),
            ],
            options={
                "db_table": "audit_leaf",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("index__gte", 0)), name="audit_leaf_index"),
                    models.CheckConstraint(
                        condition=django.db.models.lookups.Exact(django.db.models.functions.text.Length("hash"), 32),
                        name="audit_leaf_hash",
                    ),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="guard",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_refuse_change()",
                            func="RETURN NULL;",
                            hash="a894e6356b2996f571306b43b7e09c937baf5b1f",
                            level="STATEMENT",
                            operation="UPDATE OR DELETE OR TRUNCATE",
                            pgid="pgtrigger_guard_0d842",
                            table="audit_leaf",
                            when="BEFORE",
                        ),
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditNode",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "level", "index", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("level", models.SmallIntegerField()),
                ("index", models.BigIntegerField()),
                ("hash", models.BinaryField()),
            ],
            options={
                "db_table": "audit_node",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=django.db.models.lookups.Exact(django.db.models.functions.text.Length("hash"), 32),
                        name="audit_node_hash",
                    )
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="guard",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_refuse_change()",
                            func="RETURN NULL;",
                            hash="bf9e7fe8d290224412e5db94f2aeb47273c26222",
                            level="STATEMENT",
                            operation="UPDATE OR DELETE OR TRUNCATE",
                            pgid="pgtrigger_guard_a07e4",
                            table="audit_node",
                            when="BEFORE",
                        ),
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditCheckpoint",
            fields=[
                ("size", models.BigIntegerField(primary_key=True, serialize=False)),
                ("root", models.BinaryField()),
                ("at", models.DateTimeField()),
                ("key_id", models.CharField(max_length=64)),
                ("note", models.TextField()),
            ],
            options={
                "db_table": "audit_checkpoint",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=django.db.models.lookups.Exact(django.db.models.functions.text.Length("root"), 32),
                        name="audit_checkpoint_root",
                    )
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="guard",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_refuse_change()",
                            func="RETURN NULL;",
                            hash="5e8714b0c2468f67c7a40fec5df935a2cd51acfd",
                            level="STATEMENT",
                            operation="UPDATE OR DELETE OR TRUNCATE",
                            pgid="pgtrigger_guard_0ea63",
                            table="audit_checkpoint",
                            when="BEFORE",
                        ),
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditAnchor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("checkpoint_size", models.BigIntegerField()),
                ("sink", models.CharField(max_length=64)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("outcome", models.CharField(max_length=16)),
                ("receipt", models.TextField(db_default="")),
            ],
            options={
                "db_table": "audit_anchor",
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        models.F("sink"),
                        models.OrderBy(models.F("checkpoint_size"), descending=True),
                        name="audit_anchor_by_sink",
                    )
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="guard",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_refuse_change()",
                            func="RETURN NULL;",
                            hash="b580bbee131bd13c86aa4362cee4239b152fd175",
                            level="STATEMENT",
                            operation="UPDATE OR DELETE OR TRUNCATE",
                            pgid="pgtrigger_guard_75424",
                            table="audit_anchor",
                            when="BEFORE",
                        ),
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditVerdict",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("verdict", models.CharField(max_length=16)),
                ("size", models.BigIntegerField()),
                ("root", models.BinaryField(null=True)),
                ("findings", models.JSONField(db_default=models.Value("[]"))),
            ],
            options={
                "db_table": "audit_verdict",
                "get_latest_by": "at",
                "default_permissions": (),
            },
        ),
    ]
