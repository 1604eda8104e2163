from __future__ import annotations

import django.contrib.postgres.fields
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):
    """Evidence says which tools may be behind it. Of what was there before, nobody knows."""

    dependencies = [
        ("memories_app", "0021_index_for_each_filter_of_the_queue"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="evidence",
            name="note_update",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="evidence",
            name="note_delete",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="evidence",
            name="note_truncate",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="evidence",
            name="note_agents_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="evidence",
            name="note_insert",
        ),
        migrations.AddField(
            model_name="evidence",
            name="tools",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=200), blank=True, null=True, size=None
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
    ]
