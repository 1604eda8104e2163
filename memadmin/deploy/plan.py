"""The statements of `db_roles`: what is missing until each role has exactly the rights in `roles`.

Roles and database privileges are only changed where they differ. So an administrator of the database is needed once;
after later migrations the migrator, who owns the tables, runs the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from psycopg import sql

from memadmin.deploy.granting import (
    BY_US,
    OUR_FUNCTIONS,
    grant_agents_tables,
    grant_functions,
    grant_rows,
    grant_sequences,
    grant_tables,
    listed,
)
from memadmin.deploy.roles import KINDS, SETTINGS, Roles, our_tables, settings_of
from memadmin.deploy.steps import SqlStep, fetch
from sessions_app import registry

EXISTING = """
SELECT rolname, rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls
FROM pg_roles WHERE rolname = ANY (%s)
"""

# Who made a role has the option to administer it; up to PostgreSQL 15, CREATEROLE alone is enough.
MAY_ALTER = """
SELECT own.rolsuper OR own.rolcreaterole AND (
    current_setting('server_version_num')::int < 160000 OR pg_has_role(r.oid, 'MEMBER WITH ADMIN OPTION')
)
FROM pg_roles AS own, pg_roles AS r WHERE own.rolname = current_user AND r.rolname = %s
"""

LARGE_OBJECTS = r"""
SELECT oid::regprocedure::text FROM pg_proc
WHERE pronamespace = 'pg_catalog'::regnamespace AND (proname LIKE 'lo\_%' OR proname IN ('loread', 'lowrite'))
  AND has_function_privilege('public', oid, 'EXECUTE')
ORDER BY 1
"""

MEMBERS = """
SELECT member.rolname, grantor.rolname FROM pg_auth_members AS m
JOIN pg_roles AS owner ON owner.oid = m.roleid JOIN pg_roles AS member ON member.oid = m.member
JOIN pg_roles AS grantor ON grantor.oid = m.grantor
WHERE owner.rolname = %s AND member.rolname = ANY (%s) ORDER BY 1
"""

NOT_THE_MIGRATORS = "{owner} <> ALL (SELECT oid FROM pg_roles WHERE rolname = %(migrator)s)"

TABLES_TO_OWN = f"""
SELECT format('TABLE %%I', relname) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relname = ANY (%(tables)s)
  AND {BY_US.format(owner="relowner")} AND {NOT_THE_MIGRATORS.format(owner="relowner")}
ORDER BY 1
"""


FUNCTIONS_TO_OWN = f"""
SELECT format('%%s %%s', CASE prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, oid::regprocedure) FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace AND prokind IN ('f', 'p') AND {OUR_FUNCTIONS}
  AND {BY_US.format(owner="proowner")} AND {NOT_THE_MIGRATORS.format(owner="proowner")}
ORDER BY 1
"""

TYPES_TO_OWN = f"""
SELECT format('TYPE %%s', oid::regtype) FROM pg_type
WHERE typnamespace = current_schema()::regnamespace AND typname LIKE 'procrastinate\\_%%'
  AND (typtype = 'e' OR typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'c'))
  AND {BY_US.format(owner="typowner")} AND {NOT_THE_MIGRATORS.format(owner="typowner")}
