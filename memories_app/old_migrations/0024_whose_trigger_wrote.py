from __future__ import annotations

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

# Whoever may call it may have it write versions, by a trigger on a table of their own that has such columns.
NOT_FOR_EVERYBODY = "REVOKE ALL ON FUNCTION memadmin_keep_version() FROM PUBLIC"


class Migration(migrations.Migration):
    """A version that a stranger's trigger writes does not follow from a memory."""

    dependencies = [
        ("audit", "0018_whose_trigger_wrote"),
        ("memories_app", "0023_find_evidence_by_tool"),
    ]

    operations = [
        migrations.RunSQL(NOT_FOR_EVERYBODY, migrations.RunSQL.noop),
        pgtrigger.migrations.RemoveTrigger(
            model_name="memoryversion",
            name="note_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="memoryversion",
            name="note_update",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="memoryversion",
            name="note_delete",
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memoryversion",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memoryversion",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memoryversion",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
    ]
