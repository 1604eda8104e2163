"""Memories used in a run: at the run on its timeline, on their own page, and from the memory back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memories_app.audit_events import RetireReason
from memories_app.models import Evidence, Memory, MemoryVersion, Recall, RecalledMemory
from memories_app.panels import first_of, run_at
from memories_app.services.retiring import retire_memory
from sessions_app.extensions import Mark
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.timeline import build_timeline
from tests.agents import add_items, assistant, run_sql
from tests.builders import make_session, make_subject
from tests.memories.builders import approved, proposed
from tests.people import person, signed_in
from tests.sessions.timeline import items
from tests.sessions.timeline.items import FIRST_BATCH_AT, MINUTE

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(("count", "words"), [(1, "0"), (4, "0 1 2 3"), (5, "0 1 2 2 more"), (30, "0 1 2 27 more")])
def test_many_recalls_of_a_run_are_a_few_marks_and_one_that_leads_on(count: int, words: str) -> None:
    marks = first_of([Mark("brain", str(number), f"/{number}/") for number in range(count)])
    assert " ".join(mark.words for mark in marks) == words
    assert marks[-1].url == f"/{min(count - 1, 3)}/"


class TestRunAt:
    TIMELINE = build_timeline(
        items.session([items.user("one")], [items.assistant("1")], [items.user("two")], [items.assistant("2")]),
        starts_session=True,
        ends_session=True,
    )

    @pytest.mark.parametrize(
        ("minutes", "anchor"), [(-1, "1"), (0, "1"), (0.5, "1"), (1.9, "1"), (2, "3"), (2.5, "3"), (600, "3")]
    )
    def test_is_the_last_that_had_begun(self, minutes: float, anchor: str) -> None:
        run = run_at(self.TIMELINE, FIRST_BATCH_AT + minutes * MINUTE, has_earlier=False)
        assert run is not None
        assert run.anchor == anchor

    def test_what_came_before_a_page_belongs_to_the_run_that_the_page_cuts(self) -> None:
        before = FIRST_BATCH_AT - MINUTE
        assert run_at(self.TIMELINE, before, has_earlier=True) is None
        cut = build_timeline(items.session([items.assistant("1")]), starts_session=False, ends_session=True)
        assert run_at(cut, before, has_earlier=True) is cut.runs[0]

    def test_without_times_nobody_knows(self) -> None:
        timeless = build_timeline(
            [items.stored(items.user("one"), written_at=None)], starts_session=True, ends_session=True
        )
        assert run_at(timeless, NOON, has_earlier=False) is None


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    """Two runs, at noon and a minute later; the answers follow after ten seconds."""
    add_items("s", "Where is my parcel? I drink tea.")
    add_items("s", assistant("On its way."))
    add_items("s", "And my tea?")
    add_items("s", assistant("In it."))
    run_sql(
        "UPDATE agent_messages SET created_at = timestamp '2026-03-01 12:00'"
        " + CASE id - (SELECT min(id) FROM agent_messages) WHEN 0 THEN interval '0' WHEN 1 THEN interval '10 s'"
        " WHEN 2 THEN interval '60 s' ELSE interval '70 s' END"
    )
    SessionRecord.objects.update(subject=make_subject("cust_1"), ticket="T-1")
    return SessionRecord.objects.select_related("subject").get()


@pytest.fixture
def reviewer(record: SessionRecord) -> Client:
    return signed_in(person("reviewer"))


def item_ids() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id::text FROM agent_messages ORDER BY created_at, id")
        return [item_id for (item_id,) in cursor.fetchall()]


def recall(record: SessionRecord, *memories: Memory, at: datetime) -> Recall:
    made = Recall.objects.create(
        record_id=record.pk, session_id=record.session_id, subject=record.subject, agent="Barista", token_budget=400
    )
    Recall.objects.filter(pk=made.pk).update(recalled_at=at)
    for place, memory in enumerate(memories, 1):
        RecalledMemory.objects.create(recall=made, memory=memory, version=memory.version, place=place)
    made.refresh_from_db()
    return made


def told(recall: Recall) -> str:
    return reverse("memories:recall-detail", args=[recall.pk])


class TestTimeline:
    def test_a_run_says_what_was_recalled_in_it_and_an_item_what_was_learned_from_it(
        self, record: SessionRecord, reviewer: Client
    ) -> None:
        question, _, second, _ = item_ids()
        tea, hours = approved("Drinks tea.", subject=record.subject), approved("Calls before nine.")
        Evidence.objects.create(memory=tea, record_id=record.pk, item_id=question, quote="I drink tea.")
        first, last = recall(record, hours, at=NOON + SECOND), recall(record, tea, hours, at=NOON + 61 * SECOND)
        page = reviewer.get(record.get_absolute_url())
        marks = page.context["marks"]
        assert {anchor: [(mark.words, mark.url) for mark in found] for anchor, found in marks.of_runs.items()} == {
            question: [("1 memory recalled", told(first))],
            second: [("2 memories recalled", told(last))],
        }
        assert [(mark.words, mark.url) for mark in marks.of_items[question]] == [
            ("memory learned", tea.get_absolute_url())
        ]
        head = page.text.index(f'id="run-{second}"')
        assert head < page.text.index(told(last)) < page.text.index(f'id="item-{second}"')
        assert page.text.index(f'id="item-{question}"') < page.text.index(tea.get_absolute_url())
        assert "2 times" in page.text

    def test_they_stay_when_the_open_end_is_refreshed(self, record: SessionRecord, reviewer: Client) -> None:
        made = recall(record, approved("Drinks tea."), at=NOON + SECOND)
        assert told(made) in reviewer.get(reverse("sessions:live", args=[record.pk])).text

    def test_what_waits_is_said_to_wait_and_what_was_retired_is_not_said(
        self, record: SessionRecord, reviewer: Client
    ) -> None:
        question, answer, second, last = item_ids()
        waiting, retired = proposed("Drinks tea."), approved("Drinks milk.")
        several = [proposed("One."), approved("Two.")]
        for memory, item_id in [(waiting, question), (retired, answer), *((memory, second) for memory in several)]:
            Evidence.objects.create(memory=memory, record_id=record.pk, item_id=item_id, quote="x")
        Evidence.objects.create(memory=waiting, record_id=make_session("other").pk, item_id=last, quote="x")
        retire_memory(retired, by=User.objects.get(username="reviewer"), reason=RetireReason.WRONG)
        marks = reviewer.get(record.get_absolute_url()).context["marks"].of_items
        assert {item_id: [mark.words for mark in found] for item_id, found in marks.items()} == {
            question: ["memory proposed"],
            second: ["2 memories"],
        }

    def test_who_may_not_read_memories_sees_none_of_it(self, record: SessionRecord) -> None:
        recall(record, approved("Drinks tea."), at=NOON)
        reader = person()
        reader.user_permissions.add(Permission.objects.get(codename="read_content"))
        page = signed_in(reader).get(record.get_absolute_url())
        assert page.status_code == 200
        of_memories = [panel for panel in page.context["panels"] if panel.template.startswith("memories/")]
        assert (page.context["marks"].of_runs, of_memories) == ({}, [])

    def test_its_cost_does_not_grow(self, record: SessionRecord, reviewer: Client) -> None:
        def queries() -> int:
            with CaptureQueriesContext(connection) as captured:
                assert reviewer.get(record.get_absolute_url()).status_code == 200
            return sum("memories_app_" in each["sql"] for each in captured.captured_queries)

        def learn(number: int) -> None:
            memory = approved(f"Fact {number}.")
            Evidence.objects.create(memory=memory, record_id=record.pk, item_id=item_ids()[number % 4], quote="x")
            recall(record, memory, at=NOON + number * SECOND)

        learn(0)
        queries()
        before = queries()
        for number in range(1, 12):
            learn(number)
        assert queries() == before


class TestPage:
    def test_it_shows_the_words_of_that_time_whatever_became_of_them(
        self, record: SessionRecord, reviewer: Client
    ) -> None:
        same, edited, retired = (approved(f"{word} tea.", subject=record.subject) for word in ("Green", "Black", "Red"))
        emptied, gone = approved("White tea.", subject=record.subject), approved("No tea.", subject=record.subject)
        made = recall(record, same, edited, retired, emptied, gone, at=NOON)
        reviewer_user = User.objects.get(username="reviewer")
        Memory.objects.filter(pk=edited.pk).update(statement="Coffee.", status="needs_revalidation")
        retire_memory(retired, by=reviewer_user, reason=RetireReason.WRONG)
        MemoryVersion.objects.filter(memory=emptied).update(statement="", erased_at=now())
        Memory.objects.get(pk=gone.pk).delete()
        page = reviewer.get(told(made))
        shown = page.context["memories"]
        assert [each.statement for each in shown] == ["Green tea.", "Black tea.", "Red tea.", "", ""]
        for words in (
            "needs re-validation",
            "retired",
            "The text of this version was erased later.",
            "The memory was erased with all versions. Only its rank is known.",
        ):
            assert words in page.text
        assert "Coffee" not in page.text
        assert "5 memories, recalled" in page.text
        assert "Text in the prompt" not in page.text
        event = AuditEvent.objects.get(type="recall.viewed")
        assert (event.object_ref, event.subject_ref, event.counters) == (made.pk, record.subject_id, {"memories": 4})
        assert set(event.shown) == {same.pk, edited.pk, retired.pk, emptied.pk, record.subject_id}

    def test_a_later_version_is_named_and_not_shown(self, record: SessionRecord, reviewer: Client) -> None:
        memory = approved("Black tea.", subject=record.subject)
        made = recall(record, memory, at=NOON)
        change = approved("Coffee.", subject=record.subject)
        memory.refresh_from_db()
        RecalledMemory.objects.create(recall=made, memory=change, version=7, place=2)
        page = reviewer.get(told(made)).text
        assert "No version 7 of this memory is stored." in page
        assert "agents now read version 1" in page
        assert "Coffee." not in page

    def test_all_of_it_stands_as_in_the_prompt_and_values_are_masked(
        self, record: SessionRecord, reviewer: Client
    ) -> None:
        memories = [
            approved(words, subject=record.subject) for words in ("Drinks tea.", "Pays with 4111 1111 1111 1111.")
        ]
        page = reviewer.get(told(recall(record, *memories, at=NOON)))
        assert '<memories subject="cust_1">\n- Drinks tea.\n- Pays with ' in page.context["text"]
        assert "4111 1111" not in page.text

    def test_from_one_to_the_next(self, record: SessionRecord, reviewer: Client) -> None:
        one, two, three = (recall(record, approved("Tea."), at=NOON + number * SECOND) for number in range(3))
        recall(make_session("other"), at=NOON + SECOND)
        page = reviewer.get(told(two))
        assert (page.context["before"], page.context["after"]) == (one, three)

    def test_it_leads_to_its_place_in_the_session(self, record: SessionRecord, reviewer: Client) -> None:
        _, answer, _, last = item_ids()
        address = record.get_absolute_url()
        for instant, place in (
            (NOON + SECOND, f"item={answer}#item-{answer}"),
            (NOON + 61 * SECOND, f"item={last}#item-{last}"),
            (now(), "end"),
        ):
            made = recall(record, approved("Tea."), at=instant)
            leads = reviewer.get(reverse("memories:recall-place", args=[made.pk]))
            assert leads["Location"] == f"{address}?{place}"

    def test_within_one_second_the_answer_is_told_from_what_was_asked(
        self, record: SessionRecord, reviewer: Client
    ) -> None:
        _, answer, _, _ = item_ids()
        run_sql(
            "UPDATE agent_messages SET created_at = timestamp '2026-03-01 12:00:00.2' + (id - (SELECT min(id) FROM"
            " agent_messages)) * interval '0.2 s'"
        )
        made = recall(record, approved("Tea."), at=NOON + 0.3 * SECOND)
        assert f"item={answer}#" in reviewer.get(reverse("memories:recall-place", args=[made.pk]))["Location"]

    def test_a_session_that_is_gone_is_said_to_be(self, record: SessionRecord, reviewer: Client) -> None:
        made = recall(record, approved("Tea."), at=NOON)
        Recall.objects.update(record_id=None)
        assert "not available" in reviewer.get(told(made)).text
        assert reviewer.get(reverse("memories:recall-place", args=[made.pk])).status_code == 404

    def test_the_memory_leads_to_both(self, record: SessionRecord, reviewer: Client) -> None:
        memory = approved("Tea.")
        made = recall(record, memory, at=NOON)
        page = reviewer.get(memory.get_absolute_url()).text
        assert told(made) in page
        assert reverse("memories:recall-place", args=[made.pk]) in page
