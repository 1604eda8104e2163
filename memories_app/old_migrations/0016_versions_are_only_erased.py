from __future__ import annotations

import importlib

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

FIX_PATH = importlib.import_module("memadmin.audit.old_migrations.0001_functions").FIX_PATH

# What agents were told must not be written anew afterwards: of a version the text goes, and nothing else changes.
ONLY_ERASED = """
CREATE FUNCTION memadmin_only_erased() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF OLD.erased_at IS NOT NULL OR NEW.erased_at IS NULL
        OR (to_jsonb(NEW) - '{statement,data,erased_at}'::text[]) <> (to_jsonb(OLD) - '{statement,data,erased_at}'::text[])
    THEN
        RAISE EXCEPTION 'Of a version of a memory the text can be erased, and nothing else be changed.'
            USING ERRCODE = 'P0M05';
    END IF;
    RETURN NEW;
END $$
"""


class Migration(migrations.Migration):
    """Nothing happens to a version but that its text is erased."""

    dependencies = [("memories_app", "0015_what_was_compared")]
    operations = [
        migrations.RunSQL(FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(ONLY_ERASED, "DROP FUNCTION memadmin_only_erased()"),
        migrations.AlterModelOptions(
            name="memoryversion",
            options={"permissions": [("erase_version", "Can erase the text of a version of a memory")]},
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memoryversion",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
    ]
