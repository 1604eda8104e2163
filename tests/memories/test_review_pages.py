"""The pages of the review queue: what they show, to whom, and where a decision leads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.home.day_counts import count_days
from memories_app import audit_events
from memories_app.dedup.consolidation import mark_against_others
from memories_app.learning.proposing import ProposedQuote
from memories_app.models import Memory, Review
from memories_app.pages.word_diff import changes
from memories_app.review import claiming, decisions
from memories_app.review.bulk_decisions import AT_ONCE
from memories_app.services import retiring
from tests.builders import make_session, make_subject
from tests.memories.builders import date_back
from tests.memories.queue import a_reviewer, approved, propose, waiting
from tests.people import signed_in

pytestmark = pytest.mark.django_db

QUEUE = reverse("reviews:list")
CARD = "4111 1111 1111 1111"


@pytest.fixture
def ada(db: None) -> User:
    return a_reviewer("ada")


@pytest.fixture
def desk(ada: User) -> Client:
    return signed_in(ada)


def page_of(memory: Memory, verb: str = "review") -> str:
    return reverse(f"reviews:{verb}", args=[memory.pk])


def read(memory: Memory, **said: object) -> dict[str, Any]:
    return {"content_hash": memory.content_hash, "base_version": memory.base_version or "", **said}


def old(memory: Memory, hours: int) -> Memory:
    Memory.objects.filter(pk=memory.pk).update(awaiting_since=F("awaiting_since") - timedelta(hours=hours))
    memory.refresh_from_db()
    return memory


class TestQueue:
    def test_the_oldest_comes_first_and_what_is_late_is_counted(self, desk: Client) -> None:
        young, late = waiting("Prefers tea."), old(waiting("Prefers gin."), 50)
        page = desk.get(QUEUE)
        assert [row.memory for row in page.context["rows"]] == [late, young]
        assert (page.context["queue_status"].waiting, page.context["queue_status"].late) == (2, 1)
        assert page.context["queue_status"].oldest == "2 d 2 h"

    def test_filters(self, desk: Client, ada: User) -> None:
        waiting("shared", shared=True, kind="procedure")
        once = waiting("approved once", shared=True, kind="procedure")
        decisions.approve_memory(once, by=a_reviewer(), content_hash=once.content_hash)
        old(waiting("old", source="tool"), 50)
        decisions.snooze_memory(waiting("snoozed"), by=ada, length=timedelta(hours=1))
        claiming.claim(waiting("held"), by=ada)
        waiting("change", replaces=approved())
        waiting("risky", flags=("link",))
        cases: list[tuple[str, set[str]]] = [
            ("show=shared", {"shared", "approved once"}),
            ("show=second", {"approved once"}),
            ("show=late", {"old"}),
            ("show=snoozed", {"snoozed"}),
            ("show=mine", {"held"}),
            ("show=changes", {"change"}),
            ("kind=procedure", {"shared", "approved once"}),
            ("risk=any", {"risky"}),
            ("risk=link", {"risky"}),
            ("risk=secret", set()),
            ("source=tool", {"old"}),
            ("", {"shared", "approved once", "old", "held", "change", "risky"}),
        ]
        for query, expected in cases:
            assert {row.statement for row in desk.get(f"{QUEUE}?{query}").context["rows"]} == expected, query

    def test_a_filter_that_is_none_shows_nothing(self, desk: Client) -> None:
        waiting()
        page = desk.get(f"{QUEUE}?kind=opinion")
        assert (page.status_code, page.context["rows"]) == (400, [])
        for wrong in ("kind=opinion", "cursor=x"):
            table = desk.get(f"{QUEUE}?as=table&{wrong}")
            assert (table.status_code, "<tbody>" in table.text) == (400, False)
        assert "Page links are signed" in table.text

    def test_what_was_listed_is_recorded(self, desk: Client) -> None:
        memory = waiting()
        desk.get(QUEUE)
        assert set(AuditEvent.objects.get(type="memory.listed").shown) == {memory.pk, memory.subject_id}

    def test_it_is_paged_by_key(self, desk: Client) -> None:
        subject = make_subject()
        for _ in range(51):
            waiting(subject=subject)
        page = desk.get(QUEUE)
        behind = desk.get(f"{QUEUE}?cursor={page.context['page'].older}")
        assert (len(page.context["rows"]), len(behind.context["rows"])) == (50, 1)
        assert desk.get(f"{QUEUE}?cursor=made-up").status_code == 400

    def test_the_sidebar_says_how_many_wait(self, desk: Client, operator: Client) -> None:
        waiting()
        assert '<span class="badge bg-blue-lt">1</span>' in desk.get(reverse("sessions:overview")).text
        assert "Review queue" not in operator.get(reverse("sessions:overview")).text

    def test_the_overview_says_how_the_queue_stands_and_what_became_of_it(self, desk: Client, operator: Client) -> None:
        overview = reverse("sessions:overview")
        assert "No proposals are waiting." in desk.get(overview).text
        waiting(), old(waiting(), 50)
        approved()
        count_days()
        page = desk.get(overview)
        home = page.context["home"]
        assert [(entry.title, entry.age) for entry in home.waiting] == [
            ("1 proposal past the review target of 2 d", "oldest 2 d 2 h")
        ]
        assert home.changes == ["3 proposed", "1 decided: 1 approved, 0 rejected"]
        decisions, ages = home.charts[:2]
        assert [series.values[-1] for series in decisions.series] == [3, 1]
        assert [list(series.values) for series in ages.series] == [[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]]
        assert "1 proposal past" not in operator.get(overview).text


class TestProposal:
    def test_opening_it_claims_it_and_is_recorded(self, desk: Client, ada: User) -> None:
        memory = waiting("Prefers tea.", evidence=[ProposedQuote("I would like tea", speaker="user")])
        page = desk.get(page_of(memory))
        assert "Prefers tea." in page.text
        assert "I would like tea" in page.text
        memory.refresh_from_db()
        assert memory.claimed_by == ada
        event = AuditEvent.objects.get(type="memory.viewed")
        assert (event.object_ref, event.subject_ref, event.counters) == (memory.pk, memory.subject_id, {"evidence": 1})

    def test_what_somebody_else_holds_can_be_read_but_not_decided(self, desk: Client) -> None:
        memory = waiting()
        claiming.claim(memory, by=a_reviewer("grace"))
        page = desk.get(page_of(memory))
        assert "grace has claimed this proposal" in page.text
        assert 'data-key="a"' not in page.text

    def test_hostile_words_stay_words(self, desk: Client) -> None:
        memory = waiting(
            "<script>alert(1)</script> \u202eevil\u200b", evidence=[ProposedQuote('<img src=x onerror="alert(1)">')]
        )
        text = desk.get(page_of(memory)).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "\\u202eevil\\u200b" in text

    def test_values_are_masked_for_everybody_as_in_timelines(self, desk: Client) -> None:
        memory = waiting(f"Pays with {CARD}.", evidence=[ProposedQuote(f"my card is {CARD}")], flags=("card_number",))
        text = desk.get(page_of(memory)).text
        assert CARD not in text
        assert "card •••• 1111" in text
        assert CARD not in desk.get(QUEUE).text
        may_reveal = signed_in(a_reviewer(role="compliance"))
        claiming.release(memory, by=User.objects.get(username="ada"))
        for address in (page_of(memory), QUEUE):
            assert CARD not in may_reveal.get(address).text

    def test_a_value_is_edited_out_without_being_seen(self, desk: Client) -> None:
        memory = waiting(f"Pays with {CARD}.", flags=("card_number",))
        desk.post(page_of(memory, "edit"), read(memory, statement="Pays by card.", kind="fact"))
        memory.refresh_from_db()
        assert memory.statement == "Pays by card."

    def test_who_sees_masks_does_not_write_them_into_a_memory(self, desk: Client) -> None:
        memory = waiting(f"Pays with {CARD}.", flags=("card_number",))
        answer = desk.post(page_of(memory, "edit"), read(memory, statement="Pays with [card •••• 1111].", kind="fact"))
        assert answer.status_code == 422
        memory.refresh_from_db()
        assert memory.statement == f"Pays with {CARD}."

    def test_words_of_a_locked_session_take_a_grant(self, desk: Client) -> None:
        subject = make_subject()
        locked, open_one = make_session(subject=subject, is_sensitive=True), make_session(subject=subject)
        memory = waiting(
            subject=subject,
            evidence=[
                ProposedQuote("a secret word", record_id=locked.pk),
                ProposedQuote("a plain word", record_id=open_one.pk),
            ],
        )
        text = desk.get(page_of(memory)).text
        assert "a plain word" in text
        assert "a secret word" not in text
        assert "needs a grant" in text

    def test_the_difference_is_shown_word_by_word_and_a_changed_base_read_again(self, desk: Client) -> None:
        memory = approved("Prefers tea.")
        late = waiting("Prefers juice.", replaces=memory)
        change = waiting("Prefers black tea.", replaces=memory)
        decisions.approve_memory(change, by=a_reviewer(), content_hash=change.content_hash, base_version=1)
        page = desk.get(page_of(late))
        assert [text.title for text in page.context["shown"].difference] == ["v1, its base", "v2, now", "Proposed"]
        assert "<del>black tea</del><ins>juice</ins>" in page.text
        assert "I have read v2" in page.text
        assert page.context["may_approve"] is False
        assert desk.post(page_of(late, "approve"), read(late, base_version=2)).status_code == 409
        desk.post(page_of(late, "accept-base"), read(late, base_version=2))
        assert desk.get(page_of(late)).context["may_approve"] is True

    def test_it_says_first_what_approval_hides(self, desk: Client) -> None:
        later = now() + timedelta(days=400)
        cases: tuple[tuple[dict[str, Any], str], ...] = (
            ({"key": "drink"}, ""),
            ({"statement": "Drinks juice."}, "no longer recall: “Drinks tea.”"),
            ({"valid_until": now()}, "Approval ends this memory."),
            ({"key": "drink", "valid_from": later}, f"Until {later:%-d %B %Y} agents recall neither"),
            ({"agents": ["sales"]}, "no longer recall it: all but sales"),
            ({"agents": ["sales", "billing"], "statement": "Drinks tea"}, "all but billing, sales"),
        )
        for change, told in cases:
            memory = approved("Drinks tea.")
            page = desk.get(page_of(waiting(**{"statement": "Drinks tea.", "replaces": memory, **change})))
            assert ("Approval hides" in page.text) == bool(told), change
            assert ("agents would no longer read" in page.text) == ("valid_until" in change)
            assert told in page.text
            retiring.ask_revalidation(memory)
            page = desk.get(page_of(waiting(**{"statement": "Drinks water.", "replaces": memory, **change})))
            assert "Approval hides" not in page.text, "agents do not recall it now"

    def test_a_memory_of_the_same_topic_is_not_called_a_contradiction(self, desk: Client) -> None:
        subject = make_subject()
        approved("Is allergic to penicillin.", subject=subject, key="allergy")
        memory = waiting("Is allergic to peanuts.", subject=subject, key="allergy")
        mark_against_others(memory)
        page = desk.get(page_of(memory)).text
        assert "same topic" in page
        assert "contradict" not in page.lower().replace('value="contradicts"', "")
        assert "Approval hides" not in page

    def test_what_speaks_of_the_same_and_what_is_alike_stands_beside_it(self, desk: Client) -> None:
        subject = make_subject()
        approved("Wants a voucher.", subject=subject, key="refund")
        approved("Drinks green tea in the morning.", subject=subject)
        approved("Drinks green tea.", subject=make_subject())
        memory = waiting("Wants green tea.", subject=subject, key="refund")
        page = desk.get(page_of(memory))
        found = {(each.text, each.has_same_topic) for each in page.context["shown"].neighbours}
        assert found == {("Wants a voucher.", True), ("Drinks green tea in the morning.", False)}

    def test_a_memory_that_is_unknown_is_not_found(self, desk: Client) -> None:
        memory = waiting()
        Memory.objects.all().delete()
        assert desk.get(page_of(memory)).status_code == 404


class TestDeciding:
    def test_a_decision_leads_on_to_the_next_and_can_be_undone_there(self, desk: Client) -> None:
        first, second = old(waiting(), 2), old(waiting(), 1)
        answer = desk.post(page_of(first, "approve") + "?kind=preference", read(first), follow=True)
        assert answer.context["memory"] == second
        assert answer.redirect_chain[0][0].startswith(f"{page_of(second)}?kind=preference&decided=")
        assert 'data-key="u"' in answer.text
        undone = desk.post(page_of(first, "undo"), follow=True)
        assert undone.context["memory"] == first
        first.refresh_from_db()
        assert first.status == Memory.Status.PROPOSED

    def test_what_was_on_screen_only_for_a_moment_is_not_decided(self, desk: Client, settings: Any) -> None:
        # Longer than the page takes on any machine.
        settings.REVIEW_AFTER = timedelta(minutes=1)
        memory = waiting()
        desk.get(page_of(memory))
        for verb, said in (("approve", {}), ("reject", {"reason": "wrong"}), ("snooze", {"length": "day"})):
            answer = desk.post(page_of(memory, verb), read(memory, **said))
            assert answer.status_code == 422
            assert "on screen only for a moment" in answer.text
        memory.refresh_from_db()
        assert memory.is_awaiting
        # As if it was opened a minute ago.
        Memory.objects.filter(pk=memory.pk).update(claimed_until=F("claimed_until") - timedelta(minutes=1))
        assert desk.post(page_of(memory, "approve"), read(memory)).status_code == 302

    def test_a_held_key_decides_about_one(self, desk: Client, settings: Any) -> None:
        settings.REVIEW_AFTER = timedelta(minutes=1)
        first, second, third = (old(waiting(), hours) for hours in (3, 2, 1))
        answer = desk.post(page_of(first, "approve"), read(first), follow=True)
        for memory in (second, third, second):
            answer = desk.post(page_of(memory, "approve"), read(memory), follow=True)
        assert set(Memory.objects.awaiting_review()) <= {second, third}
        assert Memory.objects.get(pk=second.pk).is_awaiting
        assert answer.status_code == 422

    def test_the_last_decisions_are_listed_with_undo_where_it_is_possible(self, desk: Client) -> None:
        recent, earlier = waiting("Prefers tea"), waiting("Prefers coffee")
        for memory in (earlier, recent):
            answer = desk.post(page_of(memory, "approve"), read(memory), follow=True)
        assert "Approved: “Prefers tea”" in answer.text
        date_back(Review.objects.filter(memory=earlier), timedelta(minutes=2))
        page = desk.get(reverse("reviews:mine"))
        assert page.text.index("Prefers tea") < page.text.index("Prefers coffee")
        assert page_of(recent, "undo") in page.text
        assert page_of(earlier, "undo") not in page.text
        assert AuditEvent.objects.filter(type=audit_events.MEMORIES_LISTED.name).exists()

    def test_the_last_one_leads_to_the_empty_queue(self, desk: Client) -> None:
        memory = waiting()
        answer = desk.post(page_of(memory, "reject"), read(memory, reason="wrong"), follow=True)
        assert answer.redirect_chain[0][0].startswith(QUEUE)
        assert "No proposals waiting" in answer.text

    def test_what_is_next_is_somebodys_to_decide(self, desk: Client, ada: User) -> None:
        memory = old(waiting(), 5)
        claiming.claim(waiting(), by=a_reviewer())
        waiting(by=ada)
        once = waiting(shared=True)
        decisions.approve_memory(once, by=ada, content_hash=once.content_hash)
        answer = desk.post(page_of(memory, "approve"), read(memory))
        assert answer["Location"].startswith(f"{QUEUE}?decided=")

    def test_who_was_slower_is_told_who_won(self, desk: Client) -> None:
        memory = waiting()
        decisions.reject_memory(memory, by=a_reviewer("grace"), content_hash=memory.content_hash, reason="wrong")
        answer = desk.post(page_of(memory, "approve"), read(memory))
        assert answer.status_code == 409
        assert "grace already rejected this proposal. Your decision was not saved." in answer.text
        assert Review.objects.count() == 1

    def test_ones_own_decision_in_another_window_is_called_that(self, desk: Client) -> None:
        memory = waiting()
        assert desk.post(page_of(memory, "approve"), read(memory)).status_code == 302
        answer = desk.post(page_of(memory, "approve"), read(memory))
        assert answer.status_code == 409
        assert "You already approved this proposal. Your decision was not saved." in answer.text

    def test_a_rejection_without_a_reason_is_refused(self, desk: Client) -> None:
        memory = waiting()
        answer = desk.post(page_of(memory, "reject"), read(memory))
        assert answer.status_code == 422
        assert "Choose a reason. Distillers learn from it." in answer.text

    def test_ones_own_is_refused(self, desk: Client, ada: User) -> None:
        memory = waiting(by=ada)
        answer = desk.post(page_of(memory, "approve"), read(memory))
        assert answer.status_code == 422
        assert "You proposed this yourself" in answer.text

    def test_what_nobody_looked_through_is_not_approved(self, desk: Client) -> None:
        memory = propose()
        assert desk.get(page_of(memory)).context["may_approve"] is False
        assert desk.post(page_of(memory, "approve"), read(memory)).status_code == 422

    def test_other_words(self, desk: Client) -> None:
        memory = waiting("Prefers tee.")
        desk.post(page_of(memory, "edit"), read(memory, statement=" Prefers tea. ", kind="fact"))
        memory.refresh_from_db()
        assert (memory.statement, memory.kind, memory.status) == ("Prefers tea.", "fact", "approved")

    def test_words_that_are_none_come_back_with_the_reason(self, desk: Client) -> None:
        memory = waiting()
        answer = desk.post(page_of(memory, "edit"), read(memory, statement="x" * 2001, kind="fact"))
        assert answer.status_code == 422
        assert "at most 2,000 characters" in answer.text
        assert "x" * 2001 in answer.text

    def test_merging_snoozing_and_waking(self, desk: Client) -> None:
        memory = waiting()
        other = approved(subject=memory.subject)
        desk.post(page_of(memory, "snooze"), {"length": "day"})
        memory.refresh_from_db()
        assert memory.snoozed_until is not None
        desk.post(page_of(memory, "wake"))
        desk.post(page_of(memory, "merge"), read(memory, into=other.pk))
        memory.refresh_from_db()
        assert (memory.status, memory.merged_into) == ("merged", other)

    def test_letting_go(self, desk: Client) -> None:
        memory = waiting()
        desk.get(page_of(memory))
        desk.post(page_of(memory, "let-go"))
        memory.refresh_from_db()
        assert memory.claimed_by is None


def test_pages_ask_as_much_of_many_as_of_few(desk: Client) -> None:
    def queries() -> list[int]:
        counts = []
        for url in (QUEUE, f"{QUEUE}?as=table", page_of(first)):
            desk.get(url)
            with CaptureQueriesContext(connection) as asked:
                desk.get(url)
            counts.append(len(asked))
        return counts

    subject = make_subject()
    first = old(waiting(subject=subject, evidence=[ProposedQuote("tea")]), 9)
    waiting(subject=subject)
    few = queries()
    for _ in range(20):
        waiting(subject=subject, evidence=[ProposedQuote("tea")])
        waiting()
    assert queries() == few
    assert few[0] <= 15
    assert few[2] <= 30


class TestMany:
    def test_it_first_says_how_many_qualify(self, desk: Client) -> None:
        plain, risky = waiting(), waiting(flags=("secret",))
        ticked = {"verb": "approve", "memory": [f"{each.pk}:{each.content_hash}" for each in (plain, risky)]}
        page = desk.post(reverse("reviews:decide"), ticked)
        assert "1 of 2 qualify" in page.text
        assert "needs a second approver" in page.text
        assert not Review.objects.exists()
        desk.post(reverse("reviews:decide"), ticked | {"confirmed": "yes"})
        assert Review.objects.get().memory == plain

    def test_a_lost_race_says_who_decided(self, desk: Client) -> None:
        grace = a_reviewer("grace")
        lost, other, mine = waiting(), waiting(), waiting()
        ticked = {"memory": [f"{each.pk}:{each.content_hash}" for each in (lost, other, mine)]}
        for memory in (lost, other):
            decisions.approve_memory(
                memory, by=grace, content_hash=memory.content_hash, base_version=memory.base_version
            )
        answer = desk.post(reverse("reviews:decide"), {"verb": "approve", "confirmed": "yes", **ticked}, follow=True)
        assert "1 of 3 proposals approved. Not changed: 2 (grace already approved it)." in answer.text

    @pytest.mark.parametrize("sent", [{}, {"memory": "x"}, {"memory": f"{'0' * 32}:x"}, {"verb": "reject"}])
    def test_nonsense_is_refused_in_words(self, desk: Client, sent: dict[str, str]) -> None:
        answer = desk.post(reverse("reviews:decide"), sent, follow=True)
        assert answer.status_code == 200
        assert "toast-static" in answer.text

    def test_more_than_can_be_looked_at_are_refused_and_none_left_out(self, desk: Client) -> None:
        memory = waiting()
        ticked = [f"{uuid4()}:x" for _ in range(AT_ONCE)] + [f"{memory.pk}:{memory.content_hash}"]
        answer = desk.post(
            reverse("reviews:decide"), {"verb": "approve", "memory": ticked, "confirmed": "yes"}, follow=True
        )
        assert f"{AT_ONCE + 1} are selected. Decide about at most {AT_ONCE} at once." in answer.text
        assert not Review.objects.exists()

    def test_the_table_has_a_box_for_each(self, desk: Client) -> None:
        memory = waiting()
        assert f'value="{memory.pk}:{memory.content_hash}"' in desk.get(f"{QUEUE}?as=table").text


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Drinks tea.", "Drinks tea.", "=Drinks tea."),
        ("Drinks tea.", "Drinks gin.", "=Drinks |-tea|+gin|=."),
        ("Only if it is worth it.", "Never offer it.", "-Only if it is worth|+Never offer|= it."),
        ("", "New.", "+New."),
        ("Old.", "", "-Old."),
        ("a " * 900, "b" + " a" * 900, "-" + "a " * 900 + "|+b" + " a" * 900),
    ],
)
def test_differences_word_by_word(before: str, after: str, expected: str) -> None:
    signs = {"kept": "=", "removed": "-", "added": "+"}
    assert "|".join(signs[piece.what] + piece.text for piece in changes(before, after)) == expected


def test_the_moment_of_a_page_is_not_needed_for_a_claim_that_ran_out(desk: Client) -> None:
    memory = waiting()
    claiming.claim(memory, by=a_reviewer())
    Memory.objects.filter(pk=memory.pk).update(claimed_until=now() - timedelta(minutes=1))
    assert 'data-key="a"' in desk.get(page_of(memory)).text
