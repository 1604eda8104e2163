"""The shape of schema and statements lets agents' tables and registry be distributed by session id, as Citus does.

The rules are those that Citus was seen to enforce: keys contain the column by which rows are distributed, and nothing
refers to, or from a trigger reaches, a table that lies elsewhere. Citus itself is not run: Debian has no package of it.
Each exception that is left is named here, and in docs/scaling.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.signals import pre_save
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin.retention.models import UnfinishedExpiry
from memadmin.retention.targets import unfinished
from sessions_app.filters import DAYS, STATES
from sessions_app.models import SessionRecord
from sessions_app.services import sessions as services
from sessions_app.services import unlocking
from sessions_app.services.inspection import inspect_quiet_sessions
from tests.agents import add_items, assistant, attach_main_store, run_sql, user, value_of
from tests.builders import make_subject
from tests.people import person
from tests.retention.policies import in_force

pytestmark = pytest.mark.django_db

DISTRIBUTED = {"agent_sessions", "agent_messages", "sessions_app_sessionrecord", "sessions_app_fenceoutbox"}
"""What would lie together on the server of a session. All else stays on one server, or is on each."""

SET_BY_THE_TRIGGER = {"store_id", "session_id"}

WITHOUT_SESSION_ID = {"accounts_grantedsession", "retention_unfinishedexpiry"}
"""Know a session by its UUID alone; docs/scaling.md has the reasons."""

REACHED_ELSEWHERE = {
    *("accounts_approval", "audit_event", "retention_holdlock", "sessions_app_subject", "sessions_app_tombstonelock"),
    "sessions_app_unlockrequest",
}
"""Tables that triggers on these four read, write to or lock, and that lie elsewhere: the part that is not ready yet."""

RECURSIVE = "WITH RECURSIVE names(agent)"
"""Beginning of the statement for the names of agents, which walks along an index: Citus refuses it."""


@pytest.fixture(scope="module", autouse=True)
def store(committed_world: None) -> None:
    """The main store with three sessions."""
    attach_main_store()
    for name in ("first", "second", "third"):
        add_items(name, user("Good morning"), assistant("Good morning!"))


def rows(query: str) -> list[str]:
    return list(value_of(f"SELECT coalesce(array_agg(DISTINCT found::text), '{{}}') FROM ({query}) AS t(found)"))


def names() -> str:
    return ", ".join(f"'{name}'::regclass" for name in sorted(DISTRIBUTED))


def test_unique_keys_of_ours_contain_the_session_id() -> None:
    """But for the primary key: attaching a distributed store replaces `id` by `(session_id, id)`, on which nothing
    depends."""
    query = """
        SELECT i.indexrelid::regclass FROM pg_index AS i
        WHERE i.indisunique AND NOT i.indisprimary AND i.indrelid IN ({names}) AND NOT EXISTS (
          SELECT FROM pg_attribute AS a
          WHERE a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) AND a.attname = 'session_id')
    """
    assert rows(query.format(names=names())) == []
    run_sql("CREATE UNIQUE INDEX by_ticket_alone ON sessions_app_sessionrecord (ticket, id)")
    assert rows(query.format(names=names())) == ["by_ticket_alone"]


def test_no_foreign_key_crosses_the_border() -> None:
    """The SDK's own, from items to their session, lies within."""
    query = f"""
        SELECT conname FROM pg_constraint
        WHERE contype = 'f' AND (conrelid IN ({names()})) <> (confrelid IN ({names()}))
    """
    assert rows(query) == []
    within = f"SELECT conrelid::regclass FROM pg_constraint WHERE contype = 'f' AND confrelid IN ({names()})"
    assert rows(within) == ["agent_messages"]


def test_session_ids_have_one_type() -> None:
    """A text column cannot lie beside the SDK's varchar."""
    query = "SELECT atttypid::regtype FROM pg_attribute WHERE attname = 'session_id' AND attrelid IN ({names})"
    assert rows(query.format(names=names())) == ["character varying"]


def test_every_table_about_a_session_has_its_id() -> None:
    without = set()
    for model in apps.get_models():
        columns = {field.column for field in model._meta.concrete_fields}
        refers = {field.column for field in model._meta.concrete_fields if field.related_model is SessionRecord}
        if (refers or "record_id" in columns) and "session_id" not in columns:
            without.add(model._meta.db_table)
    assert without == WITHOUT_SESSION_ID


