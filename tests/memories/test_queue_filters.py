"""What of the queue is looked for by itself: marks, samples of rules; and what follows on a look at one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.test import Client
from django.urls import reverse

from memadmin.web.paging import rows_after, rows_before
from memories_app.dedup import consolidation
from memories_app.learning.screening import embed_memories
from memories_app.models import Memory
from memories_app.review import decisions, queue, rules
from tests.memories.builders import apply_rules, approval_rule, user_quote
from tests.memories.queue import a_reviewer, waiting
from tests.people import signed_in

# Reviews read messages around the evidence in the agents' tables.
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("agent_tables")]

QUEUE = reverse("reviews:list")


@pytest.fixture
def ada(db: None) -> User:
    return a_reviewer("ada")


@pytest.fixture
def desk(ada: User) -> Client:
    return signed_in(ada)


def shown(desk: Client, show: str) -> list[Memory]:
    return [row.memory for row in desk.get(QUEUE, {"show": show}).context["rows"]]


def sampled(*statements: str) -> list[Memory]:
    """What a rule approved and a person is to look at."""
    approval_rule("all", is_active=True, sample_percent=100, min_confidence=0.5)
    memories = [waiting(statement, confidence=0.9) for statement in statements]
    for memory in memories:
        user_quote(memory)
    embed_memories()
    assert apply_rules() == len(memories)
    return memories


def test_the_number_in_the_navigation_is_of_what_the_queue_shows(desk: Client, ada: User) -> None:
    left, put_off, over, decided, again = (waiting() for _ in range(5))
    for each in (put_off, over):
        decisions.snooze_memory(each, by=ada, length=timedelta(hours=1))
    Memory.objects.filter(pk=over.pk).update(snoozed_until=F("snoozed_until") - timedelta(hours=2))
    decisions.reject_memory(decided, by=ada, content_hash=decided.content_hash, reason="wrong")
    Memory.objects.filter(pk=again.pk).update(status=Memory.Status.NEEDS_REVALIDATION)
    assert set(shown(desk, "")) == {left, over, again}
    assert queue.count_waiting() == queue.queue_status().waiting == 3


def test_marks_are_filters_and_badges(desk: Client) -> None:
    first = waiting("Drinks tea in the morning.", key="tea")
    again = waiting("drinks tea in the morning", subject=first.subject)
    other = waiting("Prefers gin.", key="gin")
    against = waiting("Never drinks gin.", subject=other.subject, key="gin", kind=other.kind)
    waiting("Flies with a cat.")
    consolidation.consolidate()
    assert set(shown(desk, "known")) == {first, again}
    assert set(shown(desk, "contradicts")) == {other, against}
    for as_what in ("", "table"):
        page = desk.get(QUEUE, {"as": as_what}).text
        assert page.count("</svg>duplicate</span>") == 2
        assert page.count("same topic</span>") == 2
    assert "</svg>duplicate</span>" in desk.get(reverse("reviews:review", args=[first.pk])).text.split("<h1")[0]


def test_samples_are_looked_at_one_after_the_other(desk: Client) -> None:
    both = sampled("Prefers tea.", "Prefers gin.")
    one, other = shown(desk, "sampled")
    assert {one, other} == set(both)
    assert shown(desk, "") == []
    page = desk.get(reverse("reviews:review", args=[one.pk]), {"show": "sampled"})
    assert "Back to the queue <kbd>r</kbd>" in page.text
    answer = desk.post(f"{reverse('reviews:sample', args=[page.context['sample'].pk])}?show=sampled", {"agreed": "yes"})
    assert answer["Location"] == f"{reverse('reviews:review', args=[other.pk])}?show=sampled"
    page = desk.get(answer["Location"])
    answer = desk.post(f"{reverse('reviews:sample', args=[page.context['sample'].pk])}?show=sampled", {"agreed": "no"})
    assert answer["Location"] == f"{QUEUE}?show=sampled"
    assert (shown(desk, "sampled"), shown(desk, "")) == ([], [other])


def test_a_sample_that_somebody_saw_already_is_said_to_be(desk: Client) -> None:
    [memory] = sampled("Prefers tea.")
    address = reverse("reviews:review", args=[memory.pk])
    sample = desk.get(address).context["sample"]
    rules.judge_sample(sample, by=a_reviewer(), agreed=True)
    desk.post(reverse("reviews:sample", args=[sample.pk]), {"agreed": "no"})
    assert Memory.objects.get(pk=memory.pk).status == "approved"
    assert desk.get(address).context["sample"] is None


def test_snoozing_can_be_taken_back_at_once(desk: Client, ada: User) -> None:
    memory, other = waiting("Prefers tea."), waiting("Prefers gin.")
    answer = desk.post(reverse("reviews:snooze", args=[memory.pk]), {"length": "day"})
    assert answer["Location"] == f"{reverse('reviews:review', args=[other.pk])}?snoozed={memory.pk}"
    page = desk.get(answer["Location"])
    assert f'action="{reverse("reviews:wake", args=[memory.pk])}?"' in page.text
    assert 'data-key="u"' in page.text
    desk.post(reverse("reviews:wake", args=[memory.pk]))
    assert Memory.objects.get(pk=memory.pk).snoozed_until is None
    assert desk.get(answer["Location"]).context["just_snoozed"] is None
    decisions.snooze_memory(memory, by=ada, length=timedelta(hours=1))
    assert desk.get(QUEUE, {"snoozed": "nonsense"}).context["just_snoozed"] is None


@pytest.mark.parametrize(("name", "place"), [("memories:list", "Memories"), ("memories:recall", "Recall preview")])
def test_the_sidebar_tells_the_preview_from_the_list(desk: Client, name: str, place: str) -> None:
    page = desk.get(reverse(name)).text
    [current] = page.split('aria-current="page"')[1:]
    assert f'<span class="nav-link-title">{place}</span>' in current.split("</a>")[0]


def plan_of(look: QuerySet[Memory]) -> str:
    """How PostgreSQL would go about it where a table is too long to be read and sorted."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off")
        return look.explain()


def test_what_stands_before_a_proposal_is_read_from_there_on() -> None:
    memory, queue_of_all = waiting(), Memory.objects.awaiting_review()
    assert "Index Cond: (ROW(awaiting_since, id) <" in plan_of(rows_before(queue_of_all, memory)[:4])
    assert "Index Cond: (ROW(awaiting_since, id) >" in plan_of(rows_after(queue_of_all, memory)[:4])


def test_a_look_for_what_is_not_behind_would_read_all_that_is() -> None:
    """As it was once: at 100,000 proposals it took half a second for each one in the middle of the queue."""
    memory = waiting()
    later = Q(awaiting_since__gt=memory.awaiting_since) | Q(awaiting_since=memory.awaiting_since, pk__gt=memory.pk)
    behind = Q(awaiting_since__gte=memory.awaiting_since) & later
    assert "Index Cond" not in plan_of(Memory.objects.awaiting_review().filter(~behind).reverse()[:4])
