"""The registry row that a session's pages begin with: its names without further queries, and nothing of erased ones."""

from __future__ import annotations

import uuid

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import Http404
from django.test.utils import CaptureQueriesContext

from sessions_app.access import record_for
from sessions_app.models import SessionRecord, SessionStore, SubjectAlias, SubjectKind
from tests.agents import add_items
from tests.builders import make_subject
from tests.people import person


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return kept_main_store


@pytest.fixture
def reader() -> User:
    return person("support")


def test_a_session_comes_with_its_store_and_its_subject(store: SessionStore, reader: User) -> None:
    add_items("s", "Hello")
    subject = make_subject("customer_1")
    SubjectAlias.objects.create(subject=subject, key='ten\n"ant"', kind=SubjectKind.TENANT)
    SessionRecord.objects.update(subject=subject)

    record = record_for(reader, SessionRecord.objects.get().pk)
    with CaptureQueriesContext(connection) as queries:
        assert record.subject
        assert (record.store, record.subject) == (store, subject)
        assert [alias.key for alias in record.subject.aliases.all()] == ["customer_1", 'ten\n"ant"']
        assert (record.subject.label, record.subject.aliases.all()[0].subject) == ("customer_1", subject)
    assert not queries


def test_a_session_without_a_subject_has_none(store: SessionStore, reader: User) -> None:
    add_items("s", "Hello")
    assert record_for(reader, SessionRecord.objects.get().pk).subject is None


def test_an_erased_session_and_an_unknown_one_are_not_found(store: SessionStore, reader: User) -> None:
    add_items("s", "Hello")
    SessionRecord.objects.update(erased_at="2026-11-21T00:00Z")
    for record_id in (SessionRecord.objects.get().pk, uuid.uuid4()):
        with pytest.raises(Http404):
            record_for(reader, record_id)
