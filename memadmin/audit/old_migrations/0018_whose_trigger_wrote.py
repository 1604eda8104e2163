from __future__ import annotations

from django.db import migrations

# Asked in the WHEN of triggers, so with the rights of whoever writes: nothing here is looked up in their search_path.
# PostgreSQL reads a WHEN anew for each statement, agents' too, and a call is short. Granting is the log's owner's alone:
# the right itself comes with `pg_write_all_data`, and an owner may do without it.
OUR_RIGHTS = """pg_catalog.has_table_privilege(
            current_user, '%I.audit_event'::pg_catalog.regclass, 'UPDATE WITH GRANT OPTION'
        )"""

ASK = f"""
DO $do$
BEGIN
    EXECUTE format($ask$
    CREATE FUNCTION memadmin_by_our_trigger() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RETURN pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 0 AND {OUR_RIGHTS};
    END $$
    $ask$, current_schema());
    EXECUTE format($ask$
    CREATE FUNCTION memadmin_through_us() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RETURN current_user OPERATOR(pg_catalog.<>) session_user AND {OUR_RIGHTS};
    END $$
    $ask$, current_schema());
END $do$
"""


class Migration(migrations.Migration):
    """What a trigger of a stranger does is not taken for what ours do."""

    dependencies = [("audit", "0017_ids_of_the_server")]

    operations = [
        migrations.RunSQL(ASK, "DROP FUNCTION memadmin_by_our_trigger(), memadmin_through_us()"),
    ]
