"""Evidence on the page of a proposal: its date, the messages around it, and the quoted words marked."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from memories_app import audit_events
from memories_app.learning.proposing import ProposedQuote
from memories_app.learning.signals import give_feedback
from memories_app.models import Memory
from memories_app.pages.view_models import QUOTES_IN_CONTEXT
from sessions_app.models import SessionRecord, SessionStore
from tests.agents import add_items, assistant, in_sdk, run_sql, value_of
from tests.approvals import without_triggers
from tests.builders import make_subject
from tests.memories.queue import a_reviewer, waiting
from tests.people import person, signed_in

CALL = {"type": "function_call", "call_id": "c", "name": "find_fare", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "Flex"}
SAID = "Yes please. And always refund   to my card, I never want vouchers."


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("s", "My flight was cancelled.")
    add_items("s", assistant("Your fare is refundable. Shall I go ahead?"))
    add_items("s", SAID)
    add_items("s", CALL, OUTPUT, assistant("Done, it goes back to your card."))
    SessionRecord.objects.update(subject=make_subject("cust_1"), ticket="T-90417")
    return SessionRecord.objects.get()


@pytest.fixture
def reviewer(db: None) -> User:
    return a_reviewer()


def item_with(text: str) -> str:
    return str(value_of(f"SELECT id::text FROM agent_messages WHERE message_data LIKE '%{text}%' ORDER BY id LIMIT 1"))


def proposal(record: SessionRecord, quote: str = "always refund to my card", **values: Any) -> Memory:
    values = {"item_id": item_with("always refund"), "speaker": "user"} | values
    evidence = ProposedQuote(quote, record_id=record.pk, session_id="s", **values)
    return waiting("Refund to the card.", subject=record.subject, evidence=[evidence])


def page_of(memory: Memory, reader: User) -> Any:
    return signed_in(reader).get(reverse("reviews:review", args=[memory.pk]))


def card(page: Any) -> str:
    return str(page.text).partition('id="evidence"')[2].partition("</section>")[0]


def test_the_messages_before_and_after_stand_around_the_marked_words(record: SessionRecord, reviewer: User) -> None:
    page = page_of(proposal(record), reviewer)
    shown = card(page)
    assert "<mark>always refund   to my card</mark>, I never want vouchers." in shown
    before, quoted, after = (
        shown.index(text) for text in ("Shall I go ahead?", "Yes please.", "goes back to your card")
    )
    assert before < quoted < after
    assert "My flight was cancelled." not in shown
    assert "find_fare" not in shown
    assert "T-90417" in shown
    # Agents state no time; the store has it.
    assert re.search(r'<time datetime="\d{4}-', shown.partition('class="quote hit"')[2])
    event = AuditEvent.objects.get(type=audit_events.EVIDENCE_READ.name)
    assert (event.object_ref, event.subject_ref, event.counters) == (record.pk, record.subject_id, {"messages": 3})


def test_a_long_message_is_folded(record: SessionRecord, reviewer: User) -> None:
    add_items("s", assistant("word " * 100))
    add_items("s", "Thanks, my name is Ada.")
    shown = card(page_of(proposal(record, "my name is Ada", item_id=item_with("is Ada")), reviewer))
    assert shown.count('<details class="disc">') == 1
    assert "<mark>my name is Ada</mark>" in shown


def test_of_a_long_quoted_message_the_part_around_the_words_is_shown(record: SessionRecord, reviewer: User) -> None:
    add_items("s", f"{'left ' * 200}prefers tea {'right ' * 200}")
    shown = card(page_of(proposal(record, "prefers tea", item_id=item_with("prefers tea")), reviewer))
    assert "<mark>prefers tea</mark>" in shown
    assert shown.count("left") < 100
    assert shown.count("… ") == shown.count(" …") == 1


def test_values_around_a_quote_are_masked(record: SessionRecord, reviewer: User) -> None:
    add_items("s", "My card is 4242 4242 4242 4242, use that card always.", assistant("Noted, 4242 4242 4242 4242."))
    quote = "My card is 4242 4242 4242 4242, use that card always."
    shown = card(page_of(proposal(record, quote, item_id=item_with("use that card")), reviewer))
    assert "4242 4242" not in shown
    assert "<mark>My card is</mark>" in shown
    assert "use that card always.</mark>" in shown


def test_a_note_of_an_operator_stands_behind_the_message_that_it_is_about(
    record: SessionRecord, reviewer: User
) -> None:
    answer = item_with("goes back to your card")
    signal = give_feedback(record, answer, by=person("support"), value=-1, note="Vouchers were promised as well.")
    memory = proposal(
        record, "Vouchers were promised as well.", item_id=answer, speaker="operator", signal_id=signal.pk
    )
    shown = card(page_of(memory, reviewer))
    assert shown.index("goes back to your card") < shown.index("<mark>Vouchers were promised as well.</mark>")


def test_a_quote_whose_item_is_gone_stands_alone(record: SessionRecord, reviewer: User) -> None:
    memory = proposal(record)
    in_sdk(lambda tables: tables.session("s").clear_session())
    shown = card(page_of(memory, reviewer))
    assert "<mark>always refund to my card</mark>" in shown
    assert "Shall I go ahead?" not in shown


def test_who_may_not_read_the_session_sees_no_more_than_before(record: SessionRecord, reviewer: User) -> None:
    memory = proposal(record)
    SessionRecord.objects.update(is_sensitive=True)
    shown = card(page_of(memory, reviewer))
    assert "needs a grant" in shown
    assert "Shall I go ahead?" not in shown
    assert "always refund" not in shown
    with without_triggers():
        SessionRecord.objects.update(is_sensitive=False)
    reviewer.groups.clear()
    reviewer.user_permissions.set(only_review())
    shown = card(page_of(memory, User.objects.get(pk=reviewer.pk)))
    assert "always refund to my card" in shown
    assert "Shall I go ahead?" not in shown


def only_review() -> Any:
    from django.contrib.auth.models import Permission

    return Permission.objects.filter(codename__in=["read_memory", "review_memory"])


def test_only_the_first_quotes_are_shown_in_their_conversation(record: SessionRecord, reviewer: User) -> None:
    item = item_with("always refund")
    quotes = [ProposedQuote("refund", record_id=record.pk, session_id="s", item_id=item) for _ in range(6)]
    memory = waiting("Refund to the card.", subject=record.subject, evidence=quotes)
    assert card(page_of(memory, reviewer)).count("Shall I go ahead?") == QUOTES_IN_CONTEXT


def test_a_store_that_is_away_leaves_the_quote(record: SessionRecord, reviewer: User) -> None:
    memory = proposal(record)
    run_sql("ALTER TABLE agent_messages RENAME TO agent_messages_away")
    try:
        page = page_of(memory, reviewer)
        assert page.status_code == 200
        assert "<mark>always refund to my card</mark>" in card(page)
    finally:
        run_sql("ALTER TABLE agent_messages_away RENAME TO agent_messages")
