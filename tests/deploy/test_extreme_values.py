"""Extreme values in every column that agents may write: no page answers 500, and no periodic job fails."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from django.db import Error, connection, transaction
from django.test import Client

from memadmin.deploy.roles import Roles
from memories_app.models import Memory
from sessions_app.models import SessionRecord
from tests.accounts.matrix import MATRIX, SUPERUSER
from tests.accounts.test_matrix import World, address_of, browser_of, make_world, somebody
from tests.agents import attach_main_store, make_agent_tables, run_sql, value_of
from tests.deploy.connecting import bring_into_force, connected_as
from tests.deploy.test_working import WAITS, run_jobs
from tests.memories.test_gate import approved
from tests.people import person

DEEP = "'" + "[" * 5000 + "]" * 5000 + "'"

TIMES = [
    *("'infinity'", "'-infinity'", "'200000-01-01'", "'4000-01-01 BC'"),
    *("'9999-12-31 23:59:59.999999'", "'0001-01-01'", "'9998-12-30'", "'0002-01-02'"),
]
NUMBERS = ["'NaN'", "'Infinity'", "'-Infinity'", "1e308", "-1e308"]
WHOLE_NUMBERS = ["-9223372036854775808", "9223372036854775807", "2147483647", "32767", "-32768", "0"]
TEXTS = [
    *("''", r"E'a\nb\r\tc'", r"E'\x01\x1b[31m\x7f\u202e\ufeff'", "repeat('x', 79)", "repeat('x', 199)"),
    *("repeat(chr(128512), 100000)", "repeat('x', 2000000)", DEEP, "'null'", "'NaN'", "'[1, null]'", "'1e999'"),
    *('\'{"type": [], "role": {}, "content": 1e400}\'', "'\"text\"'", r"""'"\ud800"'""", "'%s %(a)s {0} {{ x }}'"),
    *("'explicit'", "'2026-02-30'"),
]
ARRAYS = ["ARRAY[NULL]::text[]", "ARRAY[['a', 'b'], ['c', 'd']]", "'[5:6]={a,b}'", "ARRAY['']", r"ARRAY[E'a\nb']"]
JSON = ["'null'", "'1'", "'\"x\"'", "'[]'", "'[null, [1]]'", f"{DEEP}::jsonb", "to_jsonb(1e30000::numeric)", "'true'"]

EXTREMES = {
    **dict.fromkeys(("timestamp", "timestamptz", "date"), TIMES),
    **dict.fromkeys(("float8", "float4", "numeric"), NUMBERS),
    **dict.fromkeys(("int2", "int4", "int8"), WHOLE_NUMBERS),
    **dict.fromkeys(("text", "varchar"), TEXTS),
    **dict.fromkeys(("_text", "_varchar"), ARRAYS),
    "jsonb": JSON,
    "uuid": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "bool": ["true", "false"],
}
"""Values by type of column, as SQL. A type that is missing here fails the test."""

ORDINARY = {
    "memories_app_memory": {"kind": "'fact'", "statement": "'Likes tea.'"},
    "memories_app_evidence": {"memory_id": "'{memory}'", "quote": "'tea'"},
    "memories_app_signal": {"kind": "'correction'", "text": "'No sugar.'"},
    "memories_app_recall": {"id": "gen_random_uuid()"},
    "memories_app_recalledmemory": {
        "recall_id": "'{recall}'",
        "memory_id": "'{approved}'",
        "version": "1",
        "place": "1",
    },
    "agent_sessions": {"session_id": "'chat-' || gen_random_uuid()"},
    "agent_messages": {
        "session_id": "'customer_1:ticket_1'",
        "message_data": """'{{"role": "user", "content": "Hi"}}'""",
    },
}
"""Values of the required columns of each table."""

WRITABLE = """
SELECT c.table_name, c.column_name, c.udt_name, p.privilege_type
FROM information_schema.column_privileges AS p
JOIN information_schema.columns AS c USING (table_schema, table_name, column_name)
WHERE p.grantee = %s AND p.privilege_type IN ('INSERT', 'UPDATE') AND c.table_schema = current_schema()
ORDER BY 1, 2, 4
"""


OF_EACH_MEMORY, OF_EACH_SESSION = {"memories:memory", "reviews:review"}, {"sessions:timeline"}
"""Pages that are asked for each row that was written."""


def writable_by(role: str) -> list[tuple[str, str, str, str]]:
    """Table, column, type and right, for each column that a role may write."""
    with connection.cursor() as cursor:
        cursor.execute(WRITABLE, [role])
        return list(cursor.fetchall())


def statements_for(table: str, column: str, value: str, right: str, ids: dict[str, str]) -> str:
    row = {name: given.format(**ids) for name, given in ORDINARY[table].items()}
    if right == "INSERT":
        row[column] = value
        return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(row.values())})"
    key = "session_id" if table == "agent_sessions" else "id"
    insert = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(row.values())}) RETURNING {key}"
    with connection.cursor() as cursor:
        cursor.execute(insert)
        (made,) = cursor.fetchone()
    return f"UPDATE {table} SET {column} = {value} WHERE {key} = '{made}'"


def write_extremes(names: Roles, ids: dict[str, str]) -> dict[str, int]:
    """Writes each value into each column, each in a row of its own; returns how many the database took, by table."""
    taken: dict[str, int] = {}
    columns = writable_by(names["agents"])
    with connected_as(names["agents"]):
        for table, column, kind, right in columns:
            for value in EXTREMES[kind]:
                point = transaction.savepoint()
                try:
                    run_sql(statements_for(table, column, value, right, ids))
                except Error:
                    transaction.savepoint_rollback(point)
                else:
                    transaction.savepoint_commit(point)
                    taken[table] = taken.get(table, 0) + 1
    return taken


def addresses(world: World) -> Iterator[str]:
    """Every page, and those of one memory or one session for each that there is."""
    for name, rule in MATRIX.items():
        if rule.reads is None or name == WAITS:
            continue
        yield address_of(name, world)
        if name in OF_EACH_MEMORY:
            yield from (address_of(name, world, memory_id=pk) for pk in Memory.objects.values_list("pk", flat=True))
        elif name in OF_EACH_SESSION:
            records = SessionRecord.objects.values_list("pk", flat=True)
            yield from (address_of(name, world, record_id=pk) for pk in records)


def broken_pages(client: Client, world: World) -> dict[str, str]:
    """Addresses of pages that fail, with the reason."""
    found = {}
    for address in addresses(world):
        try:
            answer = client.get(address)
            if answer.streaming:
                answer.getvalue()
        except Exception as problem:
            found[address] = repr(problem)[:200]
        else:
            if answer.status_code >= 500:
                found[address] = answer.text[:200]
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.release
def test_no_value_of_an_agent_stops_a_page_or_a_job(in_force: Roles) -> None:
    make_agent_tables()
    by = somebody(SUPERUSER)
    world = make_world(by)
    attach_main_store(agent_roles=[in_force["agents"]])
    bring_into_force(in_force)
    approval = approved("The shop closes at six.", by, second=person("reviewer"))
    ids = {"memory": str(uuid.uuid4()), "recall": str(uuid.uuid4()), "approved": str(approval.pk)}
    # Evidence comes with its proposal, and a memory with its recall, in one transaction.
    with transaction.atomic():
        with connected_as(in_force["agents"]):
            run_sql(f"INSERT INTO memories_app_memory (id, kind, statement) VALUES ('{ids['memory']}', 'fact', 'x')")
            run_sql(f"INSERT INTO memories_app_recall (id) VALUES ('{ids['recall']}')")
        taken = write_extremes(in_force, ids)
    assert set(taken) == set(ORDINARY), "a table of agents of which no row is tried"
    unreadable = "last_activity_at NOT BETWEEN '0002-01-01' AND '9998-12-31'"
    assert value_of(f"SELECT count(*) FROM sessions_app_sessionrecord WHERE {unreadable}") == 0
    failed = broken_pages(browser_of(by), world) | {job: repr(problem) for job, problem in run_jobs().items()}
    assert not failed, "\n".join(f"{what}: {why}" for what, why in failed.items())
