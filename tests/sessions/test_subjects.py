"""Who a subject is: its ids, and merging."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from sessions_app.models import SessionRecord, Subject, SubjectAlias, SubjectKind, SubjectSource
from sessions_app.services import sessions, subjects
from tests.builders import make_session, make_subject
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.people import person

USER, PROJECT = SubjectKind.USER, SubjectKind.PROJECT

pytestmark = pytest.mark.django_db


@pytest.fixture
def support(db: None) -> User:
    return person("support")


def sessions_of(subject: Subject) -> set[str]:
    return set(SessionRecord.objects.about(subject).values_list("session_id", flat=True))


def keys_of(subject: Subject) -> list[str]:
    return [alias.key for alias in subject.aliases.all()]


class TestKeys:
    def test_first_sight_of_an_id_makes_its_subject(self) -> None:
        subject = subjects.subject_for_key(USER, "cust_1")
        assert subject == subjects.subject_for_key(USER, "cust_1")
        assert keys_of(subject) == ["cust_1"]

    def test_an_id_knows_who_named_it(self, support: User) -> None:
        subject = subjects.subject_for_key(USER, "kiosk", SubjectSource.PATTERN)
        subjects.subject_for_key(USER, "kiosk", SubjectSource.IMPORT)
        subjects.add_alias(subject, kind=USER, key="L-77120", by=support)
        with connection.cursor() as cursor:
            cursor.execute("SELECT memadmin_subject_for('user', 'L-77120'), memadmin_subject_for('user', 'cust_1')")
        assert dict(SubjectAlias.objects.values_list("key", "source")) == {
            "kiosk": "pattern",
            "L-77120": "operator",
            "cust_1": "client",
        }

    def test_the_same_id_of_another_kind_is_another_subject(self) -> None:
        assert subjects.subject_for_key(USER, "7") != subjects.subject_for_key(PROJECT, "7")

    def test_ids_that_differ_in_case_are_different(self) -> None:
        assert subjects.subject_for_key(USER, "cust_a") != subjects.subject_for_key(USER, "Cust_A")

    @pytest.mark.parametrize("key", ["", "a" * 513, "a\0b"])
    def test_an_id_that_cannot_be_stored_is_refused(self, key: str) -> None:
        with pytest.raises(subjects.BadKey, match="1 to 512 characters"):
            subjects.subject_for_key(USER, key)
        assert not Subject.objects.exists()

    def test_an_unknown_id_is_said_to_be_unknown(self) -> None:
        with pytest.raises(subjects.UnknownKey, match="There is no subject with the user ID nobody"):
            subjects.known_subject(USER, "nobody")

    def test_a_second_id_finds_the_same_subject(self, support: User) -> None:
        subject = make_subject("cust_1")
        subjects.add_alias(subject, kind=USER, key="L-77120", by=support)
        assert subjects.known_subject(USER, "L-77120") == subject

    def test_an_id_names_one_subject(self, support: User) -> None:
        owner = make_subject("cust_1")
        with pytest.raises(subjects.AliasTaken, match="already belongs to another subject") as refusal:
            subjects.add_alias(make_subject("cust_2"), kind=USER, key="cust_1", by=support)
        assert refusal.value.subject == owner

    def test_the_only_id_stays(self, support: User) -> None:
        subject = make_subject("cust_1")
        with pytest.raises(subjects.LastAlias):
            subjects.remove_alias(subject.aliases.get(), by=support)
        assert keys_of(subject) == ["cust_1"]

    def test_without_the_primary_id_the_next_one_takes_its_place(self, support: User) -> None:
        subject = make_subject("cust_1")
        subjects.add_alias(subject, kind=USER, key="L-77120", by=support)
        subjects.remove_alias(subject.aliases.get(key="cust_1"), by=support)
        assert list(subject.aliases.values_list("key", "is_primary")) == [("L-77120", True)]


class TestMerging:
    def test_sessions_of_both_are_found_and_nothing_moved(self, support: User) -> None:
        one, other = make_subject(), make_subject()
        make_session("a", subject=one)
        make_session("b", subject=other)
        assert subjects.merge_subjects(one, other, by=support) == other
        assert sessions_of(other) == {"a", "b"}
        assert SessionRecord.objects.get(session_id="a").subject == one

    def test_undoing_gives_each_their_own_back(self, support: User) -> None:
        one, other = make_subject("cust_1"), make_subject("cust_2")
        make_session("a", subject=one)
        subjects.merge_subjects(one, other, by=support)
        subjects.undo_merge(one, by=support)
        assert (sessions_of(one), sessions_of(other)) == ({"a"}, set())
        assert (keys_of(one), keys_of(other)) == (["cust_1"], ["cust_2"])

    def test_merging_into_a_merged_one_follows_to_the_one_that_stands(self, support: User) -> None:
        one, other, third = make_subject(), make_subject(), make_subject()
        subjects.merge_subjects(other, third, by=support)
        assert subjects.merge_subjects(one, other, by=support) == third
        one.refresh_from_db()
        assert one.merged_into == third

    def test_a_chain_of_merges_is_found_whole(self, support: User) -> None:
        one, other, third = make_subject(), make_subject(), make_subject()
        make_session("a", subject=one)
        subjects.merge_subjects(one, other, by=support)
        subjects.merge_subjects(other, third, by=support)
        assert sessions_of(third) == {"a"}

    def test_a_circle_is_refused(self, support: User) -> None:
        one, other = make_subject(), make_subject()
        subjects.merge_subjects(one, other, by=support)
        with pytest.raises(subjects.MergeIntoItself, match="already belong to the same subject"):
            subjects.merge_subjects(other, one, by=support)

    def test_a_merged_subject_is_not_merged_again(self, support: User) -> None:
        one, other, third = make_subject(), make_subject(), make_subject()
        subjects.merge_subjects(one, other, by=support)
        with pytest.raises(subjects.AlreadyMerged):
            subjects.merge_subjects(one, third, by=support)

    def test_undoing_twice_is_said(self, support: User) -> None:
        with pytest.raises(subjects.NotMerged):
            subjects.undo_merge(make_subject(), by=support)


@pytest.mark.django_db(transaction=True)
class TestTwoAtOnce:
    def test_two_who_see_a_new_id_at_once_get_the_same_subject(self) -> None:
        with somebody_else() as start:
            with transaction.atomic():
                subject = subjects.subject_for_key(USER, "cust_1")
                other = start(lambda: subjects.subject_for_key(USER, "cust_1"))
                wait_until_blocked(other)
            assert other.result() == subject
        assert Subject.objects.count() == 1

    def test_the_second_to_add_an_id_learns_whose_it_is(self) -> None:
        support = person("support")
        one, other = make_subject(), make_subject()
        with somebody_else() as start:
            with transaction.atomic():
                subjects.add_alias(one, kind=USER, key="L-1", by=support)
                second = start(lambda: subjects.add_alias(other, kind=USER, key="L-1", by=support))
                wait_until_blocked(second)
            with pytest.raises(subjects.AliasTaken) as refusal:
                second.result()
        assert refusal.value.subject == one

    def test_two_who_remove_the_last_two_ids_leave_one(self) -> None:
        support = person("support")
        subject = make_subject("cust_1")
        added = subjects.add_alias(subject, kind=USER, key="L-1", by=support)
        with somebody_else() as start:
            with transaction.atomic():
                subjects.remove_alias(added, by=support)
                primary = subject.aliases.get()
                second = start(lambda: subjects.remove_alias(primary, by=support))
                wait_until_blocked(second)
            with pytest.raises(subjects.LastAlias):
                second.result()
        assert keys_of(subject) == ["cust_1"]

    def test_merging_each_into_the_other_makes_no_circle(self) -> None:
        support = person("support")
        one, other = make_subject(), make_subject()
        with somebody_else() as start:
            with transaction.atomic():
                subjects.merge_subjects(one, other, by=support)
                second = start(lambda: subjects.merge_subjects(other, one, by=support))
                wait_until_blocked(second)
            with pytest.raises(subjects.MergeIntoItself):
                second.result()
        assert SubjectAlias.objects.filter(subject__merged_into__isnull=True).count() == 1

    def test_a_merge_into_one_that_is_being_merged_lands_where_that_went(self) -> None:
        support = person("support")
        one, other, third = make_subject(), make_subject(), make_subject()
        with somebody_else() as start:
            with transaction.atomic():
                subjects.merge_subjects(other, third, by=support)
                second = start(lambda: subjects.merge_subjects(one, other, by=support))
                wait_until_blocked(second)
            assert second.result() == third
        one.refresh_from_db()
        assert one.merged_into == third

    def test_a_session_attached_during_a_merge_is_found_on_the_remaining_subject(self) -> None:
        support = person("support")
        one, other, record = make_subject(), make_subject(), make_session("a")
        with somebody_else() as start, transaction.atomic():
            subjects.merge_subjects(one, other, by=support)
            # Does not see the merge yet, and does not wait for it either.
            assert start(lambda: sessions.attach_sessions([record], one, by=support)).result() == 1
        assert sessions_of(other) == {"a"}
