from __future__ import annotations

import importlib

from django.db import migrations

functions = importlib.import_module("memadmin.audit.old_migrations.0001_functions")

# A function with its owner's rights and a fixed path costs by each call as much as what it looks up. A role that acts
# for the first time is still written down by the one that does so for everybody.
STAMP_EVENT = """
CREATE OR REPLACE FUNCTION memadmin_stamp_event() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    NEW.at := clock_timestamp();
    NEW.role_ref := (SELECT ref FROM audit_actor WHERE kind = 'database' AND label = session_user AND user_id IS NULL);
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


class Migration(migrations.Migration):
    """One call of a function less for each event."""

    dependencies = [("audit", "0009_check_events_at_once")]

    operations = [
        migrations.RunSQL(functions.FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(STAMP_EVENT, functions.STAMP_EVENT.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")),
    ]