def test_the_trigger_can_add_a_record_that_it_knows_only_by_its_key() -> None:
    query = """
        SELECT attname FROM pg_attribute
        WHERE attrelid = 'sessions_app_sessionrecord'::regclass AND attnum > 0 AND NOT attisdropped AND attnotnull
          AND NOT atthasdef AND attidentity = ''
    """
    assert set(rows(query)) == SET_BY_THE_TRIGGER


def test_what_triggers_reach() -> None:
    """A trigger runs where its row is. What it reaches elsewhere has to be there too, or must come from an outbox."""
    ours = rows("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
    bodies = rows(
        f"SELECT p.prosrc FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid"
        f" WHERE NOT t.tgisinternal AND t.tgrelid IN ({names()})"
    )
    assert bodies
    reached = {name for name in ours for body in bodies if name in body}
    assert reached - DISTRIBUTED == REACHED_ELSEWHERE
    assert not any("notify" in body.lower() for body in bodies)


# --- statements


@contextmanager
def statements() -> Iterator[list[str]]:
    """Statements that the block sends about what would be distributed, without the columns that they select."""
    found: list[str] = []
    with CaptureQueriesContext(connection) as queries:
        yield found
    for query in queries:
        sql = " ".join(query["sql"].split())
        if any(name in sql for name in DISTRIBUTED):
            found.append(sql)


def names_its_session(sql: str) -> bool:
    """Whether the condition of a statement names one session, so that one server answers it."""
    return bool(re.search(r"session_id\"? = '", sql))


@pytest.fixture
def record() -> SessionRecord:
    """The second of the sessions."""
    return SessionRecord.objects.get(session_id="second")


def test_a_page_of_a_session_asks_all_servers_once(record: SessionRecord, operator: Client) -> None:
    """For the record with this UUID. `test_server_away.py` has the answer for the time when one of them is away."""
    item = value_of("SELECT min(id) FROM agent_messages WHERE session_id = 'second'")
    address = record.get_absolute_url()
    for page in (address, f"{address}?start=1", f"{address}?item={item}", f"{address}items/{item}/"):
        with statements() as sent:
            assert operator.get(page).status_code == 200
        of_all = [sql for sql in sent if not names_its_session(sql)]
        assert len(of_all) == 1, (page, of_all)
        assert f"\"id\" = '{record.pk.hex}'::uuid" in of_all[0]
        assert len(sent) > 1


LIST_FILTERS: list[dict[str, Any]] = [
    *({"state": state} for state in STATES),
    {"days": next(iter(DAYS))},
    {"agent": "triage"},
    {"ticket": "T-1"},
    {"label": "late"},
    {"store": "main"},
    {"without_subject": "on"},
    {"since": "2026-01-01", "until": "2026-12-31"},
    {"sort": "activity"},
    {},
]


def problems_of_list(sent: Iterable[str]) -> list[tuple[str, str]]:
    """Statements with a part that a distributed table refuses, or for which all rows are brought to one place.

    A subquery for each row (LATERAL) has a limit only where the rows come from a table that is distributed alike.
    """
    found = []
    for sql in sent:
        found += [("recursive", sql)] if "WITH RECURSIVE" in sql and RECURSIVE not in sql else []
        found += [("unnest", sql)] if re.search(r"FROM unnest\(.* LATERAL ", sql) else []
        if "sessions_app_sessionrecord" in sql:
            found += [(word, sql) for word in ("EXISTS(", "EXISTS (", " OVER (", "ctid") if word in sql]
            is_total = re.search(r"count\(", sql, re.IGNORECASE) and " LIMIT " not in sql
            found += [("count", sql)] if is_total else []
    return found


@pytest.mark.parametrize("query", LIST_FILTERS, ids=str)
def test_lists_have_no_window_no_place_no_total_and_no_correlated_question(
    record: SessionRecord, operator: Client, query: dict[str, Any]
) -> None:
    with statements() as sent:
        assert operator.get(reverse("sessions:list"), query).status_code == 200
    assert sent
    assert problems_of_list(sent) == []
    assert query or any(" LATERAL " in sql for sql in sent)


def test_the_list_of_a_subject_is_no_other(record: SessionRecord, operator: Client) -> None:
    subject = make_subject("4711")
    services.attach_sessions([record], subject, by=person("compliance"))
    for page in (reverse("sessions:list", query={"subject": str(subject.pk)}), subject.get_absolute_url()):
        with statements() as sent:
            assert operator.get(page).status_code == 200
        assert problems_of_list(sent) == []


@pytest.mark.parametrize(
    "part",
    [
        "SELECT id, row_number() OVER (ORDER BY id) FROM sessions_app_sessionrecord LIMIT 51",
        "SELECT COUNT(*) FROM sessions_app_sessionrecord",
        "SELECT id FROM sessions_app_sessionrecord WHERE EXISTS(SELECT 1 FROM memories_app_memory)",
        "DELETE FROM sessions_app_sessionrecord WHERE ctid = '(0,1)'",
        "WITH RECURSIVE t(id) AS (SELECT id FROM sessions_app_sessionrecord UNION SELECT id FROM t) SELECT FROM t",
        "SELECT * FROM unnest('{a}'::text[]) AS s(id), LATERAL (SELECT FROM agent_messages AS m LIMIT 1) AS few",
    ],
)
def test_a_problem_of_a_list_is_recognised(part: str) -> None:
    assert problems_of_list([part])


def change_and_undo(records: Iterable[SessionRecord], by: User) -> None:
    change = services.change_subject(records, make_subject("4712"), by=by)
    services.undo_subject_change(change, by=by)


Verb = Callable[[list[SessionRecord], User], object]


def unlock(records: list[SessionRecord], by: User) -> None:
    with override_settings(GRANT_APPROVAL=False):
        unlocking.request_unlocking([record.pk for record in records], reason="mistake", by=by)


WRITES: dict[str, Verb] = {
    "attach": lambda records, by: services.attach_sessions(records, make_subject("4711"), by=by),
    "detach": lambda records, by: services.detach_sessions(records, by=by),
    "change subjects and undo it": change_and_undo,
    "label": lambda records, by: services.label_sessions(records, "late", by=by),
    "unlabel": lambda records, by: services.unlabel_sessions(records, "early", by=by),
    "lock": lambda records, by: services.mark_sensitive(records, by=by),
    "unlock": unlock,
    "inspect": lambda records, by: inspect_quiet_sessions(quiet=timedelta(0)),
}


@pytest.mark.parametrize("verb", WRITES)
def test_records_are_changed_and_locked_one_by_one_by_their_session_id(record: SessionRecord, verb: str) -> None:
    """No statement sets the session ID, by which a row has its server: `save()` of a whole row would."""
    officer, before = person("compliance"), make_subject("before")
    services.attach_sessions([record], before, by=officer)
    services.label_sessions([record], "early", by=officer)
    services.mark_sensitive([record] if verb == "unlock" else [], by=officer)
    saved_whole = []

    def note(sender: object, instance: SessionRecord, update_fields: object = None, **more: object) -> None:
        saved_whole.append(instance) if update_fields is None else None

    pre_save.connect(note, sender=SessionRecord)
    try:
        with statements() as sent:
            WRITES[verb](list(SessionRecord.objects.order_by("session_id")), officer)
    finally:
        pre_save.disconnect(note, sender=SessionRecord)
    changes = [sql for sql in sent if sql.startswith('UPDATE "sessions_app_sessionrecord"')]
    locks = [sql for sql in sent if sql.startswith("SELECT") and re.search(r" FOR (NO KEY )?UPDATE", sql)]
    assert changes
    assert not saved_whole
    for sql in changes:
        columns, _, condition = sql.partition(" WHERE ")
        assert '"session_id" =' not in columns, sql
        assert names_its_session(condition), sql
    assert [sql for sql in locks if not names_its_session(sql)] == []


def test_several_records_are_locked_in_the_order_of_their_ids(record: SessionRecord) -> None:
    records = SessionRecord.objects.order_by("-session_id")
    with statements() as sent:
        change_and_undo(records, person("compliance"))
    locks = [sql for sql in sent if " FOR UPDATE" in sql]
    assert [re.findall(r"\"session_id\" = '(\w+)'", sql) for sql in locks] == [["first"], ["second"], ["third"]] * 2


def test_a_sweep_locks_and_changes_its_session_by_its_id(record: SessionRecord) -> None:
    SessionRecord.objects.filter(session_id="second").update(erased_at=now())
    record.refresh_from_db()
    UnfinishedExpiry.objects.create(record_id=record.pk, version=in_force())
    with statements() as sent, transaction.atomic():
        unfinished.lock_unfinished(record)
        unfinished.let_go_on(record)
    assert any(" FOR NO KEY UPDATE" in sql for sql in sent)
    assert any(sql.startswith("UPDATE") for sql in sent)
    assert [sql for sql in sent if not names_its_session(sql)] == []
