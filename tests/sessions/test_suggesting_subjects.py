"""Subjects suggested while an ID is typed: the closest few, along an index, each answer recorded."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from sessions_app.models import SubjectAlias
from sessions_app.search.identifiers import aliases_like
from sessions_app.views.suggesting import MOST_SUGGESTED
from tests.builders import make_subject
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

ADDRESS = reverse("sessions:subject-suggest")


@pytest.fixture
def console() -> Client:
    return signed_in(person("support"))


def suggested(console: Client, typed: str) -> list[str]:
    answer = console.post(ADDRESS, {"q": typed})
    assert answer.status_code == 200
    return [alias.key for alias in answer.context["aliases"]]


def test_closest_ids_come_first_and_not_too_many(console: Client) -> None:
    for number in range(12):
        make_subject(f"customer_{number:03}_long")
    subject = make_subject("Customer_0")
    assert suggested(console, "customer_0")[0] == "Customer_0"
    assert len(suggested(console, "customer_0")) == MOST_SUGGESTED
    assert suggested(console, "  nobody ") == suggested(console, "") == []
    event = AuditEvent.objects.filter(type="search.shown").order_by("at").first()
    assert event
    assert subject.pk in event.shown
    assert event.counters["subjects"] == MOST_SUGGESTED


def test_nothing_found_is_no_event_and_bad_text_no_error(console: Client) -> None:
    assert suggested(console, "nobody") == suggested(console, "a\0b") == suggested(console, "x" * 600) == []
    assert not AuditEvent.objects.filter(type="search.shown").exists()


def test_hostile_ids_are_text(console: Client) -> None:
    make_subject('"><b>customer\u202e')
    page = console.post(ADDRESS, {"q": "customer"}).text
    assert "<b>" not in page
    assert 'data-value="&quot;&gt;&lt;b&gt;customer\u202e"' in page
    assert "\u202e</span>" not in page


def test_typed_text_is_in_no_address(console: Client) -> None:
    assert console.get(ADDRESS, {"q": "ada"}).status_code == 405


def test_candidates_come_from_the_index_and_are_limited() -> None:
    """So the cost does not grow with the number of subjects: an index for any part, and at most 1,000 are compared."""
    subject = make_subject()
    SubjectAlias.objects.bulk_create(SubjectAlias(subject=subject, key=f"customer_{number}") for number in range(5_000))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sessions_app_subjectalias")
    plan = aliases_like("customer_4999")[:MOST_SUGGESTED].explain()
    assert "Bitmap Index Scan on alias_key_grams" in plan
    # Half of all contain this one.
    plan = aliases_like("customer")[:MOST_SUGGESTED].explain(analyze=True)
    assert "Limit" in plan
    assert "rows=1000" in plan


@pytest.mark.parametrize("address", ["sessions:list", "erasure:request-new", "retention:holds", "memories:recall"])
def test_fields_for_ids_say_what_they_are(address: str) -> None:
    page = signed_in(person("compliance")).get(reverse(address))
    assert "data-suggest" in page.text
    assert f'data-subjects="{ADDRESS}"' in page.text


def test_whoever_sees_no_subjects_is_suggested_none() -> None:
    page = signed_in(person("auditor")).get(reverse("audit:list"))
    assert "data-suggest" in page.text
    assert "data-subjects" not in page.text
