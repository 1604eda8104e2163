"""Check of the rights of this process's database role: it finds a wrong address, and a forgotten `db_roles`."""

from __future__ import annotations

from collections.abc import Sequence

from memadmin.deploy.roles import columns_of, our_tables, rights_of
from memadmin.deploy.steps import fetch

# A right on some columns is enough: which ones is looked at by `check_deploy`.
LACKING = """
SELECT count(DISTINCT c.oid) FROM unnest(%s::text[], %s::text[]) AS needed(name, privilege)
JOIN pg_class AS c ON c.relname = needed.name AND c.relnamespace = current_schema()::regnamespace
WHERE NOT CASE WHEN privilege = 'DELETE' THEN has_table_privilege(c.oid, privilege)
               ELSE has_any_column_privilege(c.oid, privilege) END
"""

PROCESSES = {
    "web": ("web server", "DATABASE_URL"),
    "worker": ("worker", "MEMADMIN_WORKER_DATABASE_URL, or the worker's DATABASE_URL,"),
}


def reasons_not_to_work(process: str) -> Sequence[str]:
    """A sentence if the current role lacks rights on our tables that a web server or a worker needs. Two queries."""
    needed = [
        (table, right)
        for table in our_tables()
        for right in {*rights_of(process, table), *columns_of(process, table, ())}
    ]
    [(count,)] = fetch(LACKING, [[table for table, _ in needed], [right for _, right in needed]])
    if not count:
        return []
    name, variable = PROCESSES[process]
    return [
        f"The database role of this {name} lacks rights on {count} of memadmin's tables: run"
        f" `memadmin db_roles --apply` as the migrator, or let {variable} name the role for a {name}."
    ]
