"""Missing grants on our tables, sequences and functions, and on the agents' tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from psycopg import sql

from memadmin.deploy.roles import (
    AGENTS_TABLES,
    APPLICATION,
    BY_COLUMNS,
    KINDS,
    RAW_EDITS,
    Roles,
    columns_of,
    our_tables,
    rights_of,
)
from memadmin.deploy.steps import SqlStep, fetch
from sessions_app import registry
from sessions_app.registry.tables import Table, find_tables

GRANTED = [kind for kind in KINDS if kind != "migrator"]

# Ours means created by a trusted role. A function that a stranger gave one of our names must not
# run with the migrator's rights.
BY_US = """{owner} IN (
    SELECT relowner FROM pg_class WHERE oid = to_regclass('django_migrations')
    UNION SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user OR rolname = %(migrator)s
)"""

OUR_FUNCTIONS = r"""(
    proname LIKE 'memadmin\_%%' OR proname LIKE 'pgtrigger\_%%' OR proname = '_pgtrigger_should_ignore'
    OR proname LIKE 'procrastinate\_%%'
)"""

RIGHTS = """
SELECT c.relname, r.name, array_agg(p.name)
FROM pg_class AS c
CROSS JOIN unnest(%(roles)s::text[]) AS r(name)
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS p(name)
WHERE c.relname = ANY (%(tables)s) AND c.relnamespace = current_schema()::regnamespace
  AND CASE WHEN p.name IN ('DELETE', 'TRUNCATE', 'TRIGGER') THEN has_table_privilege(r.name, c.oid, p.name)
           ELSE has_any_column_privilege(r.name, c.oid, p.name) END
GROUP BY 1, 2
"""

COLUMNS = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relname = ANY (%s) AND c.relnamespace = current_schema()::regnamespace
GROUP BY 1
"""

RIGHTS_ON_COLUMNS = """
SELECT c.relname, r.name, p.name, array_agg(a.attname::text) FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
CROSS JOIN unnest(%(roles)s::text[]) AS r(name)
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) AS p(name)
WHERE c.relname = ANY (%(tables)s) AND c.relnamespace = current_schema()::regnamespace
  AND has_column_privilege(r.name, c.oid, a.attnum, p.name)
GROUP BY 1, 2, 3
"""

SEQUENCES = """
SELECT seq.oid::regclass::text, ARRAY(
    SELECT name FROM unnest(%(roles)s::text[]) AS name WHERE has_sequence_privilege(name, seq.oid, 'USAGE')
)
FROM pg_class AS seq
JOIN pg_depend AS d ON d.objid = seq.oid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
WHERE seq.relkind = 'S' AND d.refobjid = ANY (%(tables)s::regclass[]) ORDER BY 1
"""

FUNCTIONS = f"""
SELECT oid::regprocedure::text, prosecdef, ARRAY(
    SELECT name FROM unnest(%(roles)s::text[]) AS name WHERE has_function_privilege(name, p.oid, 'EXECUTE')
)
FROM pg_proc AS p
WHERE pronamespace = current_schema()::regnamespace AND prokind = 'f'
  AND (prosecdef OR prorettype <> 'trigger'::regtype)
  AND {OUR_FUNCTIONS} AND {BY_US.format(owner="proowner")}
ORDER BY 1
"""

FOR_THE_APPLICATION = (
    "memadmin_acting(",
    "memadmin_has_actor(",
    "memadmin_erase_details(",
    "memadmin_erase_name(",
    "memadmin_first_hold(",
    "memadmin_has_user_quote(",
    "memadmin_holds_on(",
    "memadmin_is_forgotten(",
    "memadmin_key_digest(",
    "memadmin_knows_key(",
    "memadmin_name_actor(",
    "memadmin_name_cause(",
    "memadmin_session_digest(",
    "memadmin_subject_group(",
)
"""Functions with their owner's rights that the application itself calls."""

FOR_AGENTS = (
    "memadmin_has_room(",
    "memadmin_is_new_proposal(",
    "memadmin_is_new_recall(",
    "memadmin_may_quote(",
    "memadmin_register_session(",
    "memadmin_run_subjects(",
    "memadmin_subject_for(",
)
"""Functions with their owner's rights that agents call: to state a session's subject, and within row policies."""

