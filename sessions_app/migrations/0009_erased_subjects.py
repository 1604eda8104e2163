import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """Of an erased subject nothing is stored again, and its ids are kept as keyed digests alone."""

    dependencies = [("sessions_app", "0008_state_of_stores"), ("audit", "0004_proven_actors")]

    operations = [
        migrations.CreateModel(
            name="ErasedKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("subject_id", models.UUIDField()),
                ("epoch", models.PositiveIntegerField()),
                ("erased_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("reopened_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": [],
            },
        ),
        migrations.CreateModel(
            name="TombstoneLock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("changed_count", models.BigIntegerField(db_default=0)),
            ],
            options={
                "default_permissions": [],
            },
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subject",
            name="note_agents_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subject",
            name="note_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subject",
            name="note_update",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subject",
            name="note_agents_delete",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subject",
            name="note_delete",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subject",
            name="note_truncate",
        ),
        migrations.AddField(
            model_name="sessionrecord",
            name="is_forgotten",
            field=models.BooleanField(db_default=False, editable=False),
        ),
        migrations.AddField(
            model_name="subject",
            name="epoch",
            field=models.PositiveIntegerField(db_default=0, editable=False),
        ),
        migrations.AddField(
            model_name="subject",
            name="erased_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AlterModelOptions(
            name="subject",
            options={
                "ordering": ["created_at", "id"],
                "permissions": [
                    ("merge_subject", "Can merge subjects and undo merges"),
                    ("reopen_subject", "Can allow a new start under an erased id"),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="subject",
            constraint=models.UniqueConstraint(fields=("id", "erased_at"), name="subject_fence"),
        ),
        RunFile("sessions_app", "tombstones.sql"),
        RunFile("sessions_app", "erased_subjects.sql"),
        RunFile("sessions_app", "register_session.sql"),
        RunFile("sessions_app", "tombstone_rows.sql"),
        pgtrigger.migrations.AddTrigger(
            model_name="sessionrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="refuse_forgotten",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_refuse_forgotten()",
                    func="RETURN NULL;",
                    hash="b4dfda6637cf1deb9b43ce48dd6ccc88772b631d",
                    operation="INSERT",
                    pgid="pgtrigger_refuse_forgotten_2f2a5",
                    table="sessions_app_sessionrecord",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="sessionrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="subject_given",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NEW.subject_id IS NOT NULL)",
                    execute="memadmin_subject_of_session()",
                    func="RETURN NULL;",
                    hash="d09857d41a13fd3540247769a2cab8ee0edd825b",
                    operation="INSERT",
                    pgid="pgtrigger_subject_given_19ffa",
                    table="sessions_app_sessionrecord",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="sessionrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="subject_changed",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (OLD.subject_id IS DISTINCT FROM NEW.subject_id)",
                    execute="memadmin_subject_of_session()",
                    func="RETURN NULL;",
                    hash="1451bb38b69367daccf69492896d52576547400a",
                    operation='UPDATE OF "subject_id"',
                    pgid="pgtrigger_subject_changed_e71e8",
                    table="sessions_app_sessionrecord",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="sessionrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="note_forgotten",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_tombstones()",
                    func="RETURN NULL;",
                    hash="ca999465d0e8ffd4cee330f698f0b561ad18f1cd",
                    level="STATEMENT",
                    operation='UPDATE OF "is_forgotten"',
                    pgid="pgtrigger_note_forgotten_4b64a",
                    table="sessions_app_sessionrecord",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subject",
            trigger=pgtrigger.compiler.Trigger(
                name="keep_erased",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (ROW(OLD.merged_into_id, OLD.erased_at) IS DISTINCT FROM ROW(NEW.merged_into_id, NEW.erased_at))",
                    execute="memadmin_keep_erased_subject()",
                    func="RETURN NULL;",
                    hash="fe3eeffa717517262d347e455f421f3746cda7d4",
                    operation="UPDATE",
                    pgid="pgtrigger_keep_erased_100eb",
                    table="sessions_app_subject",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subject",
            trigger=pgtrigger.compiler.Trigger(
                name="keep_shell",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (OLD.erased_at IS NOT NULL)",
                    execute="memadmin_keep_erased_subject()",
                    func="RETURN NULL;",
                    hash="a8bd42a4f6db1a84501674b8328991493c2842e8",
                    operation="DELETE",
                    pgid="pgtrigger_keep_shell_e329c",
                    table="sessions_app_subject",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subject",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (memadmin_through_us())",
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id,erased_at', '', 'agents')",
                    func="RETURN NULL;",
                    hash="b36ae38ad476d3ac605b3834cf32c08d33b34280",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_agents_insert_b2610",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="sessions_app_subject",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subject",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT (memadmin_through_us()))",
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id,erased_at', '')",
                    func="RETURN NULL;",
                    hash="512dfe9d775e03065b59a4f4c06ece988ac60155",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_548d8",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="sessions_app_subject",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subject",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id,erased_at', '')",
                    func="RETURN NULL;",
                    hash="662cb49a53a7946c01de0745f3f2c88d160b6833",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_61e60",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="sessions_app_subject",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subject",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (memadmin_through_us())",
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id,erased_at', '', 'agents')",
                    func="RETURN NULL;",
                    hash="853e692bbb143ae0d33e7fb78d412e0e47bb6e9e",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_agents_delete_14343",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="sessions_app_subject",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subject",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT (memadmin_through_us()))",
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id,erased_at', '')",
                    func="RETURN NULL;",
                    hash="4d96fa7bedb7cdadea55e75919c42af7d8df2545",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_2e492",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="sessions_app_subject",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subject",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id,erased_at', '')",
                    func="RETURN NULL;",
                    hash="4420bf7155dfb7a2ff03d89d646882af249cdf1e",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_8d229",
                    table="sessions_app_subject",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subjectalias",
            trigger=pgtrigger.compiler.Trigger(
                name="refuse_erased",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_refuse_erased_key()",
                    func="RETURN NULL;",
                    hash="287732f2c785e0e727c2086d8f51a6092572153a",
                    operation="INSERT",
                    pgid="pgtrigger_refuse_erased_a355a",
                    table="sessions_app_subjectalias",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subjectalias",
            trigger=pgtrigger.compiler.Trigger(
                name="refuse_erased_change",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (ROW(OLD.subject_id, OLD.kind, OLD.key) IS DISTINCT FROM ROW(NEW.subject_id, NEW.kind, NEW.key))",
                    execute="memadmin_refuse_erased_key()",
                    func="RETURN NULL;",
                    hash="6b2a9dbe147857719eafaed8ccae5665d98ca7cb",
                    operation="UPDATE",
                    pgid="pgtrigger_refuse_erased_change_63006",
                    table="sessions_app_subjectalias",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subjectalias",
            trigger=pgtrigger.compiler.Trigger(
                name="keep_until_forgotten",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_keep_erased_key()",
                    func="RETURN NULL;",
                    hash="d928d8c5418c42b1a0d4942aa6c6764c3050e998",
                    operation="DELETE",
                    pgid="pgtrigger_keep_until_forgotten_6d18e",
                    table="sessions_app_subjectalias",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="erasedkey",
            trigger=pgtrigger.compiler.Trigger(
                name="note_added",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_tombstones()",
                    func="RETURN NULL;",
                    hash="2ca7dde0dc57da8e237407c6989e3c228524f5bd",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_added_1ec0b",
                    table="sessions_app_erasedkey",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="erasedkey",
            trigger=pgtrigger.compiler.Trigger(
                name="note_changed",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_tombstones()",
                    func="RETURN NULL;",
                    hash="5adb0b5c71d7efb1ab6447035227e59708e275a0",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_changed_bf020",
                    table="sessions_app_erasedkey",
                    when="AFTER",
                ),
            ),
        ),
    ]
