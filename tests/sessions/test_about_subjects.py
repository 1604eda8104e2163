"""Narrowing the list of sessions to a subject, by typing a part of one of its ids."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from sessions_app.services import subjects
from tests.builders import make_session, make_subject
from tests.people import person
from tests.sessions.stores import shown, stores

__all__ = ["stores"]

pytestmark = pytest.mark.usefixtures("stores")


def ask(client: Client, text: str, filters: str = "") -> Any:
    return client.post(reverse("sessions:about"), {"about": text, "filters": filters})


def test_support_types_a_part_of_an_id_and_sees_that_subjects_sessions(operator: Client) -> None:
    subject = make_subject("marta@example.org")
    make_session("hers", subject=subject, agent="Refunds")
    make_session("hers too", subject=subject, agent="Triage")
    make_session("of nobody", agent="Refunds")

    answer = ask(operator, "marta", "agent=Refunds&without_subject=1")

    assert answer.url == f"/sessions/?agent=Refunds&subject={subject.pk}"
    assert shown(operator.get(answer.url)) == ["hers"]
    assert AuditEvent.objects.filter(type="search.shown", shown__contains=[subject.pk]).exists()


def test_of_several_the_closest_are_offered_unless_one_is_meant(operator: Client) -> None:
    exact, longer = make_subject("cust_1"), make_subject("cust_12")
    assert ask(operator, "cust_1").url == f"/sessions/?subject={exact.pk}"
    page = ask(operator, "cust_", "store=nowhere")
    links = [unescape(found) for found in re.findall(r'class="mono text-break" href="([^"]*)"', page.text)]
    assert links == [f"/sessions/?subject={each.pk}" for each in (exact, longer)]
    for number in range(20, 30):
        make_subject(f"cust_{number}")
    assert "The 10 closest matches." in ask(operator, "cust_").text


def test_who_was_merged_into_another_is_shown_as_that_one(operator: Client) -> None:
    one, other = make_subject("cust_1"), make_subject("kiosk_1")
    subjects.merge_subjects(one, other, by=person("support", "reviewer"))
    assert ask(operator, "cust_1").url == f"/sessions/?subject={other.pk}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nobody", "No subject has “nobody”"),
        ("", "Enter a subject ID."),
        ("a\0b", "Null characters"),
        ("<b>", "“&lt;b&gt;”"),
    ],
)
def test_what_leads_nowhere_is_said(operator: Client, text: str, sentence: str) -> None:
    answer = ask(operator, text)
    assert answer.status_code == 422
    assert sentence in answer.text


def test_an_id_is_in_no_address(operator: Client) -> None:
    assert operator.get(reverse("sessions:about"), {"about": "cust_1"}).status_code == 405
    form = re.search(r'<form id="about" method="post"', operator.get(reverse("sessions:list")).text)
    assert form
