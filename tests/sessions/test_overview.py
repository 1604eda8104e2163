"""The first page after signing in, for each who signs in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memadmin.audit.models import AuditVerdict
from tests.agents import add_items
from tests.builders import make_session, make_subject
from tests.people import person, signed_in
from tests.sessions.stores import link, shown, stores

__all__ = ["stores"]

pytestmark = pytest.mark.usefixtures("stores")

ADDRESS = reverse("sessions:overview")


@pytest.mark.usefixtures("kept_main_store")
def test_support_sees_what_waits_and_what_is_new(operator: Client) -> None:
    add_items("newest", "The voucher code says invalid")
    make_session(subject=make_subject(), finding_count=2)
    page = operator.get(ADDRESS)
    assert "The voucher code says invalid" in page.text
    assert "healthy" in page.text
    assert link(page, "1 session with findings") == reverse("sessions:list") + "?state=findings"
    assert link(page, "1 session without a subject") == reverse("sessions:list") + "?without_subject=1"


def test_only_the_newest_sessions_are_shown(operator: Client) -> None:
    for number in range(10):
        make_session(f"s{number}")
    assert shown(operator.get(ADDRESS)) == [f"s{number}" for number in range(9, 1, -1)]


def test_ten_sessions_and_a_hundred_cost_the_same(operator: Client) -> None:
    subject = make_subject()
    operator.get(ADDRESS)

    def queries_for(count: int) -> int:
        for _ in range(count):
            make_session(subject=subject)
        with CaptureQueriesContext(connection) as queries:
            operator.get(ADDRESS)
        return len(queries)

    assert queries_for(10) == queries_for(90)


def test_an_administrator_sees_the_stores_and_no_session(administrator: Client) -> None:
    make_session("secret")
    text = administrator.get(ADDRESS).text
    assert "Stores" in text
    assert "Words of secret" not in text
    assert "without a subject" not in text


def test_an_auditor_sees_how_the_log_stands(db: Any) -> None:
    auditor = signed_in(person("auditor"))
    page = auditor.get(ADDRESS)
    assert link(page, "The audit log was not verified yet") == reverse("audit:list")
    for verdict, words in (
        ("ok", "verified"),
        ("unsigned", "partly unsigned"),
        ("epoch", "restored log"),
        ("broken", "tampering detected"),
    ):
        AuditVerdict.objects.create(verdict=verdict, size=1, findings=[] if verdict == "ok" else [{"kind": verdict}])
        page = auditor.get(ADDRESS)
        assert re.search(rf"</svg>\s*{words}</span>", page.text), verdict
        assert "not verified yet" not in page.text
        assert ("The audit log was changed" in page.text) == (verdict == "broken")


def test_who_can_do_nothing_yet_is_told_who_could(db: Any) -> None:
    page = signed_in(person()).get(ADDRESS)
    assert page.status_code == 200
    assert "Ask an administrator for a role" in " ".join(page.text.split())


def test_nobody_sees_it_before_signing_in(db: Any) -> None:
    assert Client().get(ADDRESS).status_code == 302


def test_it_takes_no_post(operator: Client) -> None:
    assert operator.post(ADDRESS).status_code == 405
