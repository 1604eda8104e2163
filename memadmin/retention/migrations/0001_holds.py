import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
from django.conf import settings
from django.db import migrations, models

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """Legal holds, and the functions that enforce them."""

    initial = True

    dependencies = [
        ("audit", "0003_guards"),
        ("sessions_app", "0004_what_roles_may"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        RunFile("retention", "holds.sql"),
        migrations.CreateModel(
            name="HoldLock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("last_number", models.BigIntegerField(db_default=0)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="LegalHold",
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
                ("number", models.BigIntegerField(db_default=0, editable=False, unique=True)),
                ("record_id", models.UUIDField(null=True)),
                ("label", models.CharField(db_default="", default="", max_length=50)),
                ("session_id", models.CharField(db_default="", default="")),
                ("reason", models.CharField(max_length=500)),
                ("review_on", models.DateField()),
                ("placed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("release_requested_at", models.DateTimeField(null=True)),
                ("release_reason", models.CharField(db_default="", default="", max_length=500)),
                ("released_at", models.DateTimeField(null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "placed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "release_requested_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "released_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="holds",
                        to="sessions_app.subject",
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("view_hold", "Can see legal holds"),
                    ("place_hold", "Can place legal holds and request their release"),
                    ("release_hold", "Can approve the release of legal holds"),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="number",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_number_hold()",
                            func="RETURN NULL;",
                            hash="31e1140171e0e1ce84f6803a36cd9ff7dc8eeef7",
                            operation="INSERT",
                            pgid="pgtrigger_number_10032",
                            table="retention_legalhold",
                            when="BEFORE",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="keep_as_placed",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_keep_hold_as_placed()",
                            func="RETURN NULL;",
                            hash="ee2310f18b5f327a42156daa7835ed2a67a0256e",
                            operation="UPDATE",
                            pgid="pgtrigger_keep_as_placed_c6063",
                            table="retention_legalhold",
                            when="BEFORE",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="keep",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_keep_hold()",
                            func="RETURN NULL;",
                            hash="3bede084d83844d61c9feacd08d4264f4b7caac2",
                            level="STATEMENT",
                            operation="UPDATE OR DELETE OR TRUNCATE",
                            pgid="pgtrigger_keep_5d0cc",
                            table="retention_legalhold",
                            when="BEFORE",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('legal_hold', 'retention.legalhold', 'id', 'uuid', 'subject_id', 'subject_id,record_id,label,reason,owner_id,review_on,release_requested_by_id,release_requested_at,release_reason,released_by_id,released_at', 'label,reason,release_reason')",
                            func="RETURN NULL;",
                            hash="19525827edccd1a0168baf43cc34d8791519efca",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_99599",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="retention_legalhold",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('legal_hold', 'retention.legalhold', 'id', 'uuid', 'subject_id', 'subject_id,record_id,label,reason,owner_id,review_on,release_requested_by_id,release_requested_at,release_reason,released_by_id,released_at', 'label,reason,release_reason')",
                            func="RETURN NULL;",
                            hash="df6b1a1319c8435631ef786346c198b9442a4659",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_1f549",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="retention_legalhold",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('legal_hold', 'retention.legalhold', 'id', 'uuid', 'subject_id', 'subject_id,record_id,label,reason,owner_id,review_on,release_requested_by_id,release_requested_at,release_reason,released_by_id,released_at', 'label,reason,release_reason')",
                            func="RETURN NULL;",
                            hash="f774edfc87e4b8a7023055d5f8f9a60bcba7d580",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_798ec",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="retention_legalhold",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('legal_hold', 'retention.legalhold', 'id', 'uuid', 'subject_id', 'subject_id,record_id,label,reason,owner_id,review_on,release_requested_by_id,release_requested_at,release_reason,released_by_id,released_at', 'label,reason,release_reason')",
                            func="RETURN NULL;",
                            hash="e938eb939d59fc5a1132cbe1dfd61b152cb4d1ea",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_6e6c7",
                            table="retention_legalhold",
                            when="AFTER",
                        ),
                    ),
                ],
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        models.F("subject"), condition=models.Q(("released_at__isnull", True)), name="hold_on_subject"
                    ),
                    models.Index(
                        models.F("record_id"), condition=models.Q(("released_at__isnull", True)), name="hold_on_session"
                    ),
                    models.Index(
                        models.F("label"), condition=models.Q(("released_at__isnull", True)), name="hold_on_label"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("label", ""), ("record_id__isnull", True), ("subject__isnull", False)),
                            models.Q(("label", ""), ("record_id__isnull", False), ("subject__isnull", True)),
                            models.Q(
                                ("record_id__isnull", True),
                                ("subject__isnull", True),
                                models.Q(("label", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="hold_covers_one_thing",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("released_at__isnull", True), ("release_requested_at__isnull", False), _connector="OR"
                        ),
                        name="hold_release_was_requested",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("released_by__isnull", True),
                            ("release_requested_by__isnull", True),
                            models.Q(("released_by", models.F("release_requested_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="hold_released_by_a_second_person",
                    ),
                ],
            },
        ),
    ]
