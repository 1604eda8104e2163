"""What one statement finds for a run, under the agents' role and as the console's preview: the same."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest
from django.db import connection
from django.utils.timezone import now

from memadmin.client import candidates, embedding
from memadmin.client.recalling import choose
from memadmin.deploy.roles import Roles
from sessions_app.models import Subject
from tests.builders import make_subject
from tests.deploy.connecting import connected_as
from tests.memories.builders import approved, proposed
from tests.memories.conftest import agents_role  # noqa: F401

pytestmark = pytest.mark.django_db

MONEY = "Prefers refunds to the original card."


def found(query: str, subject: Subject | None, *, agent: str = "", by_meaning: bool = True) -> list[str]:
    embedder = embedding.load("wordllama")
    assert embedder is not None
    vector = embedder.embed([query])[0] if by_meaning else None
    with connection.cursor() as cursor:
        cursor.execute(candidates.SET_RUN, candidates.run_of(subject.pk if subject else None, agent))
        statement = candidates.FIND if by_meaning else candidates.FIND_BY_WORDS
        cursor.execute(statement, candidates.parameters(query, vector, embedder=embedder.name, agent=agent))
        return [chosen.memory.statement for chosen in choose(candidates.read(cursor.fetchall())).chosen]


@pytest.fixture
def told(agents_role: Roles) -> tuple[Roles, Subject]:  # noqa: F811
    subject, other = make_subject(), make_subject()
    approved(MONEY, subject=subject, is_embedded=True)
    approved("Drinks green tea in the morning.", subject=subject, is_embedded=True)
    approved("Prefers refunds as vouchers.", subject=other, is_embedded=True)
    approved("Offer the original payment first when a flight is refunded.", is_embedded=True)
    approved("The kiosk in hall B prints tags.", is_embedded=True)
    approved("Travels on a student fare.", subject=subject, valid_until=now() - timedelta(days=1), is_embedded=True)
    approved("Has an open refund with billing.", subject=subject, agents=["billing"], is_embedded=True)
    proposed("Wants refunds in cash.", subject=subject)
    return agents_role, subject


def test_an_agent_finds_what_the_preview_shows(told: tuple[Roles, Subject]) -> None:
    names, subject = told
    hidden = {"Prefers refunds as vouchers.", "Wants refunds in cash.", "Travels on a student fare."}
    queries = ["Can I get a refund for my flight?", "", "no such thing", "NUL \x00 ' & | !"]
    for case in product(queries, ("", "billing"), (True, False)):
        query, agent, by_meaning = case
        preview = found(query, subject, agent=agent, by_meaning=by_meaning)
        with connected_as(names["agents"]):
            assert found(query, subject, agent=agent, by_meaning=by_meaning) == preview, case
        assert MONEY in preview, case
        assert not hidden & set(preview), case
        assert ("Has an open refund with billing." in preview) == (agent == "billing"), case


def test_what_was_asked_comes_first_and_what_all_share_only_where_it_fits(told: tuple[Roles, Subject]) -> None:
    _, subject = told
    first, *rest = found("I want my money back to the card, please", subject)
    assert first == MONEY
    assert "The kiosk in hall B prints tags." not in rest
    assert found("How are the kiosks doing?", None) == ["The kiosk in hall B prints tags."]


def test_vectors_of_another_embedder_are_not_compared(told: tuple[Roles, Subject]) -> None:
    _, subject = told
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memories_app_memory SET embedder = 'another'")
    assert MONEY in found("refunds", subject)


def test_what_is_meant_for_others_leaves_no_run_without_what_is_meant_for_it(agents_role: Roles) -> None:  # noqa: F811
    """The index of vectors names the nearest of all agents' memories: here more than it gives at once."""
    for number in range(45):
        approved(f"Offer a refund to the card that paid, desk {number}.", agents=["billing"], is_embedded=True)
    approved("Give travellers their money back by voucher.", agents=["kiosk"], is_embedded=True)
    with connection.cursor() as cursor:
        # The planner takes the index where there are many more.
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off")
    with connected_as(agents_role["agents"]):
        assert found("Refund to the card that paid?", None, agent="kiosk") == [
            "Give travellers their money back by voucher."
        ]
