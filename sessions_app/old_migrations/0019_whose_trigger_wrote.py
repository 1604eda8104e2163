from __future__ import annotations

import importlib

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

functions = importlib.import_module("memadmin.audit.old_migrations.0001_functions")
REGISTER = importlib.import_module("sessions_app.old_migrations.0014_register_sessions").REGISTER.replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
# In a trigger it would be taken for what ours write.
BY_ITSELF = REGISTER.replace(
    "\nBEGIN\n",
    """
BEGIN
    IF pg_trigger_depth() > 0 THEN
        RAISE EXCEPTION 'A session is not registered by a trigger.';
    END IF;
""",
    1,
)
assert REGISTER != BY_ITSELF


class Migration(migrations.Migration):
    """What the fence writes is told by its rights from what the trigger of a stranger writes."""

    dependencies = [
        ("audit", "0018_whose_trigger_wrote"),
        ("sessions_app", "0018_index_attached_sessions"),
    ]

    operations = [
        migrations.RunSQL(functions.FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(BY_ITSELF, REGISTER),
        migrations.RunSQL(migrations.RunSQL.noop, functions.FIX_PATH),
        pgtrigger.migrations.RemoveTrigger(
            model_name="sessionrecord",
            name="note_delete",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="sessionrecord",
            name="note_agents_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="sessionrecord",
            name="note_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="sessionrecord",
            name="note_agents_update",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="sessionrecord",
            name="note_update",
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
            name="note_agents_delete",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subject",
            name="note_delete",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subjectalias",
            name="note_agents_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subjectalias",
            name="note_insert",
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="sessionrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT memadmin_by_our_trigger() AND (memadmin_through_us()))",
                    execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '', 'agents')",
                    func="RETURN NULL;",
                    hash="41b69498e6ac705e52caa6c5a84e983dfb31f4df",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_agents_insert_9072b",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="sessions_app_sessionrecord",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="sessionrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT memadmin_by_our_trigger() AND NOT (memadmin_through_us()))",
                    execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '')",
                    func="RETURN NULL;",
                    hash="1e3a46109d4d125b11c67a92344424c8427094bf",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_f8ebf",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="sessions_app_sessionrecord",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="sessionrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT memadmin_by_our_trigger() AND (memadmin_through_us()))",
                    execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '', 'agents')",
                    func="RETURN NULL;",
                    hash="75039f9cf3026b29b2d42f3c646c387155cd08b1",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_agents_update_32272",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="sessions_app_sessionrecord",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="sessionrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT memadmin_by_our_trigger() AND NOT (memadmin_through_us()))",
                    execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '')",
                    func="RETURN NULL;",
                    hash="97101aa52406540db6fdea2f5ba219a56344f2de",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_526d4",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="sessions_app_sessionrecord",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="sessionrecord",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT memadmin_by_our_trigger())",
                    execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '')",
                    func="RETURN NULL;",
                    hash="a3fd9caaeef0fd5672c01bfd7112bd204ca7b647",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_b5af9",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="sessions_app_sessionrecord",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subject",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (memadmin_through_us())",
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '', 'agents')",
                    func="RETURN NULL;",
                    hash="a6473103221557ef9c97a5d18cb0277a3722f0dd",
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
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '')",
                    func="RETURN NULL;",
                    hash="d725f1a321264b2535783eb65ff1345e4dc1d443",
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
                name="note_agents_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (memadmin_through_us())",
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '', 'agents')",
                    func="RETURN NULL;",
                    hash="958f49e65204468688e71a259f7a371c3e561abe",
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
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '')",
                    func="RETURN NULL;",
                    hash="328d386ac98f78fb906cf9970b04af34f1fabb94",
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
            model_name="subjectalias",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (memadmin_through_us())",
                    execute="memadmin_note_rows('alias', 'sessions_app.subjectalias', 'id', 'ref', 'subject_id', 'subject_id,kind,key,is_primary', '', 'agents')",
                    func="RETURN NULL;",
                    hash="cd2c078aff49072123e542d53eeb964aaf4980bf",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_agents_insert_2ad31",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="sessions_app_subjectalias",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subjectalias",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT (memadmin_through_us()))",
                    execute="memadmin_note_rows('alias', 'sessions_app.subjectalias', 'id', 'ref', 'subject_id', 'subject_id,kind,key,is_primary', '')",
                    func="RETURN NULL;",
                    hash="5960089b51117223074d881c104f1c39a8aeb6dc",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_7a88d",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="sessions_app_subjectalias",
                    when="AFTER",
                ),
            ),
        ),
    ]
