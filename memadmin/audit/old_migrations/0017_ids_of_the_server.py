from __future__ import annotations

import importlib

from django.db import migrations

functions = importlib.import_module("memadmin.audit.old_migrations.0001_functions")

# PostgreSQL makes them itself from version 18 on.
UUID7 = """
DO $do$
BEGIN
    IF to_regprocedure('pg_catalog.uuidv7()') IS NOT NULL THEN
        CREATE OR REPLACE FUNCTION memadmin_uuid7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
        SELECT pg_catalog.uuidv7()
        $$;
    END IF;
END $do$
"""


class Migration(migrations.Migration):
    """Ids of events that nobody else gave one: by a function of the server's where it has it."""

    dependencies = [("audit", "0016_check_what_is_there")]

    operations = [
        migrations.RunSQL(UUID7, functions.UUID7.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")),
    ]
