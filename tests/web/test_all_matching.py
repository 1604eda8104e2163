"""Actions on all that match, of both lists that have them: the number first, and again at confirmation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from django.test import Client
from django.urls import reverse

from memadmin.runs.models import Run
from tests.builders import make_session
from tests.memories.builders import proposed
from tests.people import person, signed_in


@dataclass(frozen=True)
class Case:
    namespace: str
    role: str
    nouns: str
    make: Callable[[int, bool], object]
    """Makes a row with a number, which the filter matches or not."""
    query: str
    wrong: str
    """A query that the filters refuse."""
    action: Mapping[str, str]
    limit: str

    @property
    def address(self) -> str:
        return reverse(f"{self.namespace}:all-matching")

    @property
    def count_address(self) -> str:
        return reverse(f"{self.namespace}:matching-count")


def session(number: int, matches: bool) -> object:
    return make_session(f"session-{number}", agent="Refunds" if matches else "Bookings")


def proposal(number: int, matches: bool) -> object:
    return proposed(f"Likes tea number {number}.", kind="fact" if matches else "preference")


SESSIONS = Case(
    "sessions",
    "compliance",
    "sessions",
    session,
    "agent=Refunds",
    "days=gone",
    {"action": "label", "label": "spring"},
    "sessions_app.views.all_matching.MOST_SESSIONS",
)
PROPOSALS = Case(
    "reviews",
    "reviewer",
    "proposals",
    proposal,
    "kind=fact",
    "kind=gone",
    {"action": "snooze", "length": "day"},
    "memories_app.review.views.all_matching.MOST_PROPOSALS",
)


@pytest.fixture(params=[SESSIONS, PROPOSALS], ids=lambda case: case.nouns)
def case(request: pytest.FixtureRequest, db: None) -> Case:
    """A list with three rows that its filter matches, and two others."""
    case: Case = request.param
    for number in range(5):
        case.make(number, number < 3)
    return case


@pytest.fixture
def desk(case: Case) -> Client:
    return signed_in(person(case.role))


def test_the_number_comes_first_and_nothing_is_changed_yet(desk: Client, case: Case) -> None:
    page = desk.get(f"{case.address}?{case.query}")
    assert f"3 {case.nouns} match" in page.text
    assert f"Apply to 3 {case.nouns}" in page.text
    assert f'<input type="hidden" name="query" value="{case.query}">' in page.text
    assert not Run.objects.exists()


def test_the_number_for_the_button_is_that_of_the_filters(desk: Client, case: Case) -> None:
    assert desk.get(f"{case.count_address}?{case.query}").text == "3"
    assert desk.get(case.count_address).text == "5"
    assert desk.get(f"{case.count_address}?{case.wrong}").status_code == 204


def test_another_number_asks_again_with_both(desk: Client, case: Case) -> None:
    page = desk.post(case.address, {"query": "", "counted": "2", **case.action})
    assert page.status_code == 409
    assert "2 matched when you looked, 5 match now. Nothing was changed; confirm again." in page.text
    assert not Run.objects.exists()


@pytest.mark.parametrize(("action", "sentence"), [({}, "Choose an action."), ({"action": "unknown"}, "No action.")])
def test_refusals_are_sentences(desk: Client, case: Case, action: dict[str, str], sentence: str) -> None:
    page = desk.post(case.address, {"query": case.query, "counted": "3", **action})
    assert (page.status_code, sentence in page.text) == (422, True)
    assert not Run.objects.exists()


def test_wrong_filters_and_too_many_change_nothing(desk: Client, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    assert desk.post(case.address, {"query": case.wrong, "counted": "5", **case.action}).status_code == 302
    monkeypatch.setattr(case.limit, 2)
    assert desk.post(case.address, {"query": case.query, "counted": "3", **case.action}).status_code == 302
    assert not Run.objects.exists()