POLICY = "application"

POLICIES = """
SELECT c.relname, ARRAY(
    SELECT r.rolname::text FROM pg_policy AS p JOIN pg_roles AS r ON r.oid = ANY (p.polroles)
    WHERE p.polrelid = c.oid AND p.polname = %(policy)s AND p.polcmd = '*' AND p.polpermissive
      AND pg_get_expr(p.polqual, c.oid) = 'true' AND pg_get_expr(p.polwithcheck, c.oid) = 'true'
)
FROM pg_class AS c
WHERE c.relrowsecurity AND c.relname = ANY (%(tables)s) AND c.relnamespace = current_schema()::regnamespace
ORDER BY 1
"""

IN_SCHEMA = "SELECT has_schema_privilege(%s, %s, 'USAGE')"

MAY = """
SELECT name FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS name
WHERE has_table_privilege(%s, %s, name)
"""


def grant_tables(roles: Roles, there: set[str]) -> Iterator[SqlStep]:
    tables, names = our_tables(), _names(roles, there)
    given = {"tables": tables, "roles": names}
    now = {(table, role): set(rights) for table, role, rights in fetch(RIGHTS, given)}
    columns = {table: set(found) for table, found in fetch(COLUMNS, [list(BY_COLUMNS)])}
    by_columns = fetch(RIGHTS_ON_COLUMNS, {**given, "tables": list(BY_COLUMNS)})
    now_on_columns = {(table, role, right): set(found) for table, role, right, found in by_columns}

    def is_right(table: str, kind: str) -> bool:
        role = roles[kind] if kind else "public"
        whole = set(rights_of(kind, table))
        parts = columns_of(kind, table, columns.get(table, ()))
        return now.get((table, role), set()) == whole | set(parts) and all(
            now_on_columns.get((table, role, right)) == set(some) for right, some in parts.items()
        )

    for table in tables:
        if not (set(GRANTED) <= there and all(is_right(table, kind) for kind in ("", *GRANTED))):
            yield SqlStep(f"Rights on {table}", _grant_anew(table, roles, columns.get(table, ())))


def _grant_anew(table: str, roles: Roles, columns: Collection[str]) -> tuple[sql.Composable, ...]:
    name = sql.Identifier(table)
    # Takes what is granted on columns, too.
    statements: list[sql.Composable] = [
        sql.SQL("REVOKE ALL ON TABLE {} FROM PUBLIC, {}").format(name, listed(roles, GRANTED))
    ]
    for kind in GRANTED:
        role = roles.identifier(kind)
        if rights := rights_of(kind, table):
            whole = sql.SQL(", ".join(rights))
            statements.append(sql.SQL("GRANT {} ON TABLE {} TO {}").format(whole, name, role))
        for right, some in columns_of(kind, table, columns).items():
            part = sql.SQL(", ").join(map(sql.Identifier, some))
            statements.append(sql.SQL(f"GRANT {right} ({{}}) ON TABLE {{}} TO {{}}").format(part, name, role))
    return tuple(statements)


def grant_sequences(roles: Roles, there: set[str]) -> SqlStep:
    tables = [sql.Identifier(table) for table in our_tables()]
    lacking = _sequences_without(tables, [roles[kind] for kind in APPLICATION], _names(roles, there))
    grant = sql.SQL("GRANT USAGE ON SEQUENCE {} TO {}")
    return SqlStep("Sequences of new rows", (grant.format(lacking, listed(roles, APPLICATION)),) if lacking else ())


def grant_functions(roles: Roles, there: set[str]) -> SqlStep:
    names = _names(roles, there)
    too_open: list[sql.SQL] = []
    closed: dict[tuple[str, ...], list[sql.SQL]] = {}
    for function, has_owners_rights, by in fetch(FUNCTIONS, {"roles": names, "migrator": roles["migrator"]}):
        kinds = _callers(function, has_owners_rights=has_owners_rights)
        users = {roles[kind] for kind in kinds}
        is_too_open = has_owners_rights and bool(set(by) - users)
        if is_too_open:
            too_open.append(sql.SQL(function))
        if users - set(by) or (users and is_too_open):
            closed.setdefault(kinds, []).append(sql.SQL(function))
    everybody = sql.SQL("PUBLIC, {}").format(listed(roles, GRANTED))
    revoke = sql.SQL("REVOKE ALL ON FUNCTION {} FROM {}").format(sql.SQL(", ").join(too_open), everybody)
    grants = [
        sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(sql.SQL(", ").join(functions), listed(roles, kinds))
        for kinds, functions in closed.items()
    ]
    return SqlStep(
        "Functions with the owner's rights are not callable by everybody", tuple([revoke] * bool(too_open) + grants)
    )


