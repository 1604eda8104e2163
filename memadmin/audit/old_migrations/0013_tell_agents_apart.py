from __future__ import annotations

import importlib

from django.db import migrations

functions = importlib.import_module("memadmin.audit.old_migrations.0001_functions")
note_rows = importlib.import_module("memadmin.audit.old_migrations.0006_note_rows")
naming = importlib.import_module("memadmin.audit.old_migrations.0012_who_may_name_an_actor")

# Which roles agents write under is known above the log, where this one is replaced.
IS_AGENTS_ROLE = """
CREATE FUNCTION memadmin_is_agents_role(role name) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
SELECT false
$$
"""

# What an agent calls itself is its own word, so it stands in quotes, wherever a name is shown. One that takes another
# name each time would crowd people out of the lists of who acted: 200 names are written down.
AGENT = """
CREATE FUNCTION memadmin_agent(said text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    nobody CONSTANT text := 'an agent without a name';
    bare CONSTANT text := left(btrim(regexp_replace(translate(said, '“”', ''), '[[:cntrl:]]+', ' ', 'g')), 80);
    called text := CASE WHEN bare <> '' THEN '“' || bare || '”' ELSE nobody END;
BEGIN
    IF NOT EXISTS (SELECT FROM audit_actor WHERE kind = 'agent' AND label = called AND user_id IS NULL)
        AND (SELECT count(*) >= 200 FROM audit_actor WHERE kind = 'agent')
    THEN
        called := nobody;
    END IF;
    RETURN memadmin_actor('agent', called);
END $$
"""

# As `memadmin_record_rows`, of whoever the caller says acted: for functions of ours alone.
BEFORE, _, INSERT = note_rows.RECORD_ROWS.partition("    event_id uuid :=")
WRITE_ROWS = """
CREATE FUNCTION memadmin_write_rows(
    event_type text, kind text, refs uuid[], subjects uuid[], total bigint, details text,
    by_kind text, by_ref uuid, caused_by uuid
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    event_id uuid :=""" + INSERT.replace(
    "coalesce(split_part(named, ':', 1), 'database')", "coalesce(by_kind, 'database')"
).replace("split_part(named, ':', 2)::uuid", "by_ref").replace("cause::uuid", "caused_by")
assert not {"named", "cause::"} & {*WRITE_ROWS.replace("(", " ").split()}

RECORD_ROWS = (
    naming.FROM_THE_APPLICATION.partition("    event_id uuid :=")[0]
    + """BEGIN
    PERFORM memadmin_write_rows(
        event_type, kind, refs, subjects, total, details,
        split_part(named, ':', 1), split_part(named, ':', 2)::uuid, cause::uuid
    );
END $$
"""
)

# An agent is who connected under a role of agents, as itself, and did what the client does: the trigger tells that by
# its last argument. Somebody who may change rows, or record events, is none, whatever their role is declared to be.
BY_AGENT = """    IF total > 0 THEN
        IF TG_NARGS > 7 AND current_setting('role') = 'none'
            AND NOT has_any_column_privilege(session_user, 'audit_event', 'INSERT')
            AND NOT has_any_column_privilege(session_user, TG_RELID, 'UPDATE')
            AND NOT has_table_privilege(session_user, TG_RELID, 'DELETE, TRUNCATE')
            AND memadmin_is_agents_role(session_user)
        THEN
            said := current_setting('memadmin.agent', true);
            IF TG_OP <> 'DELETE' THEN
                SELECT coalesce(CASE WHEN count(DISTINCT one) = 1 THEN max(one) END, said) INTO said
                FROM (SELECT nullif(to_jsonb(theirs) ->> 'agent', '') AS one FROM new_rows AS theirs) AS called;
            END IF;
            PERFORM memadmin_write_rows(
                noun || CASE TG_OP
                    WHEN 'INSERT' THEN '.row_inserted' WHEN 'DELETE' THEN '.row_deleted' ELSE '.row_updated'
                END,
                kind, refs, coalesce(subjects, '{}'), total, jsonb_build_object('rows', noted)::text,
                'agent', memadmin_agent(said), NULL
            );
            RETURN NULL;
        END IF;
"""
OLD_NOTE_ROWS = note_rows.NOTE_ROWS.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
NOTE_ROWS = OLD_NOTE_ROWS.replace("    IF total > 0 THEN\n", BY_AGENT).replace(
    "    noted jsonb;\n", "    noted jsonb;\n    said text;\n"
)
assert NOTE_ROWS.count("memadmin_write_rows") == NOTE_ROWS.count("said text;") == 1

NOT_FOR_EVERYBODY = """
REVOKE ALL ON FUNCTION memadmin_agent(text),
    memadmin_write_rows(text, text, uuid[], uuid[], bigint, text, text, uuid, uuid) FROM PUBLIC
"""


class Migration(migrations.Migration):
    """What agents add under their own roles is told apart from what somebody does past the console."""

    dependencies = [("audit", "0012_who_may_name_an_actor")]

    operations = [
        migrations.RunSQL(functions.FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(IS_AGENTS_ROLE, "DROP FUNCTION memadmin_is_agents_role(name)"),
        migrations.RunSQL(AGENT, "DROP FUNCTION memadmin_agent(text)"),
        migrations.RunSQL(
            WRITE_ROWS,
            "DROP FUNCTION memadmin_write_rows(text, text, uuid[], uuid[], bigint, text, text, uuid, uuid)",
        ),
        migrations.RunSQL(RECORD_ROWS, naming.FROM_THE_APPLICATION),
        migrations.RunSQL(NOTE_ROWS, OLD_NOTE_ROWS),
        migrations.RunSQL(NOT_FOR_EVERYBODY, migrations.RunSQL.noop),
    ]
