"""What operators say about items, from whom nothing is learned, and the panels of both on pages of sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from memories_app.learning.distillation import distil_session
from memories_app.learning.distilled_proposals import SUBJECT_SUMMARY
from memories_app.learning.proposing import propose_memory
from memories_app.learning.signals import allow_learning, is_stopped, stop_learning
from memories_app.models import Evidence, LearningStop, Signal
from memories_app.services.refusals import NothingLearnedHere
from sessions_app.extensions import ExtensionPoint, Panel
from sessions_app.models import SessionRecord, Subject
from tests.agents import add_items, assistant, attach_main_store, drop_agent_tables
from tests.builders import make_subject
from tests.memories.builders import approved, proposed
from tests.people import person, signed_in
from tests.retention.builders import make_hold


@pytest.fixture
def record(transactional_db: None) -> Iterator[SessionRecord]:
    attach_main_store()
    add_items("s", "Where is my parcel?")
    add_items("s", assistant("On its way."))
    SessionRecord.objects.update(subject=make_subject("whom"))
    yield SessionRecord.objects.select_related("subject").get()
    drop_agent_tables()


@pytest.fixture
def support(record: SessionRecord) -> Client:
    return signed_in(person("support"))


def feedback(record: SessionRecord, item_id: str = "1") -> str:
    return reverse("memories:feedback", args=[record.pk, item_id])


class TestFeedback:
    def test_a_thumb_and_a_note_are_kept_and_shown_on_the_item(self, record: SessionRecord, support: Client) -> None:
        answer = support.post(feedback(record), {"value": "-1", "note": "Ask for a <b>number</b> first."}, follow=True)
        assert answer.redirect_chain[-1][0] == reverse("sessions:item", args=[record.pk, "1"])
        signal = Signal.objects.get()
        assert (signal.kind, signal.value, signal.item_id) == ("feedback", -1, "1")
        assert (signal.record_id, signal.subject) == (record.pk, record.subject)
        assert "Ask for a &lt;b&gt;number&lt;/b&gt; first." in answer.text
        event = AuditEvent.objects.get(type="feedback.given")
        assert (event.object_ref, event.counters) == (record.pk, {"up": 0, "down": 1, "with_note": 1})

    def test_it_stands_below_the_answer_in_the_timeline(self, record: SessionRecord, support: Client) -> None:
        url = record.get_absolute_url()
        assert support.get(url).text.count('aria-label="Feedback on item') == 1, (
            "for the answer, and not for what the user said"
        )
        answer = support.get(feedback(record, "2"), headers={"HX-Request": "true"})
        assert "data-holds-refresh" in answer.text
        answer = support.post(
            feedback(record, "2"), {"value": "-1", "note": "Be kind."}, headers={"HX-Request": "true"}
        )
        assert (answer.status_code, "Be kind." in answer.text, "Undo" in answer.text) == (200, True, True)
        other = signed_in(person("reviewer"))
        assert "Be kind." in other.get(url).text
        assert "/withdraw/" not in other.get(url).text
        answer = support.post(feedback(record, "2"), {"note": " "}, headers={"HX-Request": "true"})
        assert (answer.status_code, "Choose right or wrong" in answer.text) == (422, True)

    def test_ratings_of_agents_stand_there_too(self, record: SessionRecord, support: Client) -> None:
        given = {"record_id": record.pk, "subject": record.subject, "session_id": record.session_id, "item_id": "2"}
        Signal.objects.create(kind="rating", value=2, text="Too slow, mail me@example.com", **given)
        Signal.objects.create(kind="outcome", value=1, **given)
        page = support.get(record.get_absolute_url()).text
        assert "2 of 5" in page
        assert "Too slow" in page
        assert "me@example.com" not in page
        assert "Undo" not in page.partition('class="tl-feedback"')[2].partition("</li>")[0]

    def test_another_opinion_replaces_the_earlier_one_of_the_same_person(
        self, record: SessionRecord, support: Client
    ) -> None:
        support.post(feedback(record), {"value": "1"})
        Signal.objects.create(record_id=record.pk, item_id="1", kind="feedback", value=1, given_by=person("reviewer"))
        support.post(feedback(record), {"value": "-1", "note": "No."})
        assert list(Signal.objects.order_by("value").values_list("value", "text")) == [(-1, "No."), (1, "")]
        event = AuditEvent.objects.filter(type="feedback.given").latest("number")
        assert event.counters == {"up": 0, "down": 1, "with_note": 1, "replaced": 1}

    def test_only_the_author_withdraws_it(self, record: SessionRecord, support: Client) -> None:
        support.post(feedback(record), {"value": "-1", "note": "No."})
        withdraw = reverse("memories:withdraw-feedback", args=[Signal.objects.get().pk])
        assert signed_in(person("reviewer")).post(withdraw).status_code == 404
        assert support.get(withdraw).status_code == 405
        page = support.post(withdraw, follow=True)
        assert "Your feedback was removed." in page.text
        assert not Signal.objects.exists()
        event = AuditEvent.objects.get(type="feedback.withdrawn")
        assert (event.object_ref, event.subject_ref, event.counters) == (record.pk, record.subject_id, {})

    def test_on_hold_it_stays(self, record: SessionRecord, support: Client) -> None:
        support.post(feedback(record), {"value": "-1"})
        make_hold(record, by=person("compliance"))
        withdraw = reverse("memories:withdraw-feedback", args=[Signal.objects.get().pk])
        assert support.post(withdraw).status_code == 409
        assert support.post(feedback(record), {"value": "1"}).status_code == 409
        assert Signal.objects.get().value == -1

    def test_a_thumbs_down_with_a_note_is_proposed_with_the_note_as_evidence(
        self, record: SessionRecord, support: Client
    ) -> None:
        support.post(feedback(record, "2"), {"value": "-1", "note": "The customer prefers a call."})
        distil_session(record)
        evidence = Evidence.objects.get(quote__contains="prefers a call")
        assert (evidence.signal, evidence.item_id, evidence.speaker) == (Signal.objects.get(), "2", "operator")

    def test_secrets_in_a_note_are_not_kept(self, record: SessionRecord, support: Client) -> None:
        key = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9bC1dE3fG5hJ7k"
        support.post(feedback(record), {"note": f"They typed {key}"})
        assert key not in Signal.objects.get().text

    @pytest.mark.parametrize("sent", [{}, {"note": "  "}, {"value": "7"}, {"note": "x" * 2001}])
    def test_nonsense_is_told_and_nothing_is_kept(
        self, record: SessionRecord, support: Client, sent: dict[str, str]
    ) -> None:
        assert support.post(feedback(record), sent).status_code == 422
        assert not Signal.objects.exists()

    def test_what_is_not_there_takes_none(self, record: SessionRecord, support: Client) -> None:
        assert support.post(feedback(record, "999"), {"value": "1"}).status_code == 404
        SessionRecord.objects.update(is_sensitive=True)
        assert support.post(feedback(record), {"value": "1"}).status_code in (302, 403)
        assert not Signal.objects.exists()

    def test_who_is_not_learned_from_gets_none(self, record: SessionRecord, support: Client) -> None:
        LearningStop.objects.create(subject_id=str(record.subject_id))
        answer = support.post(feedback(record), {"value": "1"})
        assert (answer.status_code, "Learning is stopped for this subject." in answer.text) == (409, True)


class TestSwitch:
    @pytest.fixture
    def subject(self, db: None) -> Subject:
        return make_subject("whom")

    def test_stops_and_allows_from_the_page_of_the_subject(self, subject: Subject) -> None:
        support = signed_in(person("support"))
        page = support.post(reverse("memories:stop-learning", args=[subject.pk]), follow=True)
        assert "Allow learning again" in page.text
        with pytest.raises(NothingLearnedHere), transaction.atomic():
            propose_memory("Likes tea.", kind="fact", subject=subject)
        page = support.post(reverse("memories:allow-learning", args=[subject.pk]), follow=True)
        assert "Stop learning" in page.text
        assert propose_memory("Likes tea.", kind="fact", subject=subject).pk
        types = AuditEvent.objects.filter(subject_ref=subject.pk).values_list("type", flat=True)
        assert {"learning.stopped", "learning.allowed"} <= set(types)

    def test_twice_is_once(self, subject: Subject) -> None:
        operator = person("support")
        assert [stop_learning(subject, by=operator), stop_learning(subject, by=operator)] == [True, False]
        assert [allow_learning(subject, by=operator), allow_learning(subject, by=operator)] == [True, False]
        assert AuditEvent.objects.filter(type__startswith="learning.", actor_kind="person").count() == 2

    def test_holds_for_all_ids_of_a_subject_and_is_taken_back_for_all(self, subject: Subject) -> None:
        operator, other = person("support"), make_subject()
        stop_learning(other, by=operator)
        other.merged_into = subject
        other.save()
        assert is_stopped(subject)
        allow_learning(other, by=operator)
        assert not is_stopped(subject)

    def test_the_page_counts_what_is_recalled_and_what_waits(self, subject: Subject) -> None:
        approved("Drinks tea.", subject=subject), proposed("Drinks milk.", subject=subject)
        page = signed_in(person("reviewer")).get(subject.get_absolute_url())
        (panel,) = page.context["panels"]
        assert (panel.shown["approved"], panel.shown["waiting"]) == (1, 1)
        assert f"{reverse('memories:list')}?subject={subject.pk}" in page.text
        assert "Stop learning" not in page.text

    def test_who_may_not_read_memories_sees_no_count(self, subject: Subject) -> None:
        page = signed_in(person("administrator")).get(subject.get_absolute_url())
        assert page.context["panels"] == []


def test_a_timeline_says_that_something_was_learned_from_it(record: SessionRecord, support: Client) -> None:
    assert "Learned from this session" not in support.get(record.get_absolute_url()).text
    memory = approved("Drinks tea.", subject=record.subject)
    Evidence.objects.create(memory=memory, record_id=record.pk, quote="tea")
    assert reverse("memories:learned-from", args=[record.pk]) in support.get(record.get_absolute_url()).text


def test_a_place_shows_what_its_fillers_answer() -> None:
    place = ExtensionPoint[[int], Panel]()
    place(lambda number: Panel(f"{number}.html", {}) if number else None)
    assert place.answers(0) == []
    assert place.answers(7) == [Panel("7.html", {})]


def test_a_subjects_page_leads_to_the_summary_that_agents_read(record: SessionRecord, support: Client) -> None:
    assert record.subject
    about: dict[str, Any] = {"subject": record.subject, "kind": "summary", "key": SUBJECT_SUMMARY}
    proposed("Waits for a parcel.", **about)
    page = record.subject.get_absolute_url()
    assert "summary that agents read" not in support.get(page).text
    summary = approved("Waited for a parcel.", **about)
    assert summary.get_absolute_url() in support.get(page).text