def _callers(function: str, *, has_owners_rights: bool) -> tuple[str, ...]:
    """The kinds of roles that call a function of ours."""
    if function.startswith(FOR_AGENTS):
        return (*APPLICATION, "agents")
    return APPLICATION if not has_owners_rights or function.startswith(FOR_THE_APPLICATION) else ()


def grant_rows(roles: Roles) -> Iterator[SqlStep]:
    """Row policies that let the application see every row of tables whose policies are made for agents."""
    wanted = {roles[kind] for kind in APPLICATION}
    for table, now in fetch(POLICIES, {"policy": POLICY, "tables": our_tables()}):
        if set(now) == wanted:
            continue
        name = sql.SQL("{} ON {}").format(sql.Identifier(POLICY), sql.Identifier(table))
        made = sql.SQL("CREATE POLICY {} TO {} USING (true) WITH CHECK (true)")
        yield SqlStep(
            f"Rows of {table} that the application sees",
            (sql.SQL("DROP POLICY IF EXISTS {}").format(name), made.format(name, listed(roles, APPLICATION))),
        )


def grant_agents_tables(roles: Roles, there: set[str], *, raw_edits: bool) -> Iterator[SqlStep]:
    here = [store for store in registry.known_stores() if registry.has_fence(store)]
    names = {name for store in here for name in (store.sessions_table, store.messages_table)}
    for table in find_tables(*sorted(names)):
        if table:
            yield _grant_agents_table(table, roles, there, raw_edits=raw_edits)


def _grant_agents_table(table: Table, roles: Roles, there: set[str], *, raw_edits: bool) -> SqlStep:
    statements: list[sql.Composable] = []
    for kind, rights in {**AGENTS_TABLES, **({"web": RAW_EDITS} if raw_edits else {})}.items():
        role, may = roles.identifier(kind), set[str]()
        if kind in there:
            may = {right for (right,) in fetch(MAY, [roles[kind], table.identifier.as_string(None)])}
        if kind not in there or not fetch(IN_SCHEMA, [roles[kind], table.schema])[0][0]:
            statements.append(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(table.schema), role))
        if kind == "web" and may - set(rights):
            statements.append(sql.SQL("REVOKE ALL ON TABLE {} FROM {}").format(table.identifier, role))
            may = set()
        if set(rights) - may:
            grant = sql.SQL("GRANT {} ON TABLE {} TO {}")
            statements.append(grant.format(sql.SQL(", ".join(rights)), table.identifier, role))
        if "INSERT" in rights and (
            numbers := _sequences_without([table.identifier], [roles[kind]], _names(roles, there))
        ):
            statements.append(sql.SQL("GRANT USAGE ON SEQUENCE {} TO {}").format(numbers, role))
    return SqlStep(f"Rights on the agents' {table}", tuple(statements), is_allowed=table.is_owned)


def _sequences_without(
    tables: Iterable[sql.Identifier], wanted: Sequence[str], existing: Sequence[str]
) -> sql.Composed | None:
    """Sequences of these tables' columns that some of the wanted roles may not use."""
    given = {"tables": [table.as_string(None) for table in tables], "roles": list(existing)}
    lacking = [sql.SQL(name) for name, by in fetch(SEQUENCES, given) if set(wanted) - set(by)]
    return sql.SQL(", ").join(lacking) if lacking else None


def _names(roles: Roles, there: set[str]) -> list[str]:
    """Roles whose rights can be looked up: those that exist, and PUBLIC."""
    return ["public", *(roles[kind] for kind in GRANTED if kind in there)]


def listed(roles: Roles, kinds: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(roles.identifier, kinds))
