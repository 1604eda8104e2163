"""What people note of sessions: whose they are, and labels."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.timezone import now

from sessions_app.models import SessionRecord, Subject
from sessions_app.services import sessions, subjects
from tests.builders import make_session, make_subject
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.people import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def support(db: None) -> User:
    return person("support")


def sessions_of(subject: Subject) -> set[str]:
    return set(SessionRecord.objects.about(subject).values_list("session_id", flat=True))


class TestAttaching:
    def test_an_operator_says_whose_sessions_these_are(self, support: User) -> None:
        records = [make_session("b"), make_session("a")]
        subject = make_subject()
        assert sessions.attach_sessions(records, subject, by=support) == 2
        assert sessions_of(subject) == {"a", "b"}
        assert set(SessionRecord.objects.values_list("subject_source", flat=True)) == {"operator"}

    def test_an_erased_session_is_nobodys(self, support: User) -> None:
        records = [make_session("a"), make_session("b", erased_at=now())]
        assert sessions.attach_sessions(records, make_subject(), by=support) == 1
        assert SessionRecord.objects.get(session_id="b").subject is None

    def test_attaching_to_a_merged_subject_follows_it(self, support: User) -> None:
        merged, standing = make_subject(), make_subject()
        subjects.merge_subjects(merged, standing, by=support)
        merged.refresh_from_db()
        sessions.attach_sessions([make_session("a")], merged, by=support)
        assert SessionRecord.objects.get().subject == standing

    def test_a_detached_session_is_marked_as_decided_by_hand(self, support: User) -> None:
        record = make_session(subject=make_subject(), subject_source="pattern")
        sessions.detach_sessions([record], by=support)
        record.refresh_from_db()
        assert (record.subject, record.subject_source) == (None, "operator")


class TestLabels:
    def test_a_label_is_put_on_once(self, support: User) -> None:
        records = [make_session("a", labels=["vip"]), make_session("b")]
        assert sessions.label_sessions(records, "vip", by=support) == 1
        assert sessions.label_sessions(records, "late", by=support) == 2
        labels = SessionRecord.objects.order_by("session_id").values_list("labels", flat=True)
        assert list(labels) == [["vip", "late"], ["vip", "late"]]

    def test_two_people_with_the_same_idea_leave_it_once(self, support: User) -> None:
        as_both_saw_it = make_session()
        sessions.label_sessions([as_both_saw_it], "vip", by=support)
        sessions.label_sessions([as_both_saw_it], "vip", by=support)
        assert SessionRecord.objects.get().labels == ["vip"]

    def test_a_label_comes_off(self, support: User) -> None:
        record = make_session(labels=["vip", "late"])
        assert sessions.unlabel_sessions([record], "vip", by=support) == 1
        assert SessionRecord.objects.get().labels == ["late"]

    @pytest.mark.parametrize("label", ["", "x" * 51, "a\0b"])
    def test_a_label_that_cannot_be_stored_is_refused(self, support: User, label: str) -> None:
        with pytest.raises(sessions.BadLabel, match="1 to 50 characters"):
            sessions.label_sessions([make_session()], label, by=support)


@pytest.mark.django_db(transaction=True)
class TestTwoAtOnce:
    def test_two_who_attach_the_same_sessions_in_another_order_both_succeed(self) -> None:
        support = person("support")
        one, other = make_subject(), make_subject()
        records = [make_session("a"), make_session("b")]
        with somebody_else() as start:
            with transaction.atomic():
                sessions.attach_sessions(records[:1], one, by=support)
                second = start(lambda: sessions.attach_sessions(records[::-1], other, by=support))
                wait_until_blocked(second)
                # Would be a deadlock if the other had begun with the last.
                sessions.attach_sessions(records[1:], one, by=support)
            assert second.result() == 2
        assert sessions_of(other) == {"a", "b"}
