"""Checks of database privileges: the application's roles, the agents' roles, and all others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.conf import settings
from django.db import connection

from memadmin.deploy.checks.finding import APPLY, CheckFinding, Level
from memadmin.deploy.roles import EVENT_COLUMNS, INSERT_ONLY, Roles, RoleSetting, our_tables, settings_of
from memadmin.deploy.steps import fetch
from sessions_app import registry
from sessions_app.registry.tables import find_tables

ROLE = """
SELECT r.rolname, r.rolsuper, pg_has_role(r.oid, c.relowner, 'MEMBER'), c.relowner::regrole::text, r.rolcreaterole,
       has_table_privilege(r.oid, 'audit_leaf', 'INSERT')
FROM pg_roles AS r, pg_class AS c WHERE r.rolname = %s AND c.oid = 'audit_event'::regclass
"""

# Role names and application names are visible to every role.
CONNECTED = """
SELECT DISTINCT usename::text FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'memadmin' AND pid <> pg_backend_pid()
  AND usename <> session_user
ORDER BY 1
"""


def own_roles() -> Iterator[CheckFinding]:
    """The role that memadmin connects as: neither an administrator nor the owner, nor able to become one."""
    web = str(fetch("SELECT session_user")[0][0])
    worker = str(settings.WORKER_DATABASE.get("USER", "")) if settings.WORKER_DATABASE else ""
    seen = {web, worker}
    yield from _of_role(web, "memadmin connects as", f"let it connect as the role for the web server, {_variable()}")
    if worker and worker != web:
        advice = "set MEMADMIN_WORKER_DATABASE_URL so that the worker connects as its own role"
        yield from _of_role(worker, "The worker connects as", advice)
        if not _may_sequence(worker):
            hint = f"The worker connects as {worker}, which may not sequence audit events. {APPLY}"
            yield CheckFinding("error", "roles", hint)
    for (role,) in fetch(CONNECTED):
        if role not in seen:
            # A deployment that migrates is one, too.
            is_connected = "Another process of memadmin is connected as"
            yield from _of_role(role, is_connected, "let it connect as a role of its own", as_owner="warning")


def _of_role(name: str, is_connected: str, advice: str, *, as_owner: Level = "error") -> Iterator[CheckFinding]:
    found = fetch(ROLE, [name])
    if not found:
        yield CheckFinding("error", "roles", f"{is_connected} {name}, and this database has no such role. {APPLY}")
        return
    role, is_superuser, may_become_owner, owner, may_make_roles, _ = found[0]
    if is_superuser:
        hint = f"{is_connected} {role}, an administrator of the database, who can rewrite the audit log."
        yield CheckFinding("error", "roles", f"{hint} {APPLY} Then {advice}.")
    elif role == owner:
        hint = f"{is_connected} {role}, the owner of the audit log, who can rewrite it."
        yield CheckFinding(as_owner, "roles", f"{hint} {APPLY} Then {advice}.")
    elif may_become_owner and may_make_roles:
        # It sets up the roles, and needs to become the owner for that.
        hint = f"{is_connected} {role}, who sets up roles, can become {owner} and can rewrite the audit log."
        yield CheckFinding(as_owner, "roles", f"{hint} {APPLY} Then {advice}.")
    elif may_become_owner:
        hint = f"{is_connected} {role}, which can become {owner}, the owner of the audit log, and can rewrite it."
        yield CheckFinding(as_owner, "roles", f"{hint} {_revoke_membership(role, owner)}")
    elif may_make_roles:
        yield CheckFinding(
            "error",
            "roles",
            f"{is_connected} {role}, which can create roles. Run ALTER ROLE {quoted_name(role)} NOCREATEROLE;",
        )


GRANTED = """
SELECT format('REVOKE %%I FROM %%I GRANTED BY %%I;', above.rolname, below.rolname, grantor.rolname)
FROM pg_auth_members AS m JOIN pg_roles AS above ON above.oid = m.roleid JOIN pg_roles AS below ON below.oid = m.member
JOIN pg_roles AS grantor ON grantor.oid = m.grantor
WHERE above.rolname = ANY (%s) AND pg_has_role(%s::name, below.oid, 'MEMBER')
ORDER BY 1
"""


def _revoke_membership(role: str, *above: str) -> str:
    """The statements that end each way on which a role is a member of others, also through a third one."""
    statements = " ".join(statement for (statement,) in fetch(GRANTED, [list(above), role]))
    return f"As an administrator of the database, run {statements}"


def _may_sequence(role: str) -> bool:
    return any(found[-1] for found in fetch(ROLE, [role]))


def _variable() -> str:
    is_embedded = connection.settings_dict["ENGINE"] == "memadmin.embedded"
    return f"by MEMADMIN_DATABASE_ROLE={Roles()['web']}" if is_embedded else "by DATABASE_URL"


# The owner of a table has all rights anyway, and is covered by the check of the roles.
NOT_ABOVE = r"NOT r.rolsuper AND NOT pg_has_role(r.oid, {owner}, 'MEMBER') AND r.rolname NOT LIKE 'pg\_%%'"

WIDE_RIGHTS = f"""
SELECT r.rolname, t.name, string_agg(p.privilege, ', ' ORDER BY p.privilege)
FROM pg_roles AS r
CROSS JOIN unnest(%(tables)s::text[]) AS t(name)
CROSS JOIN (VALUES ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE'), ('REFERENCES'), ('TRIGGER')) AS p(privilege)
JOIN pg_class AS c ON c.oid = to_regclass(t.name)
WHERE {NOT_ABOVE.format(owner="c.relowner")}
  AND (p.privilege <> 'INSERT' OR t.name = 'audit_event')
  AND (has_table_privilege(r.oid, c.oid, p.privilege)
       OR p.privilege = 'UPDATE' AND has_any_column_privilege(r.oid, c.oid, 'UPDATE'))
GROUP BY 1, 2
ORDER BY 1, 2
"""

WIDE_COLUMNS = f"""
SELECT r.rolname, string_agg(a.attname, ', ' ORDER BY a.attname)
FROM pg_roles AS r
JOIN pg_attribute AS a ON a.attrelid = 'audit_event'::regclass AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_class AS c ON c.oid = a.attrelid
WHERE {NOT_ABOVE.format(owner="c.relowner")}
  AND a.attname <> ALL (%s) AND NOT has_table_privilege(r.oid, c.oid, 'INSERT')
  AND has_column_privilege(r.oid, c.oid, a.attnum, 'INSERT')
GROUP BY 1
ORDER BY 1
"""


# The worker sequences events and erases.
LIFTS_FENCES = f"""
SELECT r.rolname FROM pg_roles AS r JOIN pg_class AS c ON c.oid = 'sessions_app_sessionrecord'::regclass
WHERE {NOT_ABOVE.format(owner="c.relowner")} AND NOT has_table_privilege(r.oid, 'audit_leaf', 'INSERT')
  AND has_column_privilege(r.oid, c.oid, 'erased_at', 'UPDATE')
ORDER BY 1
"""


def grants() -> Iterator[CheckFinding]:
    """Rights of any role on the log and on fences that are too wide."""
    for (role,) in fetch(LIFTS_FENCES, []):
        yield CheckFinding("error", "grants", f"{role} may make an erased session writable again. {_revoke(role)}")
    for role, table, rights in fetch(WIDE_RIGHTS, {"tables": list(INSERT_ONLY)}):
        yield CheckFinding(
            "error", "grants", f"{role} may {rights} on {table}, where only the owner may. {_revoke(role)}"
        )
    for role, columns in fetch(WIDE_COLUMNS, [list(EVENT_COLUMNS)]):
        hint = f"{role} may set {columns} of an event, which only the database may set. {_revoke(role)}"
        yield CheckFinding("error", "grants", hint)


def _revoke(role: str) -> str:
    return (
        f"{APPLY} If {role} is not one of memadmin's roles, REVOKE the right from it, or from the role of"
        " which it is a member."
    )


MAKERS = f"""
SELECT r.rolname, quote_ident(n.nspname), CASE WHEN has_schema_privilege('public', n.oid, 'CREATE') THEN 'PUBLIC'
    ELSE quote_ident(coalesce((
        SELECT min(given.rolname) FROM aclexplode(n.nspacl) AS acl JOIN pg_roles AS given ON given.oid = acl.grantee
        WHERE acl.privilege_type = 'CREATE' AND pg_has_role(r.oid, given.oid, 'USAGE')
    ), r.rolname)) END
FROM pg_roles AS r JOIN pg_namespace AS n ON n.nspname = current_schema()
WHERE r.rolcanlogin AND {NOT_ABOVE.format(owner="n.nspowner")} AND has_schema_privilege(r.oid, n.oid, 'CREATE')
  AND NOT pg_has_role(r.oid, (SELECT relowner FROM pg_class WHERE oid = 'audit_event'::regclass), 'MEMBER')
ORDER BY 1
"""

SKIPPERS = """
SELECT r.rolname FROM pg_roles AS r JOIN pg_parameter_acl AS p ON p.parname = 'session_replication_role'
WHERE r.rolcanlogin AND NOT r.rolsuper AND has_parameter_privilege(r.oid, 'session_replication_role', 'SET')
ORDER BY 1
"""

BEYOND = """
SELECT r.rolname, string_agg(above.rolname, ', ' ORDER BY above.rolname)
FROM pg_roles AS r JOIN pg_roles AS above ON pg_has_role(r.oid, above.oid, 'MEMBER')
WHERE r.rolname = ANY (%s) AND NOT r.rolsuper
  AND above.rolname IN ('pg_execute_server_program', 'pg_write_server_files', 'pg_write_all_data')
GROUP BY 1
ORDER BY 1
"""


LARGE_OBJECTS = """
SELECT rolname FROM pg_roles WHERE rolname = ANY (%s) AND NOT rolsuper
  AND (has_function_privilege(oid, 'lo_from_bytea(oid,bytea)', 'EXECUTE')
       OR has_function_privilege(oid, 'lo_creat(integer)', 'EXECUTE'))
ORDER BY 1
"""


def ways_round() -> Iterator[CheckFinding]:
    """Rights that bypass triggers or records, without a right on any table of ours."""
    schema, database, role, has_temporary = fetch(
        "SELECT current_schema(), current_database(), session_user,"
        " has_database_privilege(session_user, current_database(), 'TEMPORARY')"
        " AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)"
        " AND NOT pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = 'audit_event'::regclass),"
        " 'MEMBER')"
    )[0]
    for maker, quoted, grantee in fetch(MAKERS):
        yield CheckFinding(
            "error",
            "grants",
            f"{maker} may create functions in {schema}. A function with the name of one of memadmin's would be called"
            f" instead, with the owner's rights. Run REVOKE CREATE ON SCHEMA {quoted} FROM {grantee};",
        )
    if has_temporary:
        yield CheckFinding(
            "error",
            "grants",
            f"memadmin connects as {role}, which may create temporary tables in {database} and does not need them:"
            f" changes there are not recorded. {APPLY} If {role} was given that right itself, run REVOKE TEMPORARY ON"
            f" DATABASE {quoted_name(database)} FROM {quoted_name(role)};",
        )
    if connection.pg_version >= 150_000:  # type: ignore[attr-defined]  # before, it takes a superuser
        for (skipper,) in fetch(SKIPPERS):
            hint = (
                f"{skipper} may SET session_replication_role and so bypass the recording triggers. As an administrator"
                f" of the database, run REVOKE SET ON PARAMETER session_replication_role FROM {quoted_name(skipper)};"
            )
            yield CheckFinding("error", "grants", hint)
    for member, above in fetch(BEYOND, [[role, *_agent_roles()]]):
        yield CheckFinding(
            "error",
            "grants",
            f"{member} is a member of {above} and so bypasses every rule here."
            f" {_revoke_membership(member, *above.split(', '))}",
        )

    for (keeper,) in fetch(LARGE_OBJECTS, [[role, *_agent_roles()]]):
        yield CheckFinding(
            "warning",
            "grants",
            f"{keeper} may store large objects, which are not audited, erased or limited. Run `db_roles --apply` as a"
            f" superuser, or have the functions lo_… of {database} revoked from PUBLIC.",
        )


STOPPING = ("row_security", "default_transaction_read_only", "search_path", "role", "session_replication_role")
TIMEOUTS = ("statement_timeout", "lock_timeout", "transaction_timeout", "idle_in_transaction_session_timeout")
SHORTEST_MS = 1000
MILLISECONDS = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "": 1}


def role_settings() -> Iterator[CheckFinding]:
    """Settings that stop a role's work, or move it to other tables. A login can set them for itself, and so for every
    program that uses it.
    """
    worker = [str(settings.WORKER_DATABASE.get("USER", ""))] if settings.WORKER_DATABASE else []
    own = fetch("SELECT session_user::text")[0][0]
    for setting in settings_of([own, *worker, *_agent_roles()]):
        if setting.name in STOPPING or (setting.name in TIMEOUTS and 0 < _milliseconds(setting) < SHORTEST_MS):
            where = " IN DATABASE " + fetch("SELECT current_database()")[0][0] if setting.is_here_only else ""
            yield CheckFinding(
                "error",
                "role-settings",
                f"{setting.role} begins each connection with {setting.name} = {setting.value}, which can stop every"
                f" program that uses it. {APPLY} For a role of your own, run ALTER ROLE {setting.role}{where} RESET"
                f" {setting.name}.",
            )


def quoted_name(role: str) -> str:
    return connection.ops.quote_name(role)


def _milliseconds(setting: RoleSetting) -> float:
    """The length of a time limit; 0 for none, and for a text that is none."""
    found = re.fullmatch(r"([0-9.]+) ?(us|ms|s|min|h|d|)", setting.value.strip())
    return float(found[1]) * MILLISECONDS[found[2]] if found else 0


OTHERS_WITH_RIGHTS = """
SELECT r.rolname, string_agg(c.relname, ', ' ORDER BY c.relname)
FROM pg_roles AS r JOIN pg_class AS c ON c.relname = ANY (%s) AND c.relnamespace = current_schema()::regnamespace
WHERE NOT r.rolsuper AND r.rolname = ANY (%s) AND has_table_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE')
GROUP BY 1
ORDER BY 1
"""

OWNERS = """
SELECT r.rolname FROM pg_roles AS r JOIN pg_class AS c ON c.oid = %s
WHERE r.rolname = ANY (%s) AND pg_has_role(r.oid, c.relowner, 'MEMBER') ORDER BY 1
"""


def agents() -> Iterator[CheckFinding]:
    """Rights of agents, who need none on our tables and should not own theirs."""
    roles = _agent_roles()
    for (role,) in fetch("SELECT rolname FROM pg_roles WHERE rolsuper AND rolname = ANY (%s) ORDER BY 1", [roles]):
        yield CheckFinding(
            "error",
            "agents",
            f"Agents write as {role}, an administrator of the database, whom the fence cannot stop. Let them connect as"
            f" a role of their own, or run ALTER ROLE {quoted_name(role)} NOSUPERUSER;",
        )
    own = str(fetch("SELECT session_user")[0][0])
    worker = str(settings.WORKER_DATABASE.get("USER", "")) if settings.WORKER_DATABASE else ""
    for role, tables in fetch(OTHERS_WITH_RIGHTS, [our_tables(), roles]):
        if role in (own, worker):
            hint = (
                f"Agents and memadmin connect as one role, {role}, so that agents may read and change our tables."
                f" {APPLY} Then let the agents connect as {Roles()['agents']}, and run `attach_store NAME --agent-role"
                f" {Roles()['agents']}`."
            )
        else:
            hint = (
                f"Agents write as {role}, which has rights on our tables ({tables}). {APPLY} If {role} is a role of"
                f" your own, run REVOKE ALL ON {tables} FROM {quoted_name(role)}; and end its memberships of roles with"
                " these rights."
            )
        yield CheckFinding("error", "agents", hint)
    for store in registry.known_stores():
        if not (registry.has_fence(store) and store.agent_roles):
            continue
        for table in filter(None, find_tables(store.sessions_table, store.messages_table)):
            for (role,) in fetch(OWNERS, [table.oid, list(store.agent_roles)]):
                hint = (
                    f"Agents write as {role}, which owns {table} and could remove the fence. Make another role the"
                    " owner."
                )
                yield CheckFinding("warning", "agents", hint)


def _agent_roles() -> list[str]:
    return sorted({role for store in registry.known_stores() for role in store.agent_roles})
