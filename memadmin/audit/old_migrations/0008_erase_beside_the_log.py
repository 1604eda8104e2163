from __future__ import annotations

import importlib

from django.db import migrations

functions = importlib.import_module("memadmin.audit.old_migrations.0001_functions")

# Both run with the rights of their owner: nobody needs a right to delete, and nothing goes that no event tells of.
ERASE_DETAILS = """
CREATE FUNCTION memadmin_erase_details(told_by uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    erased bigint;
BEGIN
    DELETE FROM audit_detail USING audit_event AS told
    WHERE told.id = told_by AND told.type = 'details.erased' AND audit_detail.event_id = ANY (told.shown);
    GET DIAGNOSTICS erased = ROW_COUNT;
    RETURN erased;
END $$
"""

ERASE_NAME = """
CREATE FUNCTION memadmin_erase_name(told_by uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    account bigint;
    gone uuid;
    erased bigint;
BEGIN
    DELETE FROM audit_actor USING audit_event AS told
    WHERE told.id = told_by AND told.type = 'name.erased' AND told.object_kind = 'audit.auditactor'
        AND audit_actor.ref = told.object_ref AND audit_actor.kind = 'person'
    RETURNING user_id INTO account;
    GET DIAGNOSTICS erased = ROW_COUNT;
    gone := memadmin_ref('auth.user', account::text);
    DELETE FROM audit_detail USING audit_event AS event
    WHERE event.id = audit_detail.event_id AND (
        event.object_ref = gone OR event.shown <> '{}' AND event.shown @> ARRAY[gone] AND event.type LIKE 'user.row_%'
    );
    RETURN erased;
END $$
"""


class Migration(migrations.Migration):
    """What stands beside the log is erased by the database, and only as an event says."""

    dependencies = [("audit", "0007_actors_without_waiting")]

    operations = [
        migrations.AlterModelOptions(
            name="auditevent",
            options={
                "default_permissions": (),
                "permissions": [
                    ("view_auditevent", "Can read the audit log"),
                    ("export_log", "Can download the audit log"),
                    ("verify_log", "Can have the audit log verified"),
                    ("erase_beside_log", "Can erase details of events, and who people in the log were"),
                ],
            },
        ),
        migrations.RunSQL(functions.FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(ERASE_DETAILS, "DROP FUNCTION memadmin_erase_details(uuid)"),
        migrations.RunSQL(ERASE_NAME, "DROP FUNCTION memadmin_erase_name(uuid)"),
    ]
