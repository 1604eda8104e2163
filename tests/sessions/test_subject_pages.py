"""The pages of subjects: who they are, where their sessions are, and what support staff can do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.models import SessionRecord, SessionStore, Subject, SubjectKind
from sessions_app.services import subjects
from sessions_app.stores.base import SessionPreview, StoreUnavailable
from tests.agents import add_items
from tests.builders import make_session, make_store, make_subject
from tests.people import person
from tests.sessions.stores import link, shown, stores

__all__ = ["stores"]

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)

pytestmark = pytest.mark.usefixtures("stores")


def away(store: object, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
    raise StoreUnavailable("It does not answer.")


def address(subject: Subject, verb: str = "subject", *args: int) -> str:
    return reverse(f"sessions:{verb}", args=[subject.pk, *args])


class TestList:
    def test_the_newest_subjects_come_first(self, operator: Client) -> None:
        make_subject("cust_1")
        Subject.objects.update(created_at=NOON)
        second = make_subject("cust_2")
        subjects.add_alias(second, kind=SubjectKind.USER, key="L-77120", by=person("support", "reviewer"))
        text = operator.get(reverse("sessions:subjects")).text
        assert text.index("cust_2") < text.index("L-77120") < text.index("cust_1")

    def test_a_merged_subject_is_found_under_the_one_that_stands(self, operator: Client) -> None:
        one, other = make_subject("cust_1"), make_subject("cust_2")
        subjects.merge_subjects(one, other, by=person("support", "reviewer"))
        page = operator.get(reverse("sessions:subjects"))
        assert page.context["page"].rows == [other]

    def test_pages_and_their_cost_do_not_grow(self, operator: Client) -> None:
        url = reverse("sessions:subjects")
        operator.get(url)

        def queries_for(count: int) -> int:
            for _ in range(count):
                make_subject()
            with CaptureQueriesContext(connection) as queries:
                assert len(operator.get(url).context["page"].rows) == min(count, 50)
            return len(queries)

        assert queries_for(10) == queries_for(60) == 13
        page = operator.get(url)
        rest = operator.get(url + link(page, "Older").removeprefix(url))
        assert len(rest.context["page"].rows) == 20

    def test_a_page_link_that_was_tampered_with_leads_to_the_first_page(self, operator: Client) -> None:
        page = operator.get(reverse("sessions:subjects"), {"cursor": "made-up"})
        assert page.status_code == 400
        assert link(page, "Go to the first page") == reverse("sessions:subjects") + "?view=all"

    def test_without_any_the_page_says_what_makes_one(self, operator: Client) -> None:
        assert "No subjects yet" in operator.get(reverse("sessions:subjects")).text

    def test_the_fragment_is_the_part_of_the_page(self, operator: Client) -> None:
        make_subject()
        fragment = operator.get(reverse("sessions:subjects"), headers={"HX-Request": "true"}).text
        assert "<html" not in fragment
        page = operator.get(reverse("sessions:subjects")).text
        token = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')
        assert token.sub("", fragment.strip()) in token.sub("", page)


class TestPage:
    def test_support_sees_all_sessions_of_a_person(self, kept_main_store: SessionStore, operator: Client) -> None:
        add_items("customer_1:ticket_1", "The voucher code says invalid")
        add_items("other", "Somebody else")
        subject = make_subject("cust_1")
        SessionRecord.objects.filter(session_id="customer_1:ticket_1").update(subject=subject)
        page = operator.get(address(subject))
        assert shown(page) == ["customer_1:ticket_1"]
        assert "cust_1" in page.text

    def test_stores_are_counted(self, operator: Client) -> None:
        subject = make_subject()
        for number in range(3):
            make_session(subject=subject, store=make_store(f"store-{number % 2}"))
        holdings = operator.get(address(subject)).context["holdings"]
        assert [(each.store.name, each.session_count, each.items) for each in holdings.by_store] == [
            ("store-0", 2, "6"),
            ("store-1", 1, "3"),
        ]

    def test_items_are_counted_as_far_as_the_page_tells(self, stores: dict[str, Any], operator: Client) -> None:
        subject = make_subject()
        for number in range(26):
            make_session(f"s{number:02}", subject=subject, last_activity_at=NOON - timedelta(minutes=number))

        def items() -> str:
            (held,) = operator.get(address(subject)).context["holdings"].by_store
            return str(held.items)

        assert items() == "75+"  # one of the sessions is on the next page
        SessionRecord.objects.filter(session_id="s25").delete()
        assert items() == "75"
        SessionRecord.objects.filter(session_id="s24").update(is_sensitive=True)
        assert items() == "72+"  # what is locked is not asked for
        stores["main"] = type(
            "Long", (), {"previews": lambda self, ids: {each: SessionPreview(1001) for each in ids}}
        )()
        SessionRecord.objects.exclude(session_id="s00").delete()
        assert items() == "1,000+"
        stores["main"] = type("Away", (), {"previews": away})()
        assert items() == "?"

    def test_of_very_many_only_the_newest_are_counted_and_each_store_may_have_more(
        self, operator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sessions_app.views.subjects.COUNT_CAP", 2)
        subject = make_subject()
        for number in range(3):
            make_session(
                subject=subject, store=make_store(f"store-{number}"), last_activity_at=NOON - timedelta(number)
            )
        text = operator.get(address(subject)).text
        assert re.findall(r"<td>(store-\d)</td>\s*<td class=\"num\">([^<]*)</td>", text) == [
            ("store-0", "1+"),
            ("store-1", "1+"),
        ]

    def test_sessions_are_paged_by_key(self, operator: Client) -> None:
        subject = make_subject()
        for number in range(30):
            make_session(f"s{number:02}", subject=subject, last_activity_at=NOON - timedelta(minutes=number))
        page = operator.get(address(subject))
        assert shown(page) == [f"s{number:02}" for number in range(25)]
        assert shown(operator.get(link(page, "Older"))) == [f"s{number:02}" for number in range(25, 30)]

    def test_ten_sessions_and_a_hundred_cost_the_same(self, operator: Client) -> None:
        subject = make_subject()
        operator.get(address(subject))

        def queries_for(count: int) -> int:
            for _ in range(count):
                make_session(subject=subject)
            with CaptureQueriesContext(connection) as queries:
                operator.get(address(subject))
            return len(queries)

        assert queries_for(10) == queries_for(90)

    def test_who_reads_no_content_sees_whom_it_is_about_and_no_session(self, administrator: Client) -> None:
        subject = make_subject("cust_1")
        make_session(subject=subject, ticket="T-90417")
        text = administrator.get(address(subject)).text
        assert "cust_1" in text
        assert "Your role cannot read content" in text
        for content in ("Words of", "T-90417", "Stored in", "Merge"):
            assert content not in text

    def test_the_address_of_a_merged_subject_leads_to_where_it_went(self, operator: Client) -> None:
        one, other = make_subject("cust_1"), make_subject("cust_2")
        subjects.merge_subjects(one, other, by=person("support", "reviewer"))
        page: Any = operator.get(address(one), follow=True)
        assert page.redirect_chain == [(address(other), 302)]
        assert "The requested subject was merged into this one." in page.text

    def test_hostile_ids_are_only_text(self, operator: Client) -> None:
        text = operator.get(address(make_subject("<script>alert(1)</script>\u202e"))).text
        assert "<script>alert" not in text
        assert "\u202e" not in text

    def test_a_page_link_of_another_subject_is_refused(self, operator: Client) -> None:
        one, other = make_subject(), make_subject()
        for subject in (one, other):
            for _ in range(26):
                make_session(subject=subject)
        cursor = operator.get(address(one)).context["page"].older
        page = operator.get(address(other), {"cursor": cursor})
        assert page.status_code == 400
        assert link(page, "Go to the first page") == address(other) + "?view=all"

    def test_the_fragment_is_the_part_of_the_page(self, operator: Client) -> None:
        subject = make_subject()
        make_session(subject=subject)
        fragment = operator.get(address(subject), headers={"HX-Request": "true"}).text
        csrf = r'name="csrfmiddlewaretoken" value="[^"]*"'
        assert "<html" not in fragment
        assert re.sub(csrf, "", fragment.strip()) in re.sub(csrf, "", operator.get(address(subject)).text)


class TestVerbs:
    def test_an_id_is_added_and_removed(self, operator: Client) -> None:
        subject = make_subject("cust_1")
        page = operator.post(address(subject, "alias-add"), {"kind": "user", "key": "L-77120"}, follow=True)
        assert "The ID was added." in page.text
        assert re.search(r"L-77120</span>.*?attached by hand", page.text, re.DOTALL)
        added = subject.aliases.get(key="L-77120")
        page = operator.post(address(subject, "alias-remove", added.pk), follow=True)
        assert "The ID was removed." in page.text
        assert [alias.key for alias in subject.aliases.all()] == ["cust_1"]

    def test_an_id_that_names_somebody_else_leads_to_them(self, operator: Client) -> None:
        owner = make_subject("cust_1")
        answer = operator.post(address(make_subject(), "alias-add"), {"kind": "user", "key": "cust_1"})
        assert answer.status_code == 409
        assert "already belongs to another subject" in answer.text
        assert link(answer, "Open that subject") == address(owner)

    def test_the_only_id_stays(self, operator: Client) -> None:
        subject = make_subject()
        answer = operator.post(address(subject, "alias-remove", subject.aliases.get().pk))
        assert answer.status_code == 409
        assert "the only ID" in answer.text

    def test_the_id_of_another_subject_cannot_be_removed_here(self, operator: Client) -> None:
        subject, other = make_subject(), make_subject()
        answer = operator.post(address(subject, "alias-remove", other.aliases.get().pk))
        assert answer.status_code == 404

    def test_two_subjects_become_one_and_two_again(self, operator: Client) -> None:
        one, other = make_subject("cust_1"), make_subject("cust_2")
        make_session("a", subject=one)
        page = operator.post(address(other, "subject-merge"), {"kind": "user", "key": "cust_1"}, follow=True)
        assert shown(page) == ["a"]
        assert "merged into this subject" in page.text
        answer: Any = operator.post(address(one, "subject-undo-merge"), {"next": address(other)})
        assert answer.url == address(other)
        assert shown(operator.get(address(other))) == []
        assert shown(operator.get(address(one))) == ["a"]

    @pytest.mark.parametrize(
        ("key", "status", "sentence"),
        [
            ("nobody", 422, "There is no subject with the user ID nobody."),
            ("", 422, "Enter an ID."),
            ("cust_1", 409, "Both IDs already belong to the same subject."),
        ],
    )
    def test_a_merge_that_cannot_be_is_explained(self, operator: Client, key: str, status: int, sentence: str) -> None:
        subject = make_subject("cust_1")
        answer = operator.post(address(subject, "subject-merge"), {"kind": "user", "key": key})
        assert (answer.status_code, sentence in answer.text) == (status, True)

    def test_the_second_to_undo_a_merge_learns_it_was_undone(self, operator: Client) -> None:
        answer = operator.post(address(make_subject(), "subject-undo-merge"))
        assert answer.status_code == 409
        assert "the merge may already have been undone" in answer.text


VERBS = ["subject-merge", "subject-undo-merge", "alias-add"]


class TestAccess:
    def test_an_outsider_sees_no_subject(self, outsider: Client) -> None:
        assert outsider.get(reverse("sessions:subjects")).status_code == 403
        assert outsider.get(address(make_subject())).status_code == 403

    def test_an_unknown_subject_is_not_found(self, operator: Client) -> None:
        assert operator.get(reverse("sessions:subject", args=[uuid4()])).status_code == 404

    @pytest.mark.parametrize("verb", VERBS)
    def test_reading_is_not_merging(self, reviewer: Client, administrator: Client, verb: str) -> None:
        subject = make_subject()
        assert reviewer.post(address(subject, verb)).status_code == 403
        assert administrator.post(address(subject, verb)).status_code == 403

    @pytest.mark.parametrize("verb", VERBS)
    def test_verbs_take_no_get(self, operator: Client, verb: str) -> None:
        assert operator.get(address(make_subject(), verb)).status_code == 405

    def test_reading_pages_take_no_post(self, operator: Client) -> None:
        assert operator.post(reverse("sessions:subjects")).status_code == 405
        assert operator.post(address(make_subject())).status_code == 405

    def test_no_cookie_carries_the_id_of_a_person(self, operator: Client) -> None:
        """Sentences wait in the session for the next page, not in a cookie that anybody can decode."""
        subject = make_subject("cust_1")
        answer = operator.post(address(subject, "alias-add"), {"kind": "user", "key": "ann@example.com"})
        assert set(answer.cookies) <= {"sessionid", "csrftoken"}
        assert "The ID was added" in operator.get(address(subject)).text
