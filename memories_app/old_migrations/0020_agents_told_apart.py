from __future__ import annotations

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations


class Migration(migrations.Migration):
    """What agents propose, quote and signal themselves is theirs in the log, too."""

    dependencies = [
        ("audit", "0013_tell_agents_apart"),
        ("memories_app", "0019_quotes_of_its_own_subject"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="evidence",
            name="note_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="memory",
            name="note_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="signal",
            name="note_insert",
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (current_user = session_user)",
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,signal_id', 'session_id,quote', 'agents')",
                    func="RETURN NULL;",
                    hash="e6f43a4cd9aa4ffda8de23bfbad2ccb33630326c",
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
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,signal_id', 'session_id,quote')",
                    func="RETURN NULL;",
                    hash="520f5cf8a56e1e607a6a8c0d994b493c66648926",
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
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (current_user = session_user)",
                    execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data', 'agents')",
                    func="RETURN NULL;",
                    hash="3783628a8b94577f7715122145cfdf907ad36c06",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_agents_insert_aadba",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT (current_user = session_user))",
                    execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data')",
                    func="RETURN NULL;",
                    hash="e26ed9b90227ebf4c6eb97988a74038e7647a3c5",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_1c367",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signal",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (current_user = session_user)",
                    execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text', 'agents')",
                    func="RETURN NULL;",
                    hash="2b7499479bb1262f0fd76c0039f50782730bd9aa",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_agents_insert_9e209",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_signal",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signal",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT (current_user = session_user))",
                    execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text')",
                    func="RETURN NULL;",
                    hash="61e859e8e9fb44706cae5f99de79e7f4693e0f1e",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_21138",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_signal",
                    when="AFTER",
                ),
            ),
        ),
    ]
