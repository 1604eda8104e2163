"""Pages while one of the servers is away over which the registry is distributed.

The registry is divided into two partitions by session ID. One of them is a foreign table of a server that cannot be
reached: PostgreSQL itself decides which statements need it. A stand-in is only the error, which has the code that Citus
and postgres_fdw give it: without a program for the foreign server PostgreSQL refuses with another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now
from psycopg import errors

from memadmin.web.errors import is_part_away
from sessions_app import jobs
from sessions_app.access import opened_key
from sessions_app.models import SessionRecord, Subject
from sessions_app.services.inspection import inspect_session
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, assistant, attach_main_store, run_sql, user, value_of
from tests.builders import make_subject
from tests.people import person

pytestmark = pytest.mark.django_db(transaction=True)

REGISTRY = "sessions_app_sessionrecord"
IS_HERE = f"satisfies_hash_partition('{REGISTRY}'::regclass, 2, 0, session_id)"

DISTRIBUTE = f"""
    ALTER TABLE {REGISTRY} RENAME TO kept;
    CREATE TABLE {REGISTRY} (LIKE kept INCLUDING DEFAULTS) PARTITION BY HASH (session_id);
    CREATE TABLE here PARTITION OF {REGISTRY} FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE FOREIGN DATA WRAPPER unreachable;
    CREATE SERVER away FOREIGN DATA WRAPPER unreachable;
    CREATE FOREIGN TABLE there PARTITION OF {REGISTRY} FOR VALUES WITH (MODULUS 2, REMAINDER 1) SERVER away;
    INSERT INTO {REGISTRY} SELECT * FROM kept WHERE {IS_HERE};
"""
PUT_BACK = f"""
    DROP TABLE {REGISTRY};
    ALTER TABLE kept RENAME TO {REGISTRY};
    DROP FOREIGN DATA WRAPPER unreachable CASCADE;
