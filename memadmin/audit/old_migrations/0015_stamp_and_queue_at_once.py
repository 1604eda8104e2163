from __future__ import annotations

import importlib

import pgtrigger.migrations
from django.db import migrations

functions = importlib.import_module("memadmin.audit.old_migrations.0001_functions")
look_up = importlib.import_module("memadmin.audit.old_migrations.0010_look_up_the_role_at_once")

# A trigger costs an event more than what it does, and so does each statement in it. An insert that gives way to another
# (ON CONFLICT DO NOTHING) leaves a number in the queue without an event; the sequencer takes it out: an event is seen
# with its number or never.
STAMP_EVENT = """
CREATE OR REPLACE FUNCTION memadmin_stamp_event() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO audit_pending (number) VALUES (NEW.number)
    RETURNING clock_timestamp(), (
        SELECT ref FROM audit_actor WHERE kind = 'database' AND label = session_user AND user_id IS NULL
    ) INTO NEW.at, NEW.role_ref;
    IF NEW.role_ref IS NULL THEN
        NEW.role_ref := memadmin_actor('database', session_user);
    END IF;
    IF NEW.actor_ref IS NULL THEN
        NEW.actor_kind := 'database';
        NEW.actor_ref := NEW.role_ref;
    END IF;
    RETURN NEW;
END $$
"""

NOT_FOR_EVERYBODY = "REVOKE ALL ON FUNCTION memadmin_enqueue_event() FROM PUBLIC"


class Migration(migrations.Migration):
    """One trigger for each event instead of two. What waits in the queue goes on waiting there."""

    dependencies = [("audit", "0014_leave_out_agents")]

    operations = [
        migrations.RunSQL(functions.FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(STAMP_EVENT, look_up.STAMP_EVENT),
        pgtrigger.migrations.RemoveTrigger(model_name="auditevent", name="enqueue"),
        migrations.RunSQL("DROP FUNCTION memadmin_enqueue_event()", [functions.ENQUEUE_EVENT, NOT_FOR_EVERYBODY]),
        migrations.RunSQL(migrations.RunSQL.noop, functions.FIX_PATH),
    ]
