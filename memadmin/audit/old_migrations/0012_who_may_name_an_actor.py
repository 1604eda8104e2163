from __future__ import annotations

import importlib

from django.db import migrations

functions = importlib.import_module("memadmin.audit.old_migrations.0001_functions")
note_rows = importlib.import_module("memadmin.audit.old_migrations.0006_note_rows")

RECORD_ROWS = note_rows.RECORD_ROWS.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")

# Anybody may set anything in their own connection; only who may record events is the application, which says who acts.
FROM_THE_APPLICATION = RECORD_ROWS.replace(
    """    named text := substring(
        current_setting('memadmin.actor', true), '^(?:person|agent|job|command|system):' || uuid_form || '$'
    );
    cause text := substring(current_setting('memadmin.cause', true), '^' || uuid_form || '$');
""",
    """    is_ours CONSTANT boolean := has_any_column_privilege(session_user, 'audit_event', 'INSERT');
    named text := CASE WHEN is_ours THEN substring(
        current_setting('memadmin.actor', true), '^(?:person|agent|job|command|system):' || uuid_form || '$'
    ) END;
    cause text := CASE WHEN is_ours THEN
        substring(current_setting('memadmin.cause', true), '^' || uuid_form || '$')
    END;
""",
)
assert FROM_THE_APPLICATION != RECORD_ROWS


class Migration(migrations.Migration):
    """An agent's connection that names a person as who acts is not believed: its role stands in the event."""

    dependencies = [("audit", "0011_leave_out_jobs")]

    operations = [
        migrations.RunSQL(functions.FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(FROM_THE_APPLICATION, RECORD_ROWS),
    ]
