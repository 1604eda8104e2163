"""The query that a session's pages begin with says what Django would."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test.utils import CaptureQueriesContext

from sessions_app.models import SessionRecord, SessionStore, SubjectAlias, SubjectKind
from sessions_app.opening import session_on_record
from tests.agents import add_items, attach_main_store
from tests.builders import make_subject


@pytest.fixture
def store(agent_tables: None) -> SessionStore:
    store = attach_main_store()
    SessionStore.objects.update(options={"a": [1]}, agent_roles=["agents"], is_sensitive=True)
    return store


def columns_of(row: Model) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_a_session_comes_with_its_store_and_its_subject(store: SessionStore) -> None:
    add_items("s", "Hello")
    subject = make_subject("customer_1")
    SubjectAlias.objects.create(subject=subject, key='ten\n"ant"', kind=SubjectKind.TENANT)
    SubjectAlias.objects.create(subject=subject, key="Ärger")
    SessionRecord.objects.update(subject=subject, ticket="T-1", labels=["vip"])
    record = SessionRecord.objects.with_names().get()

    with CaptureQueriesContext(connection) as queries:
        opened = session_on_record(record.pk)
        assert opened
        assert opened.subject
        aliases = list(opened.subject.aliases.all())
        assert (opened.subject.label, aliases[0].subject) == ("customer_1", opened.subject)

    assert len(queries) == 1
    assert columns_of(opened) == columns_of(record)
    assert columns_of(opened.store) == columns_of(record.store)
    assert columns_of(opened.subject) == columns_of(subject)
    assert [columns_of(alias) for alias in aliases] == [columns_of(alias) for alias in subject.aliases.all()]


def test_a_session_without_a_subject_has_none(store: SessionStore) -> None:
    add_items("s", "Hello")
    opened = session_on_record(SessionRecord.objects.get().pk)
    assert opened
    assert opened.subject is None


def test_an_erased_session_and_one_that_nobody_knows_are_not_there(store: SessionStore) -> None:
    add_items("s", "Hello")
    SessionRecord.objects.update(erased_at="2026-11-21T00:00Z")
    assert session_on_record(SessionRecord.objects.get().pk) is None
    assert session_on_record(uuid.uuid4()) is None
