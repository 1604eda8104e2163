from __future__ import annotations

import importlib

from django.db import migrations

functions = importlib.import_module("memadmin.audit.old_migrations.0001_functions")

# Whoever acts for the first time is written down within a transaction that may last. Others must not wait for it: the
# id of a job, a command or a role follows from its name, and somebody else is writing it down already. People have
# random ids, which are made with their accounts.
ACTOR = """
CREATE OR REPLACE FUNCTION memadmin_actor(given_kind text, given_label text, given_user_id bigint DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    found uuid;
    found_label text;
BEGIN
    IF given_user_id IS NULL THEN
        SELECT ref INTO found FROM audit_actor
        WHERE kind = given_kind AND label = given_label AND user_id IS NULL;
        IF found IS NULL THEN
            found := memadmin_ref('actor.' || given_kind, given_label);
            IF pg_try_advisory_xact_lock(hashtextextended(found::text, 0)) THEN
                BEGIN
                    INSERT INTO audit_actor (ref, kind, label) VALUES (found, given_kind, given_label)
                    ON CONFLICT DO NOTHING;
                EXCEPTION WHEN serialization_failure THEN
                    NULL;  -- written down since this transaction began
                END;
            END IF;
        END IF;
        RETURN found;
    END IF;
    LOOP
        SELECT ref, label INTO found, found_label FROM audit_actor WHERE kind = given_kind AND user_id = given_user_id;
        IF found IS NOT NULL THEN
            IF found_label <> given_label THEN
                UPDATE audit_actor SET label = given_label WHERE ref = found;
            END IF;
            RETURN found;
        END IF;
        INSERT INTO audit_actor (kind, label, user_id) VALUES (given_kind, given_label, given_user_id)
        ON CONFLICT DO NOTHING RETURNING ref INTO found;
        IF found IS NOT NULL THEN
            RETURN found;
        END IF;
    END LOOP;
END $$
"""

MAKE_ACTOR = """
CREATE FUNCTION memadmin_make_actor() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM memadmin_actor('person', left(NEW.username, 200), NEW.id);
    RETURN NULL;
END $$
"""

FORGET_ACTOR = """
CREATE FUNCTION memadmin_forget_actor() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    gone CONSTANT uuid := memadmin_ref('auth.user', OLD.id::text);
BEGIN
    DELETE FROM audit_actor WHERE kind = 'person' AND user_id = OLD.id;
    DELETE FROM audit_detail USING audit_event AS event
    WHERE event.id = audit_detail.event_id AND (
        event.object_ref = gone OR event.shown <> '{}' AND event.shown @> ARRAY[gone] AND event.type LIKE 'user.row_%'
    );
    RETURN NULL;
END $$
"""

NOT_FOR_EVERYBODY = "REVOKE ALL ON FUNCTION memadmin_make_actor(), memadmin_forget_actor() FROM PUBLIC"


class Migration(migrations.Migration):
    """Nobody waits for somebody else's first act; an account that goes takes along who it was."""

    dependencies = [("audit", "0006_note_rows")]

    operations = [
        migrations.RunSQL(functions.FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(ACTOR, migrations.RunSQL.noop),
        migrations.RunSQL(MAKE_ACTOR, "DROP FUNCTION memadmin_make_actor()"),
        migrations.RunSQL(FORGET_ACTOR, "DROP FUNCTION memadmin_forget_actor()"),
        migrations.RunSQL(NOT_FOR_EVERYBODY, migrations.RunSQL.noop),
    ]
