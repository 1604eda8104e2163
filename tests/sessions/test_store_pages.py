"""The pages of stores: how they are, and the patterns by which sessions find their subject."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore
from sessions_app.services.health_checks import check_stores
from sessions_app.stores import backend_for
from tests.agents import add_items, attach_main_store, drop_agent_tables
from tests.builders import make_session, make_store
from tests.sessions.stores import link

SUPPORT = "customer_{subject}:ticket_{ticket}"
FIELDS = {"name": "support", "pattern": SUPPORT, "subject_kind": "user"}

pytestmark = pytest.mark.django_db


def address(verb: str, *args: Any) -> str:
    return reverse(f"sessions:{verb}", args=args)


@pytest.fixture
def main(db: None) -> SessionStore:
    return make_store()


def add_pattern(store: SessionStore, name: str, text: str = SUPPORT) -> SessionIdPattern:
    position = SessionIdPattern.objects.of(store).count()
    return SessionIdPattern.objects.create(store=store, name=name, pattern=text, position=position)


class TestHealth:
    def test_a_store_that_is_well_says_so(self, kept_main_store: SessionStore, operator: Client) -> None:
        add_items("a", "Hello")
        for page in (operator.get(address("stores")), operator.get(address("store", "main"))):
            assert "healthy" in page.text
        assert "Registry and fence triggers in place" in page.text

    def test_writes_that_the_fence_discarded_are_counted(self, agent_tables: None, operator: Client) -> None:
        attach_main_store(mode=SessionStore.FenceMode.DROP)
        add_items("a", "Hello")
        assert "Discarded" not in operator.get(address("store", "main")).text
        backend_for(SessionStore.objects.get()).erase_session("a")
        add_items("a", "Are you still there?")
        assert "1 write to erased sessions" in operator.get(address("store", "main")).text

    def test_a_store_without_tables_is_unreachable_and_not_counted(
        self, kept_main_store: SessionStore, operator: Client
    ) -> None:
        drop_agent_tables()
        assert check_stores() == 1
        for page in (operator.get(address("stores")), operator.get(address("store", "main"))):
            assert page.status_code == 200
            assert "unreachable" in page.text
            assert "?" in page.text
            assert "Reachable in" not in page.text

    def test_without_a_store_the_page_says_how_to_attach_one(self, operator: Client) -> None:
        assert "attach_store main --dry-run" in operator.get(address("stores")).text


class TestPatterns:
    @pytest.mark.parametrize(("wanted", "status"), [("9" * 20, 404), ("0", 404), ("1" * 5_000, 200), ("-1", 200)])
    def test_a_number_in_the_address_that_is_none_of_its_patterns(
        self, main: SessionStore, administrator: Client, wanted: str, status: int
    ) -> None:
        assert administrator.get(f"{address('store', main)}?edit={wanted}").status_code == status

    def test_an_administrator_tries_a_pattern_and_nothing_is_saved(
        self, main: SessionStore, administrator: Client
    ) -> None:
        make_session("customer_48213:ticket_T-90417")
        make_session("<b>kiosk</b>")
        page = administrator.post(address("pattern-try", "main"), FIELDS)
        assert page.status_code == 200
        assert page.context["trial"].match_count == 1
        for words in ("48213", "T-90417", "&lt;b&gt;kiosk", "does not match", "Nothing was saved"):
            assert words in page.text
        assert SUPPORT in page.text  # still in the field
        assert not SessionIdPattern.objects.exists()

    def test_the_page_tells_how_much_each_pattern_matches(
        self, main: SessionStore, operator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "Matches" not in operator.get(address("store", "main")).text
        add_pattern(main, "support")
        add_pattern(main, "never first", "customer_{subject}")
        for number in range(3):
            make_session(f"customer_{number}:ticket_1")
        make_session("kiosk")
        make_session("customer_4:ticket_1", erased_at=now())

        def matches() -> list[str]:
            text = operator.get(address("store", "main")).text
            return re.findall(r'<td class="num[^"]*">([^<]*)</td>', text[text.index('id="patterns"') :])

        assert matches() == ["3", "0", "1"]
        monkeypatch.setattr("sessions_app.services.patterns.SHARES_SESSIONS", 2)
        assert sum(map(int, matches())) == 2

    def test_a_pattern_needs_no_name_to_be_tried(self, main: SessionStore, administrator: Client) -> None:
        assert administrator.post(address("pattern-try", "main"), {"pattern": SUPPORT}).context["trial"]

    @pytest.mark.parametrize("verb", ["pattern-try", "pattern-add"])
    def test_what_is_wrong_with_a_pattern_stands_at_its_field(
        self, main: SessionStore, administrator: Client, verb: str
    ) -> None:
        page = administrator.post(address(verb, "main"), FIELDS | {"pattern": "{subject}{ticket}"})
        assert page.status_code == 422
        assert "{subject} and {ticket} are adjacent" in page.text
        assert not SessionIdPattern.objects.exists()

    def test_an_administrator_saves_a_pattern(self, main: SessionStore, administrator: Client) -> None:
        page = administrator.post(address("pattern-add", "main"), FIELDS, follow=True)
        assert SUPPORT in page.text
        saved = SessionIdPattern.objects.get()
        assert (saved.store, saved.name, saved.pattern, saved.subject_kind) == (main, "support", SUPPORT, "user")

    def test_a_name_that_is_taken_is_said(self, main: SessionStore, administrator: Client) -> None:
        add_pattern(main, "support")
        page = administrator.post(address("pattern-add", "main"), FIELDS)
        assert page.status_code == 422
        assert "already has a pattern named “support”" in page.text

    def test_an_administrator_changes_a_pattern(self, main: SessionStore, administrator: Client) -> None:
        pattern = add_pattern(main, "support", "old_{subject}")
        page = administrator.get(address("store", "main"), {"edit": pattern.pk})
        assert 'value="old_{subject}"' in page.text
        administrator.post(address("pattern-change", "main", pattern.pk), FIELDS)
        pattern.refresh_from_db()
        assert pattern.pattern == SUPPORT

    def test_the_order_is_changed_and_a_pattern_deleted(self, main: SessionStore, administrator: Client) -> None:
        one, other = add_pattern(main, "one"), add_pattern(main, "other")
        administrator.post(address("pattern-up", "main", other.pk))
        assert list(SessionIdPattern.objects.of(main)) == [other, one]
        administrator.post(address("pattern-delete", "main", other.pk))
        assert list(SessionIdPattern.objects.of(main)) == [one]

    def test_a_pattern_of_another_store_is_not_found_here(self, main: SessionStore, administrator: Client) -> None:
        pattern = add_pattern(make_store("other"), "support")
        for verb in ("pattern-change", "pattern-up", "pattern-delete", "pattern-try-change"):
            assert administrator.post(address(verb, "main", pattern.pk), FIELDS).status_code == 404

    def test_the_worklist_of_the_store_is_counted_and_linked(self, main: SessionStore, operator: Client) -> None:
        make_session()
        make_session(store=make_store("other"))
        page = operator.get(address("store", "main"))
        assert link(page, "1 session without a subject") == address("list") + "?store=main&without_subject=1"
        assert SessionRecord.objects.without_subject().count() == 2


class TestAccess:
    def test_an_outsider_sees_no_store(self, main: SessionStore, outsider: Client) -> None:
        assert outsider.get(address("stores")).status_code == 403
        assert outsider.get(address("store", "main")).status_code == 403

    def test_support_reads_the_patterns_and_changes_none(self, main: SessionStore, operator: Client) -> None:
        pattern = add_pattern(main, "support")
        text = operator.get(address("store", "main")).text
        assert SUPPORT in text
        assert "Add a pattern" not in text
        for verb in ("pattern-add", "pattern-try"):
            assert operator.post(address(verb, "main"), FIELDS).status_code == 403
        for verb in ("pattern-change", "pattern-up", "pattern-delete"):
            assert operator.post(address(verb, "main", pattern.pk), FIELDS).status_code == 403

    def test_an_unknown_store_is_not_found(self, operator: Client) -> None:
        assert operator.get(address("store", "nowhere")).status_code == 404

    @pytest.mark.parametrize("verb", ["pattern-add", "pattern-try"])
    def test_verbs_take_no_get(self, main: SessionStore, administrator: Client, verb: str) -> None:
        assert administrator.get(address(verb, "main")).status_code == 405

    def test_reading_pages_take_no_post(self, main: SessionStore, operator: Client) -> None:
        assert operator.post(address("stores")).status_code == 405
        assert operator.post(address("store", "main")).status_code == 405
