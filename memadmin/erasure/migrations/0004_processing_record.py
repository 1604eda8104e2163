import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Head of the record of processing activities."""

    dependencies = [
        ("audit", "0004_proven_actors"),
        ("erasure", "0003_suppressions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ProcessingRecord",
            fields=[
                ("id", models.SmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ("controller", models.TextField(max_length=2000, verbose_name="Controller")),
                ("contact", models.TextField(max_length=2000, verbose_name="Contact")),
                ("purpose", models.TextField(max_length=2000, verbose_name="Purpose")),
                ("subjects", models.TextField(max_length=2000, verbose_name="Subjects")),
                ("recipients", models.TextField(max_length=2000, verbose_name="Recipients")),
                ("third_countries", models.TextField(max_length=2000, verbose_name="Third countries")),
                ("security", models.TextField(max_length=2000, verbose_name="Security")),
                ("changed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "changed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("view_data_map", "Can see the data map and download the record of processing"),
                    ("change_processing_record", "Can change the head of the record of processing"),
                ],
                "default_permissions": (),
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="one_processing_record")],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="processingrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('processing_record', 'erasure.processingrecord', 'id', 'ref', '', 'controller,contact,purpose,subjects,recipients,third_countries,security', 'controller,contact')",
                    func="RETURN NULL;",
                    hash="32f4e549dcb134e9df9f8e5368686181b7ba8ca2",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_47856",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="erasure_processingrecord",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="processingrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('processing_record', 'erasure.processingrecord', 'id', 'ref', '', 'controller,contact,purpose,subjects,recipients,third_countries,security', 'controller,contact')",
                    func="RETURN NULL;",
                    hash="3c5a51d2dd34945d18462ef6f344e890154901df",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_ba687",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="erasure_processingrecord",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="processingrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('processing_record', 'erasure.processingrecord', 'id', 'ref', '', 'controller,contact,purpose,subjects,recipients,third_countries,security', 'controller,contact')",
                    func="RETURN NULL;",
                    hash="807c6d06deab609d69e49a6780773c72557bbfa2",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_ac0e4",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="erasure_processingrecord",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="processingrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('processing_record', 'erasure.processingrecord', 'id', 'ref', '', 'controller,contact,purpose,subjects,recipients,third_countries,security', 'controller,contact')",
                    func="RETURN NULL;",
                    hash="24f45e6a5b16e94063b6409ed18a9fa28ea2e29e",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_0f598",
                    table="erasure_processingrecord",
                    when="AFTER",
                ),
            ),
        ),
    ]
