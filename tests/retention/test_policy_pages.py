"""The pages of retention policies: the list, the form with its simulator, one policy, and the decision on a change."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.retention.policies import access
from memadmin.retention.policies.services import stop_change
from memadmin.retention.targets.base import RetentionTarget, all_targets
from sessions_app.models import SessionRecord, SessionStore
from tests.accounts.factors import let_proof_age
from tests.agents import add_items, attach_main_store
from tests.approvals import shown
from tests.builders import make_session, make_store, make_subject
from tests.people import person, signed_in
from tests.retention.builders import make_hold
from tests.retention.policies import age, approve_change, in_force, let_grace_pass, proposed, swept

pytestmark = pytest.mark.django_db

NEW, LIST = "/retention/new/", "/retention/"


def text(response: Any) -> str:
    """The page with single spaces."""
    return " ".join(response.content.decode().split())


def words(response: Any) -> str:
    """Its words alone."""
    return " ".join(re.sub(r"<[^>]*>", " ", text(response)).split()).replace("&#x27;", "'")


@pytest.fixture
def officer() -> User:
    return person("compliance")


@pytest.fixture
def first(officer: User) -> Client:
    return signed_in(officer)


@pytest.fixture
def second() -> Client:
    return signed_in(person("compliance", "reviewer"))


@pytest.fixture
def store(agent_tables: None) -> SessionStore:
    return attach_main_store()


def old_session(name: str, days: int, *, items: int = 2) -> SessionRecord:
    add_items(name, *(f"secret words {number}" for number in range(items)))
    age(name, timedelta(days=days))
    return SessionRecord.objects.get(session_id=name)


def values(**changed: str) -> dict[str, str]:
    return {
        "name": "Closed chats",
        "target": "sessions",
        "action": "delete",
        "length_count": "30",
        "length_unit": "days",
        "clock": "last_activity",
        "step": "simulate",
        **changed,
    }


def mark_in(response: Any) -> str:
    found = re.search(r'name="previewed" value="(\w+)"', text(response))
    assert found
    return found[1]


def propose(client: Client, address: str = NEW, **changed: str) -> Any:
    """Simulates and proposes, as a person does."""
    mark = mark_in(client.post(address, values(**changed)))
    return client.post(address, values(step="propose", previewed=mark, reason="Privacy notice", **changed))


class TestList:
    def test_the_first_visit_says_what_a_policy_is_for(self, first: Client) -> None:
        page = words(first.get(LIST))
        assert "Only the default policy is in force" in page
        assert "Everything else" in page
        assert "No run yet" in page

    def test_policies_are_listed_by_strength(self, first: Client, officer: User) -> None:
        in_force("Tenants", days=60, subject_kind="tenant")
        in_force("Kiosk", days=90, store="kiosk")
        minimum: dict[str, Any] = {"minimum_count": 13, "minimum_unit": "months", "minimum_reference": "Contract 7"}
        in_force("Disputes", days=None, action="keep", label="dispute", **minimum)
        make_hold("dispute", by=officer)
        page = words(first.get(LIST))
        order = ["1 hold", "Disputes", "13 months", "Kiosk", "90 days", "Tenants", "60 days", "Everything else", "kept"]
        assert [page.index(each) for each in order] == sorted(page.index(each) for each in order)
        assert "sessions, labelled “dispute”, since last activity: Contract 7" in page

    def test_open_changes_come_first(self, first: Client, officer: User, second: Client) -> None:
        version = proposed(in_force("Chats", days=365), by=officer, days=180)
        page = words(first.get(LIST))
        assert page.index("Change to decide: Chats") < page.index("No run yet")
        assert "365 days → 180 days, awaiting second person" in page
        approve_change(version, by=User.objects.get(username="compliance-reviewer"), confirmation="Chats")
        page = words(first.get(LIST))
        assert "Approved change: Chats" in page
        assert re.search(r"→ 180 days, starts in 2[34] hours", page)

    def test_a_new_policy_is_shown_before_it_is_in_force(self, first: Client) -> None:
        assert propose(first).status_code == 302
        page = words(first.get(LIST))
        assert "Change to decide: Closed chats" in page
        assert "30 days awaiting second person" in page

    def test_policies_out_of_force_can_be_found(self, first: Client, officer: User) -> None:
        propose(first)
        version = PolicyVersion.objects.get(policy__name="Closed chats")
        stop_change(version, reason="no", by=officer)
        page = words(first.get(LIST))
        assert "Closed chats ended, or never took effect" in page

    def test_the_newest_runs_are_shown(self, first: Client, store: SessionStore) -> None:
        old_session("old", 40)
        in_force("Chats", days=30)
        run = swept()
        page = text(first.get(LIST))
        assert f"/retention/runs/{run.number}/" in page
        assert "complete" in page


class TestForm:
    def test_a_policy_is_simulated_proposed_and_recorded(self, first: Client, store: SessionStore) -> None:
        record = old_session("old-session", 40)
        old_session("young-session", 10)
        page = first.post(NEW, values())
        shown = words(page)
        assert "Would go tonight 1 session 2 items" in shown
        assert str(record.pk) in text(page)
        assert "secret words" not in text(page)
        assert "old-session" not in text(page)
        # Whoever uses the keyboard goes on at the result, and not at the top of the page.
        assert 'id="simulation-title" tabindex="-1" autofocus' in " ".join(text(page).split())
        assert AuditEvent.objects.filter(type="retention.previewed").count() == 1
        assert not RetentionPolicy.objects.filter(name="Closed chats").exists()
        answer = propose(first)
        version = PolicyVersion.objects.get(policy__name="Closed chats")
        assert answer.url == f"/retention/{version.policy_id}/"
        assert version.awaits_approval
        assert version.preview["rows"] == 1
        assert SessionRecord.objects.count() == 2

    @pytest.mark.parametrize(
        ("changed", "sentence"),
        [
            ({"name": ""}, "A policy needs a name."),
            ({"name": "Everything else"}, "There is a policy with this name already."),
            ({"name": "a\0b"}, "Null characters are not allowed."),
            ({"name": "x" * 81}, "The name has more than 80 characters."),
            ({"length_count": "0"}, "The length is between 1 and 36,600 days."),
            ({"length_count": "-3"}, "The length is a number of days, months or years"),
            ({"length_count": ""}, "A policy that takes something needs a length"),
            ({"length_count": "soon"}, "The length is a number of days, months or years"),
            ({"length_count": "9" * 5000}, "The length is between 1 and 36,600 days."),
            ({"length_count": "10000", "length_unit": "years"}, "The length is between 1 and 100 years."),
            ({"length_unit": ""}, "The length is a number of days, months or years"),
            ({"length_unit": "eons"}, "The length is a number of days, months or years"),
            ({"minimum_count": "6", "minimum_unit": "years"}, "A legal minimum needs its reference"),
            ({"minimum_reference": "§ 147 AO"}, "There is a reference of a legal minimum, and no legal minimum."),
            (
                {"minimum_count": "0", "minimum_unit": "years", "minimum_reference": "x"},
                "The legal minimum is between 1 and 100 years.",
            ),
            ({"target": "diaries"}, "There is no target"),
            ({"target": ""}, "A policy needs a target."),
            ({"action": "redact"}, "Sessions have no action"),
            ({"action": ""}, "A policy needs an action."),
            ({"clock": "written"}, "Sessions have no clock"),
            ({"store": "no-such"}, "There is no store"),
            ({"store": "a\0b"}, "Null characters are not allowed."),
            ({"session_pattern": "a\0*"}, "Null characters are not allowed."),
            ({"subject_kind": "robot"}, "There is no kind of subject"),
            ({"is_encrypted": "maybe"}, "The encryption is true or false."),
            ({"kind": "fact"}, "Sessions cannot be narrowed by kind."),
            ({"target": "memories", "clock": "created", "label": "vip"}, "Memories cannot be narrowed by label."),
            ({"target": "memories", "clock": "created", "kind": "diary"}, "There is no kind"),
            ({"target": "audit_details", "clock": "created", "agent": "bot"}, "cannot be narrowed by agent."),
            ({"note": "x" * 501}, "The note has more than 500 characters."),
            ({"reason": "x" * 501}, "at most 500 characters"),
        ],
    )
    def test_wrong_input_gets_a_sentence_and_stays(self, changed: dict[str, str], sentence: str, first: Client) -> None:
        answer = first.post(NEW, values(**{"note": "keep this note", **changed}))
        assert answer.status_code == 422
        assert sentence in words(answer)
        assert "keep this note" in text(answer) or "note" in changed
        assert RetentionPolicy.objects.count() == 1
        assert not AuditEvent.objects.filter(type="retention.previewed").exists()

    @pytest.mark.parametrize(
        ("changed", "sentence"),
        [
            ({}, "This policy is about all sessions."),
            ({"session_pattern": "*"}, "The session ID matches every session, so the field is left empty"),
            ({"session_pattern": "***"}, "This policy is about all sessions."),
            (
                {"minimum_count": "6", "minimum_unit": "years", "minimum_reference": "§ 147 AO"},
                "nothing goes before 6 years, although the policy says 30 days.",
            ),
            (
                {"action": "keep", "minimum_count": "6", "minimum_unit": "years", "minimum_reference": "§ 147 AO"},
                "does not decide what goes",
            ),
            ({"action": "keep"}, "A policy that keeps has no length; it was left out."),
        ],
    )
    def test_what_is_allowed_and_perhaps_not_meant_is_said(
        self, changed: dict[str, str], sentence: str, first: Client
    ) -> None:
        answer = first.post(NEW, values(**changed))
        assert answer.status_code == 200
        assert sentence in words(answer)

    def test_a_pattern_for_everything_makes_nothing_explicit(self, first: Client) -> None:
        propose(first, session_pattern="**")
        assert PolicyVersion.objects.get(policy__name="Closed chats").session_pattern == ""

    def test_only_what_was_previewed_is_proposed(self, first: Client) -> None:
        mark = mark_in(first.post(NEW, values()))
        for changed in ({"length_count": "1"}, {"previewed": ""}, {"previewed": "0" * 64}):
            sent = values(step="propose", reason="x", **{"previewed": mark, **changed})
            answer = first.post(NEW, sent)
            assert "This differs from what was previewed, so nothing was saved." in words(answer)
        assert RetentionPolicy.objects.count() == 1

    def test_a_proposal_needs_a_reason(self, first: Client) -> None:
        mark = mark_in(first.post(NEW, values()))
        answer = first.post(NEW, values(step="propose", previewed=mark, reason=" "))
        assert (answer.status_code, "A change needs a reason." in words(answer)) == (422, True)

    def test_the_fields_follow_the_target(self, first: Client) -> None:
        page = text(first.get(NEW))
        assert 'name="session_pattern"' in page
        assert 'name="status"' not in page
        sent = values(target="memories", step="", note="stays")
        fragment = first.post(NEW, sent, headers={"HX-Request": "true"})
        shown = text(fragment)
        assert "<html" not in shown
        assert 'name="status"' in shown
        assert 'name="session_pattern"' not in shown
        assert "Send to re-validation" in shown
        assert "Last recall" in shown
        assert "stays" in shown
        assert "<html" in text(first.post(NEW, {**sent, "step": "fields"}))

    @pytest.mark.parametrize("target", all_targets(), ids=lambda target: target.name)
    def test_every_target_is_simulated(self, target: RetentionTarget, first: Client, store: SessionStore) -> None:
        sent = values(target=target.name, clock=next(iter(target.clocks)), action=target.actions[0])
        answer = first.post(NEW, sent)
        assert answer.status_code == 200
        assert "Would go tonight" in words(answer)

    def test_the_figures_are_drawn_and_in_a_table(self, first: Client, store: SessionStore) -> None:
        old_session("old", 40)
        page = text(first.post(NEW, values()))
        assert '<canvas data-chart="age-histogram"' in page
        assert 'data-figures="{' in page
        assert "From days" in page
        assert "<script>" not in page

    def test_the_simulation_names_holds_and_stores_that_are_away(
        self, first: Client, officer: User, store: SessionStore
    ) -> None:
        hold = make_hold(old_session("held", 40), by=officer)
        SessionStore.objects.create(
            name="away", kind="redis", attached_at=now(), options={"url": "redis://127.0.0.1:1"}
        )
        make_session("far", store=make_store("away"), last_activity_at=now() - timedelta(days=50))
        page = first.post(NEW, values())
        shown = words(page)
        assert "Kept by holds 1 session" in shown
        assert f"/holds/{hold.pk}/" in text(page)
        assert "The store does not respond: its items are not counted, and a run skips it." in shown

    @pytest.mark.parametrize(
        ("other", "sentence"),
        [
            ({"days": None, "action": "keep"}, "This policy wins: on the same level, deletion wins over keeping."),
            ({"days": 10}, "It wins: on the same level the earlier one does, after 10 days."),
            ({"days": 90}, "This policy wins: on the same level the earlier one does, after 30 days."),
            ({"days": 90, "agent": "bot"}, "It wins: explicit is stronger than group."),
            ({"days": 10, "clock": "created"}, "whichever is due first wins"),
        ],
    )
    def test_policies_that_contradict_each_other_say_which_wins(
        self, other: dict[str, Any], sentence: str, first: Client
    ) -> None:
        in_force("Rival", **other)
        shown = words(first.post(NEW, values()))
        assert "Rival" in shown
        assert sentence in shown
        assert "This policy wins: group is stronger than default." in shown

    def test_policies_about_other_data_are_no_rivals(self, first: Client) -> None:
        in_force("Rival", subject_kind="tenant")
        assert "Rival" not in words(first.post(NEW, values(subject_kind="user")))


class TestChange:
    def test_the_form_begins_with_what_is_in_force(self, first: Client) -> None:
        current = in_force("Chats", days=365, agent="bot")
        page = text(first.get(f"{current.policy.get_absolute_url()}change/"))
        assert 'value="365"' in page
        assert 'value="bot"' in page
        assert 'name="name"' not in page

    def test_it_is_compared_with_the_policy_in_force(self, first: Client, store: SessionStore) -> None:
        old_session("older", 400)
        old_session("old", 40)
        current = in_force("Chats", days=365)
        shown = words(first.post(f"{current.policy.get_absolute_url()}change/", values()))
        assert "Would go tonight 2 sessions 4 items" in shown
        assert "With the policy in force 1 session 2 items" in shown
        assert "After 365 days" in shown

    def test_what_keeps_more_is_in_force_at_once(self, first: Client) -> None:
        current = in_force("Chats", days=10)
        address = f"{current.policy.get_absolute_url()}change/"
        shown = words(first.post(address, values()))
        assert "It only keeps data for longer, so it needs no second person" in shown
        propose(first, address)
        assert PolicyVersion.objects.in_force().get(policy=current.policy).length_count == 30

    def test_a_second_change_is_refused(self, first: Client, officer: User) -> None:
        current = in_force("Chats", days=365)
        proposed(current, by=officer)
        answer = propose(first, f"{current.policy.get_absolute_url()}change/")
        assert (answer.status_code, "A change of Chats is open already." in words(answer)) == (409, True)

    def test_saying_the_same_is_refused(self, first: Client) -> None:
        answer = propose(first, f"{in_force('Chats', days=30).policy.get_absolute_url()}change/")
        assert (answer.status_code, "This is what the policy says already." in words(answer)) == (409, True)

    def test_the_default_policy_has_no_scope(self, first: Client) -> None:
        address = f"{RetentionPolicy.objects.get(is_default=True).get_absolute_url()}change/"
        assert 'name="agent"' not in text(first.get(address))
        answer = first.post(address, values(agent="bot"))
        assert (
            answer.status_code,
            "The default policy is about everything and cannot be narrowed." in words(answer),
        ) == (422, True)
        assert first.post(address, values(target="memories")).status_code == 422
        assert propose(first, address).status_code == 302


class TestPolicyPage:
    def test_it_tells_its_history(self, first: Client, officer: User) -> None:
        current = in_force("Chats", days=365, note="of the help desk")
        reviewer = person("compliance", "auditor")
        stop_change(proposed(current, by=officer, days=5), reason="much too short", by=reviewer)
        let_grace_pass(approve_change(proposed(current, by=officer, days=180), by=reviewer))
        shown = words(first.get(current.policy.get_absolute_url()))
        for said in (
            "180 days",
            "365 days",
            "Version 3",
            "Proposed by compliance",
            "“New privacy notice”",
            "Approved by compliance-auditor",
            "Rejected by compliance-auditor",
            "“much too short”",
        ):
            assert said in shown
        # The rejected version was never in force: the next one is compared with the first.
        assert re.search(r"Version 3 in force .* After 365 days becomes 180 days", shown)

    def test_a_change_takes_a_second_person(self, first: Client, second: Client, officer: User) -> None:
        version = proposed(in_force("Chats", days=365), by=officer)
        page, own = version.policy.get_absolute_url(), f"{version.policy.get_absolute_url()}versions/2/"
        read = {"shown": shown(version)}
        assert "You requested this. Another person has to decide." in words(first.get(page))
        assert "Withdraw" in words(first.get(page))
        assert "Approve change" not in words(first.get(page))
        refused = first.post(f"{own}approve/", read)
        assert (refused.status_code, "Another person has to decide." in words(refused)) == (403, True)
        assert AuditEvent.objects.get(type="approval.decided").outcome == "denied"
        assert f'name="shown" value="{read["shown"]}"' in text(second.get(page))
        unread = second.post(f"{own}approve/")
        assert (unread.status_code, "since you opened the page" in words(unread)) == (409, True)
        assert second.post(f"{own}approve/", read).status_code == 302
        assert "Cancel change" in words(first.get(page))
        lost = second.post(f"{own}approve/", read)
        assert (lost.status_code, "has already decided on this request." in words(lost)) == (409, True)
        assert first.post(f"{own}stop/", {"reason": " "}).status_code == 422
        assert first.post(f"{own}stop/", {"reason": "a claim"}).status_code == 302
        assert first.post(f"{own}stop/", {"reason": "again"}).status_code == 409
        assert first.post(f"{own}preview/").status_code == 409
        version.refresh_from_db()
        assert version.closed_as == "cancelled in the grace period"

    def test_an_old_sign_in_is_asked_for_again(self, second: Client, officer: User) -> None:
        version = proposed(in_force("Chats", days=365), by=officer)
        let_proof_age(second)
        answer: Any = second.post(f"{version.policy.get_absolute_url()}versions/2/approve/")
        version.refresh_from_db()
        assert version.awaits_approval
        assert answer.status_code != 302 or "confirm" in answer.url

    def test_a_large_change_is_confirmed_by_typing(
        self, first: Client, second: Client, officer: User, store: SessionStore
    ) -> None:
        old_session("old", 40)
        version = proposed(in_force("Chats", days=365), by=officer)
        own = f"{version.policy.get_absolute_url()}versions/2/approve/"
        assert "Type the name of the policy" in words(second.get(version.policy.get_absolute_url()))
        for typed in ("", "chats", "a\0b"):
            answer = second.post(own, {"confirmation": typed, "shown": shown(version)})
            assert answer.status_code == 422
            assert "type the name of the policy to confirm it" in words(answer)
        assert second.post(own, {"confirmation": "Chats", "shown": shown(version)}).status_code == 302

    def test_an_open_change_is_counted_again(self, second: Client, officer: User, store: SessionStore) -> None:
        old_session("old", 40)
        version = proposed(in_force("Chats", days=365), by=officer, days=30)
        old_session("older", 50)
        own = f"{version.policy.get_absolute_url()}versions/2/preview/"
        page = second.get(version.policy.get_absolute_url())
        assert f'action="{own}"' in text(page)
        assert "Simulate What it would take tonight, by age, with holds" in words(page)
        simulated = second.post(own)
        shown = words(simulated)
        # The histogram, and what draws it.
        assert "Sessions by days since last activity" in shown
        assert "chart" in text(simulated).partition("<body")[0]
        assert "Approve change" in shown
        assert "Would have gone 1 session" in shown
        assert "Would go tonight 2 sessions" in shown
        assert AuditEvent.objects.filter(type="retention.previewed").count() == 1

    def test_a_version_of_another_policy_is_unknown(self, second: Client, officer: User) -> None:
        proposed(in_force("Chats", days=365), by=officer)
        other = in_force("Other").policy.get_absolute_url()
        assert second.post(f"{other}versions/2/approve/").status_code == 404
        assert second.get(f"/retention/{uuid4()}/").status_code == 404

    def test_a_policy_ends_with_a_second_person(
        self, first: Client, second: Client, store: SessionStore, officer: User
    ) -> None:
        old_session("old", 40)
        in_force("Bots", days=30)
        kept = in_force("Kept", days=None, action="keep", store="main")
        own = kept.policy.get_absolute_url()
        assert "1 of them by other policies" in words(first.get(f"{own}end/"))
        assert first.post(f"{own}end/", {"reason": ""}).status_code == 422
        assert first.post(f"{own}end/", {"reason": "over"}).status_code == 302
        assert first.post(f"{own}end/", {"reason": "over"}).status_code == 409
        assert "Policy in force becomes ends" in words(first.get(own))
        ending = PolicyVersion.objects.get(policy=kept.policy, number=2)
        approval = {"confirmation": "Kept", "shown": shown(ending)}
        assert second.post(f"{own}versions/2/approve/", approval).status_code == 302
        let_grace_pass(ending)
        assert "not in force" in words(first.get(own))
        assert first.post(f"{own}end/", {"reason": "over"}).status_code == 409

    def test_the_default_policy_does_not_end(self, first: Client) -> None:
        address = RetentionPolicy.objects.get(is_default=True).get_absolute_url()
        assert "End policy" not in words(first.get(address))
        answer = first.post(f"{address}end/", {"reason": "over"})
        assert (answer.status_code, "The default policy cannot end" in words(answer)) == (409, True)

    def test_hostile_texts_stay_texts(self, first: Client, officer: User) -> None:
        name = "<script>alert(1)</script>\u202e"
        version = proposed(in_force(name, days=365, note="<b>note", agent="<i>bot"), by=officer, reason="<u>why")
        for address in (LIST, version.policy.get_absolute_url(), f"{version.policy.get_absolute_url()}change/"):
            page = text(first.get(address))
            assert not re.search(r"<script>alert|<b>note|<i>bot|<u>why|\u202e", page)
            assert "alert(1)" in page


class TestRights:
    def test_who_may_only_see_gets_no_buttons(self, officer: User) -> None:
        version = proposed(in_force("Chats", days=365), by=officer)
        viewer = person()
        viewer.user_permissions.add(Permission.objects.get(codename="view_policy"))
        client = signed_in(viewer)
        page, listed = words(client.get(version.policy.get_absolute_url())), words(client.get(LIST))
        for button in ("Approve change", "Withdraw change", "Send back", "End policy"):
            assert button not in page
        assert "New policy" not in listed
        assert "Explain one session" not in listed
        assert client.get(NEW).status_code == 403
        assert client.post(f"{version.policy.get_absolute_url()}versions/2/approve/").status_code == 403

    def test_without_the_role_there_is_nothing(self) -> None:
        in_force("Chats")
        for role in Group.objects.exclude(name="compliance").values_list("name", flat=True):
            client = signed_in(person(role))
            assert client.get(LIST).status_code == 403


class TestExplanation:
    def explained(self, client: Client, value: str) -> str:
        answer: Any = client.post(f"{LIST}explain/", {"value": value})
        assert answer.status_code == 302
        assert value not in answer.url or value.count("-") == 4
        return words(client.get(answer.url.removesuffix("#explain")))

    def test_the_winner_and_the_losers_are_named(self, first: Client) -> None:
        record = make_session("chat_7", ticket="T-7", last_activity_at=now() - timedelta(days=10))
        in_force("Chats", days=30)
        in_force("Kiosk", days=90, store="main")
        in_force("Old items", target="items", clock="written", days=5)
        for value in ("chat_7", "T-7", str(record.pk)):
            shown = self.explained(first, value)
            assert "This session will be deleted on" in shown
            assert "policy Kiosk , 90 days after last activity." in shown
            assert "Chats deletes 30 days after last activity" in shown
            assert "Everything else keeps" in shown
            assert "policy Old items" in shown

    @pytest.mark.parametrize(
        ("days", "sentence"),
        [
            (40, "This session will be deleted by the next run"),
            (10, "This session will be deleted on"),
        ],
    )
    def test_the_day_is_named(self, days: int, sentence: str, first: Client) -> None:
        make_session("chat_7", last_activity_at=now() - timedelta(days=days))
        in_force("Chats", days=30)
        assert sentence in self.explained(first, "chat_7")

    def test_holds_and_minimums_are_named(self, first: Client, officer: User) -> None:
        record = make_session("chat_7", last_activity_at=now() - timedelta(days=40))
        hold = make_hold(record, by=officer)
        in_force("Chats", days=30)
        minimum: dict[str, Any] = {"minimum_count": 6, "minimum_unit": "years", "minimum_reference": "§ 147 AO"}
        in_force("Taxes", days=None, action="keep", **minimum)
        shown = self.explained(first, "chat_7")
        assert f"kept by hold {hold}" in shown
        assert "Without the hold, this session would be deleted on" in shown
        assert "Not before, because of the legal minimum of Taxes : 6 years after last activity (§ 147 AO)." in shown

    def test_without_another_policy_the_default_one_keeps(self, first: Client) -> None:
        make_session("chat_7")
        assert "Policy Everything else keeps this session." in self.explained(first, "chat_7")

    def test_a_ticket_of_several_sessions_gives_a_choice(self, first: Client) -> None:
        records = [make_session(ticket="T-7") for _ in range(2)]
        answer = first.post(f"{LIST}explain/", {"value": "T-7"})
        assert answer.status_code == 200
        for record in records:
            assert f"/retention/?session={record.pk}#explain" in text(answer)
            assert record.session_id not in text(answer)

    def test_unknown_erased_and_not_permitted_answer_the_same(self, first: Client) -> None:
        make_session("gone", erased_at=now())
        for value in ("unknown", "gone", str(uuid4()), "a\0b", ""):
            answer = first.post(f"{LIST}explain/", {"value": value})
            assert answer.status_code == 422
        for session in (uuid4(), "nonsense", ""):
            assert "this session" not in words(first.get(f"{LIST}?session={session}"))

    def test_who_may_not_see_sessions_learns_nothing(self) -> None:
        record = make_session("chat_7")
        viewer = person()
        viewer.user_permissions.add(Permission.objects.get(codename="view_policy"))
        client = signed_in(viewer)
        assert client.post(f"{LIST}explain/", {"value": "chat_7"}).status_code == 403
        there, nowhere = (client.get(f"{LIST}?session={pk}") for pk in (record.pk, uuid4()))
        assert access.sessions_named(viewer, "chat_7") == []
        strip = re.compile(r"[\w-]{40,}|\d\d:\d\d")
        assert strip.sub("", words(there)) == strip.sub("", words(nowhere))


def test_the_audit_log_names_policies_for_those_who_may_see_them(first: Client, officer: User) -> None:
    version = proposed(in_force("Chats", days=365), by=officer)
    event = AuditEvent.objects.get(type="approval.requested")
    assert "version 2 of Chats" in words(first.get(f"/audit/{event.id}/"))
    auditor = signed_in(person("auditor"))
    page = text(auditor.get(f"/audit/{event.id}/"))
    assert "Chats" not in page
    assert str(version.pk)[:8] in page


def test_a_subject_is_not_shown_in_a_preview(first: Client, store: SessionStore) -> None:
    record = old_session("cust_4711:chat", 40)
    SessionRecord.objects.filter(pk=record.pk).update(subject=make_subject("cust_4711"))
    page = text(first.post(NEW, values()))
    assert "1 subject" in words(first.post(NEW, values()))
    assert "cust_4711" not in page
