"""The rehearsal of an action: what it lets through before the question for the password, and what it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase

from memadmin import audit
from memadmin.accounts import audit_events
from memadmin.audit.models import AuditEvent
from memadmin.rehearsal import Rehearsal
from tests.people import person

pytestmark = pytest.mark.django_db


def rehearsed(view: Callable[[], HttpResponseBase]) -> HttpResponseBase | None:
    return Rehearsal().refusal_by(view)


def invalid() -> HttpResponse:
    return HttpResponse(status=422)


def test_only_a_response_without_change_and_content_is_let_through() -> None:
    for status, is_sent in ((200, False), (302, True), (409, True), (422, True)):
        response = rehearsed(lambda status=status: HttpResponse(status=status))  # type: ignore[misc]
        assert (response is not None) is is_sent, status


def test_nothing_is_changed_whichever_way_it_is_tried() -> None:
    def by_sql() -> None:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO auth_group (name) VALUES ('rehearsed')")

    def below_django() -> None:
        connection.connection.execute("INSERT INTO auth_group (name) VALUES ('rehearsed')")

    def by_function() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval(pg_get_serial_sequence('auth_group', 'id'), 4711)")

    ways: dict[str, Callable[[], object]] = {
        "model": lambda: Group.objects.create(name="rehearsed"),
        "update": lambda: Group.objects.update(name="rehearsed"),
        "delete": lambda: Group.objects.all().delete(),
        "SQL": by_sql,
        "driver": below_django,
        "function": by_function,
    }
    before = list(Group.objects.order_by("pk").values_list("pk", "name"))
    for name, change in ways.items():

        def swallow(change: Callable[[], object] = change) -> HttpResponse:
            """Goes on as if nothing was wrong, with a status that a form has."""
            try:
                with transaction.atomic():
                    change()
            except Exception:
                return invalid()
            raise AssertionError("It was changed")

        if name != "driver":  # whose error says nothing to Django; the database refuses it all the same
            assert rehearsed(swallow) is None, name
        else:
            rehearsed(swallow)
        assert list(Group.objects.order_by("pk").values_list("pk", "name")) == before, name
    assert Group.objects.create(name="afterwards").pk


def test_rows_are_read_without_the_locks_of_the_action_and_locked_afterwards() -> None:
    def locks() -> HttpResponse:
        with transaction.atomic():
            assert Group.objects.select_for_update().exists()
        return invalid()

    assert rehearsed(locks) is not None
    assert "FOR UPDATE" in str(Group.objects.select_for_update().query)


def test_failure_of_the_database_is_left_to_the_action() -> None:
    def fail() -> HttpResponse:
        raise DatabaseError

    assert rehearsed(fail) is None


def test_lonely_events_are_written_with_the_response_and_only_then() -> None:
    clerk = person("support")

    def deny(then: Callable[[], HttpResponse]) -> HttpResponse:
        audit.record_alone(audit_events.SIGN_IN_FAILED, target=clerk, outcome="failed", reason_code="wrong_code")
        return then()

    def unknown() -> HttpResponse:
        raise Http404

    events = AuditEvent.objects.filter(type=audit_events.SIGN_IN_FAILED.name)
    assert rehearsed(lambda: deny(HttpResponse)) is None
    assert rehearsed(lambda: deny(lambda: HttpResponse(str(Group.objects.create(name="x"))))) is None
    assert not events.exists()
    assert rehearsed(lambda: deny(invalid)) is not None
    with pytest.raises(Http404):
        rehearsed(lambda: deny(unknown))
    assert events.count() == 2
