from __future__ import annotations

import importlib

from django.db import migrations

functions = importlib.import_module("memadmin.audit.old_migrations.0001_functions")
at_once = importlib.import_module("memadmin.audit.old_migrations.0009_check_events_at_once")

# Every transaction builds an expression anew, with all that stands in it, as soon as it comes by. So what most events
# have no use for stands in expressions of its own.
IS_PLAIN = r"""
CREATE OR REPLACE FUNCTION memadmin_is_plain(
    id uuid, type text, actor_kind text, object_kind text, object_ref uuid, shown uuid[], outcome text,
    reason_code text, counters jsonb, commitment bytea
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    counted text;
BEGIN
    IF substr(id::text, 15, 1) <> '7'
        OR type !~ '^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$'
        OR actor_kind NOT IN ('person', 'agent', 'job', 'command', 'database', 'system')
        OR outcome NOT IN ('succeeded', 'denied', 'failed')
        OR (object_kind IS NULL AND object_ref IS NOT NULL)
        OR (object_kind IS NOT NULL AND (object_ref IS NULL OR object_kind !~ '^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$'))
        OR cardinality(shown) > 1000
    THEN
        RETURN false;
    END IF;
    IF commitment IS NOT NULL THEN
        IF length(commitment) <> 32 THEN
            RETURN false;
        END IF;
    END IF;
    IF reason_code <> '' THEN
        IF reason_code !~ '^[a-z][a-z0-9_]*$' OR length(reason_code) > 40 THEN
            RETURN false;
        END IF;
    END IF;
    IF counters <> '{}' THEN
        counted := counters::text;
        IF counted !~ '^\{"[a-z][a-z0-9_]*": -?[0-9]+(?:, "[a-z][a-z0-9_]*": -?[0-9]+)*\}$' THEN
            RETURN false;
        END IF;
        -- Too short for too long a name, too long a number or too many of them.
        IF length(counted) > 22 THEN
            RETURN counted !~ '[a-z0-9_]{41}' AND counted !~ ': -?[0-9]{16}'
                AND length(counted) - length(replace(counted, ',', '')) < 20;
        END IF;
    END IF;
    RETURN true;
END $$
"""


class Migration(migrations.Migration):
    """The same check at two thirds of its cost."""

    dependencies = [("audit", "0015_stamp_and_queue_at_once")]

    operations = [
        migrations.RunSQL(IS_PLAIN, at_once.IS_PLAIN.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")),
    ]