"""


def as_connection_failure(execute: Callable[..., Any], *statement: Any) -> Any:
    try:
        return execute(*statement)
    except OperationalError as problem:
        if "has no handler" not in str(problem):
            raise
        raise OperationalError("could not connect to server") from errors.ConnectionFailure()


@pytest.fixture
def subject(agent_tables: None) -> Subject:
    """With eight sessions."""
    attach_main_store()
    for number in range(8):
        add_items(f"session {number}", user("Good morning"), assistant("Good morning!"))
    subject = make_subject("4711")
    attach_sessions(SessionRecord.objects.all(), subject, by=person("compliance"))
    return subject


@pytest.fixture
def servers(subject: Subject) -> Iterator[dict[bool, SessionRecord]]:
    """A session on the server that responds (true), and one on the server that is away (false)."""
    records = list(SessionRecord.objects.order_by("session_id"))
    run_sql(DISTRIBUTE)
    try:
        ids = value_of(f"SELECT array_agg(session_id) FROM kept WHERE {IS_HERE}")
        with connection.execute_wrapper(as_connection_failure):
            yield {record.session_id in ids: record for record in records}
    finally:
        run_sql(PUT_BACK)


@pytest.fixture
def reader(operator: Client) -> Client:
    """Gets error pages, as a browser does."""
    operator.raise_request_exception = False
    return operator


def assert_says_what_is_away(response: Any) -> None:
    assert response.status_code == 503
    assert response["Retry-After"] == "10"
    assert "One server of the database is not responding" in response.text
    assert "Nothing is lost" in response.text
    assert f'action="{reverse("sessions:open")}"' in response.text
    assert 'id="nav"' in response.text


def test_lists_say_that_a_server_is_away(servers: dict[bool, SessionRecord], subject: Subject, reader: Client) -> None:
    lists = ["list", "table"]
    for address in (*(reverse(f"sessions:{name}") for name in lists), subject.get_absolute_url()):
        assert_says_what_is_away(reader.get(address))


def test_a_part_of_a_page_names_the_notice_that_is_shown_instead(
    servers: dict[bool, SessionRecord], reader: Client
) -> None:
    response = reader.get(reverse("sessions:list"), headers={"HX-Request": "true"})
    assert (response.status_code, response["X-Notice"]) == (503, "part-away")
    page = reader.get(reverse("home:notifications"))
    assert page.status_code == 200
    assert '<template id="part-away">' in page.text


def test_a_change_that_failed_says_that_it_may_not_be_saved(servers: dict[bool, SessionRecord], reader: Client) -> None:
    selected = {"session": [str(record.pk) for record in servers.values()], "label": "late"}
    response = reader.post(reverse("sessions:label"), selected)
    assert response.status_code == 503
    assert "One server of the database is not responding" in response.text
    assert "Your last change may not have been saved" in response.text


def test_the_home_page_goes_on_without_the_sessions(servers: dict[bool, SessionRecord], reader: Client) -> None:
    response = reader.get("/")
    assert response.status_code == 200
    assert response.context["home"].failed == ["Sessions"]
    assert "No list of sessions can be shown until it responds." in response.text


def test_a_session_on_another_server_is_opened_by_its_id(servers: dict[bool, SessionRecord], reader: Client) -> None:
    record = servers[True]
    address = record.get_absolute_url()
    assert_says_what_is_away(reader.get(address))
    opened = reader.post(reverse("sessions:open"), {"session_id": f" {record.session_id} "})
    assert (opened.status_code, opened["Location"]) == (302, address)
    item = value_of(f"SELECT min(id) FROM agent_messages WHERE session_id = '{record.session_id}'")
    for page in (address, f"{address}?item={item}", f"{address}items/{item}/", f"{address}live/"):
        assert reader.get(page).status_code == 200, page
    assert "Good morning!" in reader.get(address).text
    assert record.session_id not in cache.get(opened_key(record.pk))


def test_a_session_on_the_server_that_is_away_is_not_opened(servers: dict[bool, SessionRecord], reader: Client) -> None:
    response = reader.post(reverse("sessions:open"), {"session_id": servers[False].session_id})
    assert response.status_code == 503
    assert_says_what_is_away(reader.get(servers[False].get_absolute_url()))


def test_an_unknown_id_opens_nothing(servers: dict[bool, SessionRecord], reader: Client) -> None:
    ids = [f"unknown {number}" for number in range(9)]
    answers = {reader.post(reverse("sessions:open"), {"session_id": name}).status_code for name in ids}
    assert answers == {422, 503}


def test_an_erased_session_is_not_opened(servers: dict[bool, SessionRecord], reader: Client) -> None:
    record = servers[True]
    reader.post(reverse("sessions:open"), {"session_id": record.session_id})
    SessionRecord.objects.filter(session_id=record.session_id).update(erased_at=now())
    assert reader.get(record.get_absolute_url()).status_code == 404
    assert reader.post(reverse("sessions:open"), {"session_id": record.session_id}).status_code == 422


def test_a_job_over_sessions_fails_alone(servers: dict[bool, SessionRecord]) -> None:
    """Its next run is another job. Whatever needs no sessions, or those of one server, is done by the same worker."""
    tick = int(time.time())
    with pytest.raises(OperationalError):
        jobs.inspect_sessions(timestamp=tick)
    inspect_session(servers[True])
    assert SessionRecord.objects.get(session_id=servers[True].session_id).inspected_count >= 0
    with pytest.raises(OperationalError):
        inspect_session(servers[False])
    for job in (jobs.drain_outbox, jobs.check_stores, jobs.forget_old_searches):
        job(timestamp=tick)


def test_the_code_alone_is_not_a_server_away(reader: Client) -> None:
    """The connection has to work: a pooler without a server gives such a code, too, and closes it."""
    with pytest.raises(OperationalError) as failed, connection.cursor() as cursor:
        cursor.execute("DO $$ BEGIN RAISE SQLSTATE '08006'; END $$")
    assert is_part_away(failed.value)
    connection.close()
    assert not is_part_away(failed.value)
