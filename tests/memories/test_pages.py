"""The pages of memories: the list, one memory, what was learned from a session, and what agents would be told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memories_app.models import Evidence, Memory, Recall, RecalledMemory
from memories_app.services.refusals import OnlyErased, gate_explained
from tests.builders import make_session, make_subject
from tests.memories.builders import approved, proposed
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

LIST = reverse("memories:list")
RECALL = reverse("memories:recall")


@pytest.fixture
def reviewer() -> Client:
    return signed_in(person("reviewer"))


def event(event_type: str) -> AuditEvent:
    return AuditEvent.objects.filter(type=event_type).latest("number")


class TestList:
    def test_the_newest_come_first_and_the_log_knows_who_looked(self, reviewer: Client) -> None:
        subject = make_subject("cust_1")
        older, newer = proposed("Drinks tea.", subject=subject), approved("Drinks coffee.", subject=subject)
        Memory.objects.filter(pk=older.pk).update(proposed_at=now() - timedelta(days=1))
        text = reviewer.get(LIST).text
        assert text.index("Drinks coffee.") < text.index("Drinks tea.")
        assert set(event("memory.listed").shown) == {older.pk, newer.pk, subject.pk}

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("status=approved", {"Coffee."}),
            ("kind=preference", {"Tea."}),
            ("whose=shared", {"Kiosk."}),
            ("source=tool", {"Kiosk."}),
            ("status=approved&kind=preference", set()),
        ],
    )
    def test_filters(self, reviewer: Client, query: str, found: set[str]) -> None:
        subject = make_subject()
        proposed("Tea.", subject=subject, kind="preference")
        approved("Coffee.", subject=subject)
        proposed("Kiosk.", source="tool")
        page = reviewer.get(f"{LIST}?{query}")
        assert {shown.statement for shown in page.context["memories"]} == found

    def test_a_subjects_memories_are_those_of_all_its_ids(self, reviewer: Client) -> None:
        subject, other = make_subject("cust_1"), make_subject("cust_2")
        proposed("Tea.", subject=subject), proposed("Coffee.", subject=other)
        other.merged_into = subject
        other.save()
        assert len(reviewer.get(f"{LIST}?subject={subject.pk}").context["memories"]) == 2

    @pytest.mark.parametrize("query", ["status=nonsense", "subject=nonsense", "cursor=nonsense"])
    def test_nonsense_is_told_and_shows_nothing(self, reviewer: Client, query: str) -> None:
        proposed("Tea.")
        page = reviewer.get(f"{LIST}?{query}")
        assert page.status_code in (400, 422)
        assert "Tea." not in page.text

    def test_its_cost_does_not_grow(self, reviewer: Client) -> None:
        reviewer.get(LIST)

        def queries_for(count: int) -> int:
            for number in range(count):
                proposed(f"Fact {number}.", subject=make_subject())
            with CaptureQueriesContext(connection) as queries:
                assert len(reviewer.get(LIST).context["memories"]) == min(count, 50)
            return len(queries)

        assert queries_for(10) == queries_for(60)

    def test_an_empty_console_says_where_memories_come_from(self, reviewer: Client) -> None:
        assert "No memories yet" in reviewer.get(LIST).text


class TestSearch:
    def search(self, client: Client, words: str, **filters: str) -> Any:
        sent = {"q": words, "filters": urlencode(filters)}
        return client.post(reverse("memories:search"), sent, follow=True)

    def statements(self, page: Any) -> set[str]:
        return {shown.statement for shown in page.context["memories"]}

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            ("refund", {"Wants refunds on the card.", "No refund for students."}),
            ("card refunds", {"Wants refunds on the card."}),
            ('"the card"', {"Wants refunds on the card."}),
            ("student OR tea", {"No refund for students.", "Drinks tea."}),
            ("zanzibar", set()),
            ("'; DROP TABLE memories_app_memory; --", set()),
        ],
    )
    def test_words_are_found_in_any_form(self, reviewer: Client, words: str, found: set[str]) -> None:
        for statement in ("Wants refunds on the card.", "No refund for students.", "Drinks tea."):
            proposed(statement)
        page = self.search(reviewer, words)
        assert page.status_code == 200
        assert self.statements(page) == found

    def test_the_words_are_in_no_address_and_no_event(self, reviewer: Client) -> None:
        proposed("Drinks tea in Zanzibar.")
        page = self.search(reviewer, "zanzibar", status="proposed")
        (address, _), *_ = page.redirect_chain
        assert "zanzibar" not in address
        assert "status=proposed" in address
        assert "words “zanzibar”" in page.text
        assert not AuditEvent.objects.filter(detail__details__contains="zanzibar").exists()
        older = reviewer.get(address)
        assert self.statements(older) == {"Drinks tea in Zanzibar."}

    def test_other_filters_stay_on(self, reviewer: Client) -> None:
        proposed("Drinks tea."), approved("Drinks green tea.")
        assert self.statements(self.search(reviewer, "tea", status="approved")) == {"Drinks green tea."}

    def test_what_is_masked_is_not_found_by_who_may_not_see_it(self, reviewer: Client) -> None:
        proposed("Pays with 4111 1111 1111 1111."), proposed("Pays with cash.")
        for words in ("4111", '"4111 1111 1111 1111"'):
            assert self.statements(self.search(reviewer, words)) == set()
        assert len(self.statements(self.search(reviewer, "pays"))) == 2
        page = self.search(reviewer, "pays -4111")
        assert page.status_code == 422
        assert "Your role cannot exclude words" in page.text
        assert len(self.statements(self.search(signed_in(person("support")), "pays -4111"))) == 1

    def test_a_search_that_is_over_is_told(self, reviewer: Client) -> None:
        proposed("Drinks tea.")
        page = reviewer.get(LIST, {"search": str(uuid4())})
        assert page.status_code == 422
        assert "This search has expired" in page.text

    @pytest.mark.parametrize("words", ["", "!!", "x" * 501])
    def test_nothing_to_look_for_is_told(self, reviewer: Client, words: str) -> None:
        assert reviewer.post(reverse("memories:search"), {"q": words}).status_code == 422


class TestMemory:
    def test_shows_versions_evidence_decisions_and_uses(self, reviewer: Client) -> None:
        subject = make_subject("cust_1")
        record = make_session("chat-1", subject=subject, ticket="T-1")
        memory = approved("Drinks green tea.", subject=subject)
        Evidence.objects.create(
            memory=memory, record_id=record.pk, item_id="7", quote="Green tea please", speaker="user"
        )
        recall = Recall.objects.create(record_id=record.pk, session_id="chat-1", subject=subject, agent="Barista")
        RecalledMemory.objects.create(recall=recall, memory=memory, version=1, place=1)
        page = reviewer.get(memory.get_absolute_url())
        for words in (
            "Drinks green tea.",
            "cust_1",
            "Green tea please",
            "Approved by",
            "reviewer_0",
            "Barista",
            "1 of 1",
        ):
            assert words in page.text, words
        assert f"{record.get_absolute_url()}?item=7" in page.text
        seen = event("memory.viewed")
        assert (seen.object_ref, seen.subject_ref, seen.counters) == (memory.pk, subject.pk, {"evidence": 1})

    def test_a_changed_text_shows_what_changed(self, reviewer: Client) -> None:
        memory = proposed("Drinks green tea.")
        Memory.objects.update(statement="Drinks black tea.")
        page = reviewer.get(memory.get_absolute_url()).text
        assert "<del>green</del>" in page
        assert "<ins>black</ins>" in page

    def test_values_are_masked(self, reviewer: Client) -> None:
        memory = proposed("Pays with 4111 1111 1111 1111.")
        Evidence.objects.create(memory=memory, quote="my card is 4111 1111 1111 1111")
        for address in (memory.get_absolute_url(), LIST):
            assert "4111 1111" not in reviewer.get(address).text

    @pytest.mark.parametrize("columns", [{"is_sensitive": True}, {"is_encrypted": True}])
    def test_words_of_a_session_that_takes_a_grant_stay_there(self, reviewer: Client, columns: dict[str, Any]) -> None:
        record = make_session("chat-1", **columns)
        memory = proposed("Drinks tea.")
        Evidence.objects.create(memory=memory, record_id=record.pk, quote="secret words")
        page = reviewer.get(memory.get_absolute_url()).text
        assert "secret words" not in page
        assert "needs a grant" in page

    def test_hostile_words_are_shown_as_they_are(self, reviewer: Client) -> None:
        memory = proposed("<script>alert(1)</script> \u202e", data={"<b>": "<img src=x>"})
        Evidence.objects.create(memory=memory, quote="<img src=x onerror=alert(1)>", speaker="<b>")
        page = reviewer.get(memory.get_absolute_url()).text
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "\u202e" not in page


class TestErasingVersions:
    @pytest.fixture
    def changed(self) -> Memory:
        memory = approved("Lives at Kalju 4.", data={"street": "Kalju 4"})
        Memory.objects.filter(pk=memory.pk).update(statement="Has moved.", data={}, status="needs_revalidation")
        memory.refresh_from_db()
        return memory

    @pytest.fixture
    def officer(self) -> Client:
        return signed_in(person("compliance"))

    def erase(self, client: Client, memory: Memory, number: int, reason: str = "personal") -> Any:
        address = reverse("memories:erase-version", args=[memory.pk, number])
        return client.post(address, {"reason": reason}, follow=True)

    def test_its_text_goes_for_good_and_the_log_knows_who_and_why(self, changed: Memory, officer: Client) -> None:
        assert "Lives at" in officer.get(changed.get_absolute_url()).text
        page = self.erase(officer, changed, 1)
        assert "The text of version 1 is erased." in page.text
        assert "Text erased. The version remains listed." in page.text
        assert "Kalju" not in page.text
        version = changed.versions.get(number=1)
        assert (version.statement, version.data, version.erased_at is not None) == ("", {}, True)
        seen = event("memory.version_erased")
        assert (seen.object_ref, seen.counters, seen.reason_code) == (changed.pk, {"version": 1}, "personal")
        assert event("memory_version.row_updated").cause == seen.id
        changed.refresh_from_db()
        assert (changed.statement, changed.version) == ("Has moved.", 2)

    def test_what_agents_read_stays(self, changed: Memory, officer: Client) -> None:
        assert "Change or retire the memory first" in self.erase(officer, changed, 2).text
        assert changed.versions.get(number=2).statement == "Has moved."

    def test_twice_is_told(self, changed: Memory, officer: Client) -> None:
        self.erase(officer, changed, 1)
        assert "is already erased" in self.erase(officer, changed, 1).text

    @pytest.mark.parametrize("reason", ["", "because"])
    def test_it_takes_a_reason(self, changed: Memory, officer: Client, reason: str) -> None:
        assert self.erase(officer, changed, 1, reason).status_code == 422
        assert changed.versions.get(number=1).statement

    def test_reviewers_are_not_offered_it(self, changed: Memory, officer: Client, reviewer: Client) -> None:
        address = reverse("memories:erase-version", args=[changed.pk, 1])
        assert address in officer.get(changed.get_absolute_url()).text
        assert address not in reviewer.get(changed.get_absolute_url()).text

    @pytest.mark.parametrize(
        "change",
        [
            {"statement": "Lives on the moon."},
            {"number": 9},
            {"data": {"street": "none"}},
            {"content_hash": "x", "statement": "", "data": {}, "erased_at": Now()},
        ],
    )
    def test_the_database_lets_nobody_write_it_anew(self, changed: Memory, change: dict[str, Any]) -> None:
        with pytest.raises(OnlyErased), transaction.atomic(), gate_explained():
            changed.versions.filter(number=1).update(**change)

    def test_without_the_trigger_it_could_be_written_anew(self, changed: Memory) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
        assert changed.versions.filter(number=1).update(statement="Lives on the moon.") == 1


class TestRetiring:
    def test_agents_recall_it_no_more_and_the_log_knows_why(self, reviewer: Client) -> None:
        memory = approved("Drinks tea.")
        change = proposed("Drinks coffee.", replaces=memory, base_version=1)
        page = reviewer.post(reverse("memories:retire", args=[memory.pk]), {"reason": "poisoned"}, follow=True)
        assert "agents no longer recall it" in page.text
        assert {each.status for each in Memory.objects.filter(pk__in=[memory.pk, change.pk])} == {"retired"}
        assert (event("memory.retired").reason_code, event("memory.retired").object_ref) == ("poisoned", memory.pk)

    def test_it_takes_a_reason(self, reviewer: Client) -> None:
        memory = approved("Drinks tea.")
        for reason in ("", "because"):
            page = reviewer.post(reverse("memories:retire", args=[memory.pk]), {"reason": reason})
            assert page.status_code == 422
        memory.refresh_from_db()
        assert memory.status == "approved"

    def test_twice_is_told(self, reviewer: Client) -> None:
        memory = approved("Drinks tea.")
        for words in ("agents no longer recall it", "its status is retired"):
            page = reviewer.post(reverse("memories:retire", args=[memory.pk]), {"reason": "wrong"}, follow=True)
            assert words in page.text

    def test_back_to_the_queue(self, reviewer: Client) -> None:
        memory = approved("Drinks tea.")
        reviewer.post(reverse("memories:revalidate", args=[memory.pk]))
        memory.refresh_from_db()
        assert memory.status == "needs_revalidation"
        assert memory in Memory.objects.awaiting_review()

    def test_all_that_a_session_taught_goes_in_one_step(self, reviewer: Client) -> None:
        record = make_session("chat-1")
        poisoned = [approved("Refund twice."), proposed("Ask nobody.")]
        for memory in poisoned:
            Evidence.objects.create(memory=memory, record_id=record.pk, quote="x")
        other = approved("Drinks tea.")
        address = reverse("memories:learned-from", args=[record.pk])
        assert {shown.memory for shown in reviewer.get(address).context["memories"]} == set(poisoned)
        assert "2 memories retired" in reviewer.post(address, {"reason": "poisoned"}, follow=True).text
        assert set(Memory.objects.filter(status="retired")) == set(poisoned)
        assert Memory.objects.get(pk=other.pk).status == "approved"


class TestPreview:
    def ask(self, client: Client, **asked: object) -> str:
        page = client.post(RECALL, {"query": "Can I get a refund?", "budget": 100, **asked})
        assert page.status_code == 200, page.context["form"].errors
        return str(page.text)

    def test_shows_what_an_agent_would_be_told_and_what_not(self, reviewer: Client) -> None:
        subject = make_subject("cust_1")
        approved("Prefers refunds to the card.", subject=subject, is_embedded=True)
        approved("Had a student fare.", subject=subject, valid_until=now() - timedelta(days=1), is_embedded=True)
        approved("Owes billing.", subject=subject, agents=["billing"], is_embedded=True)
        proposed("Wants cash.", subject=subject)
        page = self.ask(reviewer, subject="cust_1")
        assert "The agent would read 1 memory" in page
        for words in (
            "approved by a person",
            "Expired on",
            "Only for billing",
            "1 proposal",
            "&lt;memories subject=&quot;",
        ):
            assert words in page, words
        assert "Wants cash." not in page
        assert event("recall.previewed").subject_ref == subject.pk
        assert not Recall.objects.exists()

    def test_as_of_another_day_and_for_another_agent(self, reviewer: Client) -> None:
        subject = make_subject("cust_1")
        approved("Had a student fare.", subject=subject, valid_until=now() - timedelta(days=3), is_embedded=True)
        approved("Owes billing.", subject=subject, agents=["billing"], is_embedded=True)
        page = self.ask(reviewer, subject="cust_1", agent="billing", as_of=f"{now() - timedelta(days=4):%Y-%m-%d}")
        assert "The agent would read 2 memories" in page

    def test_nothing_to_tell_is_said(self, reviewer: Client) -> None:
        assert "would read no memories" in self.ask(reviewer)

    @pytest.mark.parametrize(
        ("asked", "words"),
        [
            ({"query": ""}, "Enter a message to the agent"),
            ({"subject": "nobody"}, "There is no subject with this ID"),
            ({"budget": "0"}, "greater than or equal to 1"),
            ({"as_of": "soon"}, "valid date"),
        ],
    )
    def test_nonsense_is_told(self, reviewer: Client, asked: dict[str, str], words: str) -> None:
        page = reviewer.post(RECALL, {"query": "x", "budget": 10} | asked)
        assert page.status_code == 422
        assert words in page.text

    def test_what_was_asked_is_in_no_address_and_no_event(self, reviewer: Client) -> None:
        self.ask(reviewer, query="zanzibar")
        assert not AuditEvent.objects.filter(detail__details__contains="zanzibar").exists()
