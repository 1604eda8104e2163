import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """Rules approve a memory only with a quote that was found in a user's item."""

    dependencies = [("memories_app", "0004_what_roles_may")]
    operations = [
        migrations.AddField("evidence", "said_by_user", models.BooleanField(editable=False, null=True)),
        RunFile("memories_app", "user_quotes.sql"),
        RunFile("memories_app", "memory_gate.sql"),
        pgtrigger.migrations.RemoveTrigger(
            model_name="evidence",
            name="note_agents_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="evidence",
            name="note_insert",
        ),
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
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (current_user = session_user)",
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,tools,signal_id,said_by_user', 'session_id,quote', 'agents')",
                    func="RETURN NULL;",
                    hash="87cc15d8723f16b920daaf033b98394b40ec7a50",
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
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,tools,signal_id,said_by_user', 'session_id,quote')",
                    func="RETURN NULL;",
                    hash="c516c8153eb995b494fb861ed7900424ad815104",
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
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,tools,signal_id,said_by_user', 'session_id,quote')",
                    func="RETURN NULL;",
                    hash="fa221e460d4f12f6b8af987a0349bb48ef6152c4",
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
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,tools,signal_id,said_by_user', 'session_id,quote')",
                    func="RETURN NULL;",
                    hash="93a0b81eeb04f94dc2e55a5030ba9eb149e4d674",
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
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,tools,signal_id,said_by_user', 'session_id,quote')",
                    func="RETURN NULL;",
                    hash="91b2ec258510157d7818c6542a033d1b14acb62c",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_28954",
                    table="memories_app_evidence",
                    when="AFTER",
                ),
            ),
        ),
    ]
