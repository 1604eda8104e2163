"""Connections under the roles of `db_roles`, in tests with and without real transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from django.db import Error, connection, transaction

from memadmin import audit
from memadmin.deploy import plan, roles, steps
from tests.agents import agent_process, run_sql
from tests.people import forget_proof

AGENTS_TABLES = """
CREATE TABLE agent_sessions (
    session_id text PRIMARY KEY,
    created_at timestamp DEFAULT now() NOT NULL,
    updated_at timestamp DEFAULT now() NOT NULL
);
CREATE TABLE agent_messages (
    id serial PRIMARY KEY,
    session_id text NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    message_data text NOT NULL,
    created_at timestamp DEFAULT now() NOT NULL
)
"""


BACK_TO_PUBLIC = r"""
DO $$
DECLARE
    each regprocedure;
BEGIN
    FOR each IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
        AND (proname LIKE 'lo\_%' AND proname NOT IN ('lo_import', 'lo_export') OR proname IN ('loread', 'lowrite'))
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', each);
    END LOOP;
END $$
"""


def our_roles() -> roles.Roles:
    """Of this database alone: roles belong to the server, which another process of the test run uses too."""
    return roles.Roles(f"roles_of_{connection.settings_dict['NAME']}")


def keep_to_ourselves() -> None:
    """Nobody comes in any more by being on this server, as roles that another process of the test run makes and drops
    would. Who comes in keeps rights when `db_roles` closes doors."""
    run_sql(f"REVOKE CONNECT ON DATABASE {database()} FROM PUBLIC")


def database() -> str:
    return connection.ops.quote_name(connection.settings_dict["NAME"])


def bring_into_force(names: roles.Roles, **options: bool) -> list[steps.SqlStep]:
    keep_to_ourselves()
    planned = plan.plan(names, **options)
    steps.run(planned)
    return planned


def take_away(names: roles.Roles) -> None:
    """Undoes what was committed: everything belongs to the administrator again."""
    # Whoever stays connected as a role that is gone has no right, not even as one that is made again.
    agent_process.end()
    for name in map(connection.ops.quote_name, names.names.values()):
        run_sql(f"REASSIGN OWNED BY {name} TO CURRENT_USER; DROP OWNED BY {name}; DROP ROLE {name}")
    run_sql(f"GRANT CONNECT, TEMPORARY ON DATABASE {database()} TO PUBLIC")
    run_sql(BACK_TO_PUBLIC)


@contextmanager
def connected_as(role: str) -> Iterator[None]:
    """The connection of a test's transaction, as if a role had opened it: nobody has acted in it yet."""
    forget_proof()
    run_sql(f'SET LOCAL SESSION AUTHORIZATION "{role}"')
    try:
        yield
    finally:
        run_sql("RESET SESSION AUTHORIZATION")


def in_a_command() -> AbstractContextManager[None]:
    """A block in which the application proves an actor, who is nobody in particular."""
    return audit.acting(audit.Actor("command", "test"))


@contextmanager
def logged_in_as(role: str) -> Iterator[None]:
    """Connections that a role opened, with what is set for it, in a command, unless somebody else acts; for tests with
    real transactions.
    """
    connection.close()
    connection.settings_dict["ROLE"] = role
    try:
        with nullcontext() if audit.current_actor() else in_a_command():
            yield
    finally:
        connection.close()
        del connection.settings_dict["ROLE"]


def refusal(statement: str) -> str:
    """Why PostgreSQL refuses a statement; empty when it does not. Its effect is undone either way."""
    try:
        with transaction.atomic():
            run_sql(statement)
            transaction.set_rollback(True)
    except Error as problem:
        return str(problem).splitlines()[0]
    return ""
