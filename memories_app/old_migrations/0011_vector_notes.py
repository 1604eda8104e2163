from __future__ import annotations

import importlib

import django.contrib.postgres.functions
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

FIX_PATH = importlib.import_module("memadmin.audit.old_migrations.0001_functions").FIX_PATH

NOTE = """
CREATE FUNCTION memadmin_note_vector() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO memories_app_vectornote (memory_id) VALUES (OLD.id)
    ON CONFLICT (memory_id) DO UPDATE SET token = gen_random_uuid();
    RETURN NULL;
END $$
"""


class Migration(migrations.Migration):
    """What another index of vectors has to take in or let go is noted by the database."""

    dependencies = [
        ("memories_app", "0010_recalls_outlive_memories"),
    ]

    operations = [
        migrations.RunSQL(FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(NOTE, "DROP FUNCTION memadmin_note_vector()"),
        migrations.CreateModel(
            name="VectorNote",
            fields=[
                ("memory_id", models.UUIDField(primary_key=True, serialize=False)),
                ("token", models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID())),
                ("noted_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        migrations.AddIndex(
            model_name="vectornote",
            index=models.Index(models.F("noted_at"), name="vector_note_oldest"),
        ),
    ]
