from __future__ import annotations

import importlib

from django.db import migrations

FIX_PATH = importlib.import_module("memadmin.audit.old_migrations.0001_functions").FIX_PATH

# The row is locked as the fence locks it: an erasure that is under way is waited for, or waits and finds the quote.
MAY_QUOTE = """
CREATE FUNCTION memadmin_may_quote(in_memory uuid, from_record uuid, from_session text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    whose uuid;
    sources uuid[] := ARRAY[from_record];
BEGIN
    IF from_record IS NULL THEN
        SELECT array_agg(r.id) INTO sources
        FROM sessions_app_sessionstore AS s JOIN sessions_app_sessionrecord AS r
            ON r.store_id = s.id AND r.session_id = from_session AND from_session <> '';
        IF sources IS NULL THEN
            RETURN true;
        END IF;
    END IF;
    PERFORM FROM sessions_app_sessionrecord WHERE id = ANY (sources) ORDER BY id FOR KEY SHARE;
    SELECT subject_id INTO whose FROM memories_app_memory WHERE id = in_memory;
    IF NOT EXISTS (
        SELECT FROM sessions_app_sessionrecord
        WHERE id = ANY (sources) AND session_id = from_session AND erased_at IS NULL
          AND (whose IS NULL OR subject_id IS NULL OR subject_id = ANY (memadmin_subject_group(whose)))
    ) THEN
        RAISE EXCEPTION 'These words are of a session that is not on record, or about somebody else.'
            USING ERRCODE = 'P0M08';
    END IF;
    RETURN true;
END $$
"""

NEW_POLICY = """
DROP POLICY proposed ON memories_app_evidence;
CREATE POLICY proposed ON memories_app_evidence FOR INSERT WITH CHECK (
    memadmin_is_new_proposal(memory_id) AND memadmin_may_quote(memory_id, record_id, session_id)
)
"""

OLD_POLICY = """
DROP POLICY proposed ON memories_app_evidence;
CREATE POLICY proposed ON memories_app_evidence FOR INSERT WITH CHECK (memadmin_is_new_proposal(memory_id))
"""


class Migration(migrations.Migration):
    """Agents quote what was said in sessions of the subject that they propose about, as long as those are on record."""

    dependencies = [("memories_app", "0018_gate_against_agents"), ("sessions_app", "0014_register_sessions")]
    operations = [
        migrations.RunSQL(FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(MAY_QUOTE, "DROP FUNCTION memadmin_may_quote(uuid, uuid, text)"),
        migrations.RunSQL(NEW_POLICY, OLD_POLICY),
    ]
