"""The command palette offers what a person may open, and nothing else; one part that fails hides no other."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from memadmin.audit.models import AuditEvent
from memadmin.web import palette
from memadmin.web.palette import Option, is_named, number_in
from memadmin.web.requests import OperatorRequest
from tests.builders import make_session, make_subject
from tests.erasure.builders import make_request
from tests.people import person, signed_in
from tests.retention.builders import make_hold

pytestmark = pytest.mark.django_db


def offered(client: Client, text: str) -> list[tuple[str, str]]:
    """Title and address of each option."""
    answer = client.post("/palette/", {"q": text})
    assert answer.status_code == 200
    return [(option.title, option.url) for _, options in answer.context["groups"] for option in options]


def test_without_a_text_the_pages_that_the_role_may_see() -> None:
    assert ("Audit log", "/audit/") in offered(signed_in(person("auditor")), "")
    titles = dict(offered(signed_in(person("support")), "  "))
    assert "Sessions" in titles
    assert "Audit log" not in titles


def test_subjects_tickets_and_sessions_by_any_part_with_what_can_be_begun() -> None:
    subject = make_subject("cust_90411")
    record = make_session("customer_cust_90411:1", subject=subject, ticket="T-90456")
    client = signed_in(person("support", "compliance"))
    found = offered(client, "904")
    assert found == [
        ("T-90456", "/sessions/?ticket=T-90456"),
        (record.session_id, record.get_absolute_url()),
        ("cust_90411", subject.get_absolute_url()),
        ("Place a hold for cust_90411", f"/holds/?subject={subject.pk}"),
        ("New request for cust_90411", f"/requests/new/?subject={subject.pk}"),
    ]
    event = AuditEvent.objects.get(type="search.shown")
    assert event.counters == {"subjects": 1, "sessions": 1, "tickets": 1}
    for _, address in found[-2:]:
        assert client.get(address, follow=True).status_code == 200


def test_nothing_about_people_for_those_who_may_not_read() -> None:
    make_session("customer_cust_90411:1", subject=make_subject("cust_90411"), ticket="T-90456")
    for role in ("auditor", "reviewer"):
        if not person(role).has_perm("sessions_app.read_content"):
            assert not [line for line in offered(signed_in(User.objects.get(username=role)), "904") if "904" in line[0]]
    assert not AuditEvent.objects.filter(type="search.shown").exists()


def test_requests_holds_and_runs_by_number() -> None:
    officer = person("compliance")
    subject = make_subject()
    case, hold = make_request(subject, by=officer), make_hold(subject, by=officer)
    client = signed_in(officer)
    assert offered(client, str(case).lower()) == [(str(case), case.get_absolute_url())]
    assert offered(client, str(hold)) == [(str(hold), hold.get_absolute_url())]
    assert offered(signed_in(person("support")), str(hold)) == []


@pytest.mark.parametrize(
    "text", ["DSR-", "DSR-x", "DSR-99999999999999999999", "R--1", "H-\u0663", "\0", "%", "<b>", "x" * 5_000]
)
def test_odd_texts_find_nothing_and_break_nothing(text: str) -> None:
    assert offered(signed_in(person("support", "compliance")), text) == []


def test_a_part_that_fails_hides_no_other(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: OperatorRequest, text: str) -> Iterable[Option]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM no_such_table")
        yield from ()

    monkeypatch.setattr(palette, "FINDERS", [broken, *palette.FINDERS])
    make_session(ticket="T-90456")
    assert ("T-90456", "/sessions/?ticket=T-90456") in offered(signed_in(person("support")), "T-90456")


def test_words_begin_words_of_a_title() -> None:
    assert is_named("Recall preview", "prev rec")
    assert not is_named("Recall preview", "view")
    assert number_in("dsr-0118", "DSR") == 118
    assert number_in("R-118", "DSR") is None


def test_only_by_post_and_only_signed_in(client: Client) -> None:
    assert client.post("/palette/", {"q": "T"}).status_code == 302
    assert signed_in(person("support")).get("/palette/").status_code == 405
