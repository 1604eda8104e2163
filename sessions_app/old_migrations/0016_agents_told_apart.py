from __future__ import annotations

import importlib

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

functions = importlib.import_module("memadmin.audit.old_migrations.0013_tell_agents_apart")

# By name: somebody who is a member of such a role is not yet an agent.
OLD_IS_AGENTS_ROLE = functions.IS_AGENTS_ROLE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
IS_AGENTS_ROLE = OLD_IS_AGENTS_ROLE.replace(
    "SELECT false", "SELECT EXISTS (SELECT FROM sessions_app_sessionstore WHERE role::text = ANY (agent_roles))"
)
assert IS_AGENTS_ROLE != OLD_IS_AGENTS_ROLE


class Migration(migrations.Migration):
    """The log asks the stores which roles are agents', and whether a function of ours wrote for one."""

    dependencies = [
        ("audit", "0013_tell_agents_apart"),
        ("sessions_app", "0015_who_named_an_id"),
    ]

    operations = [
        migrations.RunSQL(IS_AGENTS_ROLE, OLD_IS_AGENTS_ROLE),
        pgtrigger.migrations.RemoveTrigger(
            model_name="sessionrecord",
            name="note_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="sessionrecord",
            name="note_update",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subject",
            name="note_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="subject",
            name="note_delete",
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
                    condition="WHEN (pg_trigger_depth() = 0 AND (current_user <> session_user AND has_table_privilege(current_user, 'audit_event'::regclass, 'UPDATE')))",
                    execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '', 'agents')",
                    func="RETURN NULL;",
                    hash="500f3762ea45f7372a676ad3ac73521016b554db",
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
                    condition="WHEN (pg_trigger_depth() = 0 AND NOT (current_user <> session_user AND has_table_privilege(current_user, 'audit_event'::regclass, 'UPDATE')))",
                    execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '')",
                    func="RETURN NULL;",
                    hash="b682d9f3ed84373ac2794b17d74dcf9f03f9f796",
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
                    condition="WHEN (pg_trigger_depth() = 0 AND (current_user <> session_user AND has_table_privilege(current_user, 'audit_event'::regclass, 'UPDATE')))",
                    execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '', 'agents')",
                    func="RETURN NULL;",
                    hash="718a9f702590a7fe9f643803a35ac8f94ca7027b",
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
                    condition="WHEN (pg_trigger_depth() = 0 AND NOT (current_user <> session_user AND has_table_privilege(current_user, 'audit_event'::regclass, 'UPDATE')))",
                    execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '')",
                    func="RETURN NULL;",
                    hash="e5de679bbb9138538a8c2073a80fe0659f9c36d1",
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
            model_name="subject",
            trigger=pgtrigger.compiler.Trigger(
                name="note_agents_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (current_user <> session_user AND has_table_privilege(current_user, 'audit_event'::regclass, 'UPDATE'))",
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '', 'agents')",
                    func="RETURN NULL;",
                    hash="9a40e35a1e72a90f91b4cfac382168b52c310ca8",
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
                    condition="WHEN (NOT (current_user <> session_user AND has_table_privilege(current_user, 'audit_event'::regclass, 'UPDATE')))",
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '')",
                    func="RETURN NULL;",
                    hash="19e416bb3bc6d0b638de71eeb9b36a9b3cc5016a",
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
                    condition="WHEN (current_user <> session_user AND has_table_privilege(current_user, 'audit_event'::regclass, 'UPDATE'))",
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '', 'agents')",
                    func="RETURN NULL;",
                    hash="34695364fe90c87390e8358c4e065cdba32658f7",
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
                    condition="WHEN (NOT (current_user <> session_user AND has_table_privilege(current_user, 'audit_event'::regclass, 'UPDATE')))",
                    execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '')",
                    func="RETURN NULL;",
                    hash="324243411881ffc25bb7438b8338698c47707bd8",
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
                    condition="WHEN (current_user <> session_user AND has_table_privilege(current_user, 'audit_event'::regclass, 'UPDATE'))",
                    execute="memadmin_note_rows('alias', 'sessions_app.subjectalias', 'id', 'ref', 'subject_id', 'subject_id,kind,key,is_primary', '', 'agents')",
                    func="RETURN NULL;",
                    hash="e219af39c5a6d717152d5fedf8a0811a79fdc37f",
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
                    condition="WHEN (NOT (current_user <> session_user AND has_table_privilege(current_user, 'audit_event'::regclass, 'UPDATE')))",
                    execute="memadmin_note_rows('alias', 'sessions_app.subjectalias', 'id', 'ref', 'subject_id', 'subject_id,kind,key,is_primary', '')",
                    func="RETURN NULL;",
                    hash="a5a9f26878da2862f223a3289128ee55e75febfb",
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