ORDER BY 1
"""


def plan(roles: Roles, *, raw_edits: bool = False) -> list[SqlStep]:
    """Steps that bring the roles into force; empty when they are. `raw_edits` lets users change agents' rows by hand.

    Raises StoreUnavailable when the database is not responding or has no tables of ours.
    """
    existing = _existing(roles)
    there = set(existing)
    steps = [
        *_make(roles, existing),
        *_set(roles, there),
        _lend(roles),
        _close_doors(roles),
        _close_large_objects(roles),
        _let_in(roles, there),
        _own(roles),
        *grant_tables(roles, there),
        grant_sequences(roles, there),
        grant_functions(roles, there),
        *grant_rows(roles),
        *grant_agents_tables(roles, there, raw_edits=raw_edits),
    ]
    return [step for step in steps if step.statements]


def _existing(roles: Roles) -> dict[str, bool]:
    """The roles that exist, with whether each has more rights than to log in."""
    kinds = {name: kind for kind, name in roles.names.items()}
    return {kinds[name]: bool(too_much) for name, too_much in fetch(EXISTING, [list(kinds)])}


def _make(roles: Roles, existing: Mapping[str, bool]) -> Iterator[SqlStep]:
    for kind in KINDS:
        role = roles.identifier(kind)
        statements: list[sql.Composable] = []
        if kind not in existing:
            statements.append(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        if existing.get(kind):
            no = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
            statements.append(sql.SQL(f"ALTER ROLE {{}} {no}").format(role))
        yield SqlStep(f"The role {roles[kind]}; give it a password if the server requires one", tuple(statements))
    members = fetch(MEMBERS, [roles["migrator"], list(roles.names.values())])
    # Without its name PostgreSQL looks, since version 16, only for what the administrator granted.
    revoke = sql.SQL("REVOKE {} FROM {} GRANTED BY {}")
    migrator = roles.identifier("migrator")
    yield SqlStep(
        "No role can become the migrator",
        tuple(revoke.format(migrator, *map(sql.Identifier, names)) for names in members),
    )


def _set(roles: Roles, there: set[str]) -> Iterator[SqlStep]:
    """The settings with which each role begins a connection, and no others: a role can change its own."""
    now = settings_of([roles[kind] for kind in there])
    database = sql.Identifier(fetch("SELECT current_database()")[0][0])
    for kind in KINDS:
        role, wanted = roles.identifier(kind), SETTINGS.get(kind, {})
        found = [each for each in now if each.role == roles[kind]]
        everywhere = {each.name: each.value for each in found if not each.is_here_only}
        statements: list[sql.Composable] = [
            sql.SQL("ALTER ROLE {} RESET {}").format(role, sql.Identifier(name)) for name in everywhere.keys() - wanted
        ]
        statements += [
            sql.SQL("ALTER ROLE {} IN DATABASE {} RESET {}").format(role, database, sql.Identifier(each.name))
            for each in found
            if each.is_here_only
        ]
        statements += [
            sql.SQL("ALTER ROLE {} SET {} = {}").format(role, sql.Identifier(name), sql.Literal(value))
            for name, value in wanted.items()
            if everywhere.get(name) != value
        ]
        is_allowed = kind not in there or bool(fetch(MAY_ALTER, [roles[kind]])[0][0])
        yield SqlStep(f"Settings of {roles[kind]}", tuple(statements), is_allowed=is_allowed)


def _lend(roles: Roles) -> SqlStep:
    """An administrator of a managed database is no superuser. It created the migrator, so it can become it."""
    may_act_so = fetch(
        "SELECT FROM pg_roles AS own LEFT JOIN pg_roles AS migrator ON migrator.rolname = %s"
        " WHERE own.rolname = current_user AND (own.rolsuper OR pg_has_role(migrator.oid, 'USAGE'))",
        [roles["migrator"]],
    )
    grant = sql.SQL("GRANT {} TO CURRENT_USER").format(roles.identifier("migrator"))
    return SqlStep("The administrator may act as the migrator, who owns the tables", () if may_act_so else (grant,))


def _close_doors(roles: Roles) -> SqlStep:
    """Temporary tables only for roles that need them: they may carry triggers and functions, and are not recorded. And
    a function in our schema with better fitting arguments would be called instead of ours.
    """
    database, schema = fetch("SELECT current_database(), current_schema()")[0]
    agents = [role for store in registry.known_stores() for role in store.agent_roles]
    doors = (
        ("TEMPORARY", "DATABASE", database, "has_database_privilege", ()),
        ("CREATE", "SCHEMA", schema, "has_schema_privilege", agents),
    )
    statements: list[sql.Composable] = []
    for right, kind, name, function, never in doors:
        if not fetch(f"SELECT {function}('public', %s, %s)", [name, right])[0][0]:
            continue
        where = sql.SQL(f"{right} ON {kind} {{}}").format(sql.Identifier(name))
        grant = sql.SQL("GRANT {} TO {}")
        others = _others_that_connect([*roles.names.values(), *never])
        statements += [grant.format(where, sql.Identifier(other)) for other in others]
        statements.append(sql.SQL("REVOKE {} FROM PUBLIC").format(where))
    return SqlStep(
        "PUBLIC loses the right to create tables, including temporary ones; existing roles keep it",
        tuple(statements),
    )


def _close_large_objects(roles: Roles) -> SqlStep:
    """Large objects are in no table that anybody counts, audits or erases. Their functions belong to PostgreSQL itself,
    so only a superuser can take them from PUBLIC; `check_deploy` reports them otherwise.
    """
    purpose = "PUBLIC loses the functions of large objects; existing roles keep them"
    functions = sql.SQL(", ").join(sql.SQL(name) for (name,) in fetch(LARGE_OBJECTS))
    is_superuser = fetch("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")[0][0]
    if not is_superuser or not functions.as_string(None):
        return SqlStep(purpose, ())
    agents = [role for store in registry.known_stores() for role in store.agent_roles]
    others = sql.SQL(", ").join(map(sql.Identifier, _others_that_connect([*roles.names.values(), *agents])))
    grant = sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(functions, others)
    revoke = sql.SQL("REVOKE EXECUTE ON FUNCTION {} FROM PUBLIC").format(functions)
    return SqlStep(purpose, (grant, revoke) if others.as_string(None) else (revoke,))


def _others_that_connect(names: Sequence[str]) -> list[str]:
    """Roles that may log in to this database, without superusers and without these."""
    rows = fetch(
        "SELECT rolname FROM pg_roles WHERE rolcanlogin AND NOT rolsuper AND rolname <> ALL (%s)"
        " AND has_database_privilege(oid, current_database(), 'CONNECT') ORDER BY rolname",
        [list(names)],
    )
    return [name for (name,) in rows]


def _let_in(roles: Roles, there: set[str]) -> SqlStep:
    database, schema = fetch("SELECT current_database(), current_schema()")[0]

    def missing(kinds: Sequence[str], function: str, name: str, right: str) -> list[str]:
        question = f"SELECT {function}(%s, %s, %s)"
        return [kind for kind in kinds if kind not in there or not fetch(question, [roles[kind], name, right])[0][0]]

    wanted = (
        ("CONNECT ON DATABASE", KINDS, "has_database_privilege", database),
        ("TEMPORARY ON DATABASE", ("migrator",), "has_database_privilege", database),
        ("USAGE ON SCHEMA", KINDS, "has_schema_privilege", schema),
        ("CREATE ON SCHEMA", ("migrator",), "has_schema_privilege", schema),
    )
    return SqlStep(
        "All roles may connect; the migrator may create tables",
        tuple(
            sql.SQL(f"GRANT {right} {{}} TO {{}}").format(sql.Identifier(name), listed(roles, lacking))
            for right, kinds, function, name in wanted
            if (lacking := missing(kinds, function, name, right.split()[0]))
        ),
    )


def _own(roles: Roles) -> SqlStep:
    given = {"migrator": roles["migrator"], "tables": our_tables()}
    found = [name for query in (TABLES_TO_OWN, FUNCTIONS_TO_OWN, TYPES_TO_OWN) for (name,) in fetch(query, given)]
    return SqlStep(
        "The migrator owns our tables, functions and types",
        tuple(sql.SQL("ALTER {} OWNER TO {}").format(sql.SQL(name), roles.identifier("migrator")) for name in found),
    )
