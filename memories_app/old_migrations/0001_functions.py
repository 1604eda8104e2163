from __future__ import annotations

import importlib

from django.db import migrations

FIX_PATH = importlib.import_module("memadmin.audit.old_migrations.0001_functions").FIX_PATH

# The subject itself, the one it was merged into in the end, and all that were merged into that one.
SUBJECT_GROUP = """
CREATE FUNCTION memadmin_subject_group(given uuid) RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
WITH RECURSIVE above AS (
    SELECT id, merged_into_id FROM sessions_app_subject WHERE id = given
    UNION SELECT s.id, s.merged_into_id FROM sessions_app_subject AS s JOIN above ON s.id = above.merged_into_id
), below AS (
    SELECT id FROM above WHERE merged_into_id IS NULL
    UNION SELECT s.id FROM sessions_app_subject AS s JOIN below ON s.merged_into_id = below.id
)
SELECT coalesce(array_agg(id), '{}') FROM below
$$
"""

RUN_SUBJECTS = """
CREATE FUNCTION memadmin_run_subjects() RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
SELECT memadmin_subject_group(nullif(current_setting('memadmin.subject', true), '')::uuid)
$$
"""

# Class P0M: what is refused about memories. Outside class 23, which libraries take for lost races.
MAY_LEARN = """
CREATE FUNCTION memadmin_may_learn() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.subject_id IS NOT NULL AND EXISTS (
        SELECT FROM memories_app_learningstop WHERE subject_id = ANY (memadmin_subject_group(NEW.subject_id))
    ) THEN
        RAISE EXCEPTION 'Nothing is to be learned from this subject.' USING ERRCODE = 'P0M01';
    END IF;
    RETURN NEW;
END $$
"""

GATE = """
CREATE FUNCTION memadmin_memory_gate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    people int;
    by_rule boolean;
    is_risky boolean;
BEGIN
    NEW.content_hash := encode(sha256(convert_to(jsonb_build_array(
        NEW.subject_id, NEW.kind, NEW.key, NEW.statement, NEW.data,
        (SELECT coalesce(jsonb_agg(name ORDER BY name), '[]') FROM unnest(NEW.agents) AS name)
    )::text, 'UTF8')), 'hex');

    IF TG_OP = 'INSERT' THEN
        NEW.version := 1;
        NEW.is_verified := false;
        IF NEW.status <> 'proposed' THEN
            RAISE EXCEPTION 'A memory begins as a proposal.' USING ERRCODE = 'P0M02';
        END IF;
        IF NEW.subject_id IS NOT NULL AND EXISTS (
            SELECT FROM memories_app_learningstop WHERE subject_id = ANY (memadmin_subject_group(NEW.subject_id))
        ) THEN
            RAISE EXCEPTION 'Nothing is to be learned from this subject.' USING ERRCODE = 'P0M01';
        END IF;
        RETURN NEW;
    END IF;

    NEW.version := OLD.version + (NEW.content_hash <> OLD.content_hash)::int;
    NEW.is_verified := OLD.is_verified AND NEW.content_hash = OLD.content_hash;
    IF NEW.content_hash <> OLD.content_hash AND NEW.embedded_hash <> NEW.content_hash THEN
        NEW.embedding := NULL;
        NEW.embedder := '';
    END IF;
    IF NEW.status = 'approved' AND (OLD.status <> 'approved' OR NEW.content_hash <> OLD.content_hash) THEN
        -- Approvals of this very text, of the memory itself or of a proposal to change it, since it last waited.
        SELECT count(DISTINCT r.reviewer_id), coalesce(bool_or(r.rule_id IS NOT NULL AND m.source NOT IN ('tool', 'web')), false),
               coalesce(bool_or(m.risk_flags <> '{}'), false)
        INTO people, by_rule, is_risky
        FROM memories_app_review AS r JOIN memories_app_memory AS m ON m.id = r.memory_id
        WHERE (m.id = NEW.id OR m.replaces_id = NEW.id)
          AND r.decision = 'approve' AND r.undone_at IS NULL AND r.content_hash = NEW.content_hash
          AND r.decided_at >= m.awaiting_since
          AND (r.reviewer_id IS NULL OR r.reviewer_id IS DISTINCT FROM m.proposed_by_id);
        is_risky := is_risky OR NEW.risk_flags <> '{}' OR NEW.subject_id IS NULL;
        IF NOT (people >= 2 OR (NOT is_risky AND (people = 1 OR by_rule))) THEN
            RAISE EXCEPTION 'Nobody who may has approved this text, or one person alone has where two must.'
                USING ERRCODE = 'P0M03';
        END IF;
        IF NEW.screened_hash <> NEW.content_hash THEN
            RAISE EXCEPTION 'Nothing has looked for risks in this text yet.' USING ERRCODE = 'P0M04';
        END IF;
        NEW.is_verified := people > 0;
    END IF;
    RETURN NEW;
END $$
"""

KEEP_VERSION = """
CREATE FUNCTION memadmin_keep_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    named text := substring(current_setting('memadmin.actor', true), '^[a-z]+:[0-9a-f-]{36}$');
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.version = OLD.version THEN
            RETURN NULL;
        END IF;
    END IF;
    INSERT INTO memories_app_memoryversion (memory_id, number, statement, data, content_hash, author_kind, author_ref)
    VALUES (
        NEW.id, NEW.version, NEW.statement, NEW.data, NEW.content_hash,
        coalesce(split_part(named, ':', 1), 'database'), split_part(named, ':', 2)::uuid
    );
    RETURN NULL;
END $$
"""

HASH_QUOTE = """
CREATE FUNCTION memadmin_hash_quote() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.quote_hash := encode(sha256(convert_to(NEW.quote, 'UTF8')), 'hex');
    RETURN NEW;
END $$
"""


class Migration(migrations.Migration):
    """What the tables of memories rest on: the gate, the versions, and who a subject is."""

    initial = True
    dependencies = [("audit", "0009_check_events_at_once"), ("sessions_app", "0013_watched_paths")]
    operations = [
        migrations.RunSQL(FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(SUBJECT_GROUP, "DROP FUNCTION memadmin_subject_group(uuid)"),
        migrations.RunSQL(RUN_SUBJECTS, "DROP FUNCTION memadmin_run_subjects()"),
        migrations.RunSQL(MAY_LEARN, "DROP FUNCTION memadmin_may_learn()"),
        migrations.RunSQL(GATE, "DROP FUNCTION memadmin_memory_gate()"),
        migrations.RunSQL(KEEP_VERSION, "DROP FUNCTION memadmin_keep_version()"),
        migrations.RunSQL(HASH_QUOTE, "DROP FUNCTION memadmin_hash_quote()"),
    ]
