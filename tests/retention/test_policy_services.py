"""Change control of retention policies: what needs a second person, the grace period, and what is never changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, connection, transaction
from django.utils.timezone import now

from memadmin.accounts.approvals.services import AlreadyDecided, ChangedSinceAsked, NotAllowed, ShownChanged
from memadmin.audit.models import AuditEvent
from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.retention.policies import services
from memadmin.retention.policies.lengths import Length, Unit
from memadmin.retention.policies.resolution import resolve
from memadmin.retention.targets.base import target_named
from sessions_app.models import SessionRecord, SessionStore
from tests.agents import attach_main_store
from tests.approvals import shown
from tests.builders import make_session, make_store
from tests.people import person
from tests.retention.policies import approve_change, in_force, let_grace_pass, proposed

pytestmark = pytest.mark.django_db


@pytest.fixture
def main_store(agent_tables: None) -> SessionStore:
    """The store of sessions that builders make."""
    return attach_main_store()


CHATS = {
    "target": "sessions",
    "clock": "last_activity",
    "action": "delete",
    "length_count": 30,
    "length_unit": "days",
}


@pytest.fixture
def officer() -> User:
    return person("compliance")


@pytest.fixture
def second() -> User:
    return person("compliance", "reviewer")


def change(version: PolicyVersion, by: User, **columns: Any) -> PolicyVersion:
    """A proposal of what the version says, with other columns."""
    content = {name: getattr(version, name) for name in PolicyVersion.CONTENT}
    return services.propose_change(version.policy, content | columns, reason="because", by=by)


LENGTH = {"length_count": 90, "length_unit": "days"}
KEEP = {"action": "keep", "length_count": None, "length_unit": ""}
MINIMUM: dict[str, Any] = {"minimum_count": 6, "minimum_unit": "years", "minimum_reference": "§ 147 AO"}
NO_MINIMUM: dict[str, Any] = {"minimum_count": None, "minimum_unit": "", "minimum_reference": ""}


class TestWhatNeedsASecondPerson:
    @pytest.mark.parametrize(
        ("before", "columns"),
        [
            ({}, {"length_count": 29}),
            ({}, {"length_count": 1, "length_unit": "months"}),  # February
            ({}, {"clock": "created"}),
            ({"store": "main"}, {"store": ""}),
            ({}, {"store": "main"}),  # may uncover a shorter policy
            (KEEP, {"action": "delete", **LENGTH}),
            (MINIMUM, NO_MINIMUM),
            (MINIMUM, {"minimum_count": 5}),
            (KEEP, MINIMUM),  # no longer decides
            ({"target": "items", "clock": "written"}, {"action": "redact"}),
        ],
    )
    def test_what_could_take_more(self, before: dict[str, Any], columns: dict[str, Any], officer: User) -> None:
        make_store("main")
        days = None if before is KEEP else 30
        version = change(in_force("Chats", days=days, **before), officer, **columns)
        assert version.needs_approval
        assert version.awaits_approval
        assert version not in PolicyVersion.objects.in_force()

    @pytest.mark.parametrize(
        ("before", "columns"),
        [
            ({}, {"length_count": 31}),
            ({}, {"length_count": 2, "length_unit": "months"}),
            ({}, KEEP),
            ({}, MINIMUM),
            (MINIMUM, {"minimum_count": 7}),
            ({}, {"note": "said again"}),
        ],
    )
    def test_what_surely_keeps_more_is_in_force_at_once(
        self, before: dict[str, Any], columns: dict[str, Any], officer: User
    ) -> None:
        version = change(in_force("Chats", **before), officer, **columns)
        assert not version.needs_approval
        assert list(PolicyVersion.objects.in_force().filter(policy=version.policy)) == [version]
        assert AuditEvent.objects.get(type="retention.changed").object_ref == version.pk

    def test_a_new_policy_does(self, officer: User) -> None:
        version = services.propose_policy("Chats", CHATS, reason="notice", by=officer)
        assert version.awaits_approval
        assert AuditEvent.objects.get(type="approval.requested").object_ref == version.pk

    def test_a_new_legal_minimum_does_not(self, officer: User) -> None:
        keep = {"target": "sessions", "clock": "created", "action": "keep", **MINIMUM}
        assert not services.propose_policy("Taxes", keep, reason="law", by=officer).awaits_approval


class TestSecondPerson:
    def test_it_takes_one_and_the_grace_period(self, officer: User, second: User) -> None:
        version = proposed(in_force("Chats"), by=officer)
        approved = approve_change(version, by=second)
        assert approved.starts_at is not None
        assert abs(approved.starts_at - now() - settings.RETENTION_GRACE) < timedelta(minutes=5)
        assert approved.is_in_grace
        assert approved not in PolicyVersion.objects.in_force()
        let_grace_pass(approved)
        assert approved in PolicyVersion.objects.in_force()

    def test_the_proposer_is_refused_and_recorded(self, officer: User) -> None:
        version = proposed(in_force("Chats"), by=officer)
        with pytest.raises(NotAllowed):
            approve_change(version, by=officer)
        version.refresh_from_db()
        assert version.awaits_approval
        assert AuditEvent.objects.get(type="approval.decided").outcome == "denied"

    def test_a_second_account_of_the_proposer_is_the_same_person(self, officer: User, second: User) -> None:
        version = proposed(in_force("Chats"), by=officer)
        User.objects.update(email="Same@example.invalid")
        second.refresh_from_db()
        with pytest.raises(NotAllowed):
            approve_change(version, by=second)

    def test_what_a_deleted_account_proposed_is_proposed_again(self, officer: User, second: User) -> None:
        version = proposed(in_force("Chats"), by=officer)
        officer.delete()
        with pytest.raises(NotAllowed):
            approve_change(version, by=second)
        assert services.stop_change(version, reason="", by=second).closed_as == "rejected"

    def test_it_is_of_what_was_shown(self, officer: User, second: User) -> None:
        version = proposed(in_force("Chats"), by=officer)
        read = shown(version)
        # As only SQL can.
        RetentionPolicy.objects.filter(pk=version.policy_id).update(name="Others")
        with pytest.raises(ShownChanged):
            services.approve_change(version, by=second, shown=read)
        with pytest.raises(ChangedSinceAsked):
            approve_change(version, by=second)
        version.refresh_from_db()
        assert version.awaits_approval

    @pytest.mark.parametrize("column", PolicyVersion.CONTENT)
    def test_all_that_a_version_says_is_shown(self, column: str, officer: User) -> None:
        version = proposed(in_force("Chats"), by=officer)
        before = services.shown_of(version)
        setattr(version, column, "another")
        assert services.shown_of(version) != before

    def test_its_preview_is_shown(self, officer: User) -> None:
        version = proposed(in_force("Chats"), by=officer)
        before = services.shown_of(version)
        version.preview = {**version.preview, "rows": 7}
        assert services.shown_of(version) != before

    def test_the_database_lets_nothing_start_without_approval(self, officer: User) -> None:
        version = proposed(in_force("Chats"), by=officer)
        with pytest.raises(DatabaseError, match="another person approves it first"), transaction.atomic():
            PolicyVersion.objects.filter(pk=version.pk).update(starts_at=now())

    def test_a_decided_change_is_not_decided_again(self, officer: User, second: User) -> None:
        version = proposed(in_force("Chats"), by=officer)
        approve_change(version, by=second)
        with pytest.raises(AlreadyDecided):
            approve_change(version, by=second)


class TestTypedConfirmation:
    @pytest.fixture
    def version(self, main_store: SessionStore, officer: User) -> PolicyVersion:
        """A change that takes 3 of 20 sessions."""
        for number in range(20):
            make_session(last_activity_at=now() - timedelta(days=60 if number < 3 else 1))
        return proposed(in_force("Chats", days=365), by=officer)

    def test_a_large_share_is_confirmed_by_typing(self, version: PolicyVersion, second: User) -> None:
        assert version.preview["rows"] == 3
        for typed in ("", "chats", "Chat"):
            with pytest.raises(services.NotConfirmed):
                approve_change(version, by=second, confirmation=typed)
        assert approve_change(version, by=second, confirmation=" Chats ").is_in_grace

    def test_a_small_share_is_not(self, version: PolicyVersion, second: User) -> None:
        for _ in range(20):
            make_session()
        assert not services.needs_typing(version)
        assert approve_change(version, by=second).is_in_grace

    def test_many_rows_are(self, version: PolicyVersion, monkeypatch: pytest.MonkeyPatch) -> None:
        for _ in range(20):
            make_session()
        monkeypatch.setattr(services, "CONFIRM_ROWS", 2)
        assert services.needs_typing(version)

    def test_what_others_would_take_counts_too(self, main_store: SessionStore, officer: User) -> None:
        """Without the minimum, nothing of it takes anything: the other policy does."""
        for _ in range(3):
            make_session(last_activity_at=now() - timedelta(days=60))
        in_force("Chats", days=30)
        minimum = in_force("Taxes", days=None, action="keep", **MINIMUM)
        ending = services.end_policy(minimum.policy, reason="repealed", by=officer)
        assert (ending.preview["rows"], ending.preview["uncovered"]) == (3, 3)
        assert services.needs_typing(ending)

    def test_what_others_take_anyway_does_not_count(self, main_store: SessionStore, officer: User) -> None:
        make_session(last_activity_at=now() - timedelta(days=60))
        in_force("Chats", days=30)
        other = in_force("Bots", days=30, agent="bot")
        ending = services.end_policy(other.policy, reason="not needed", by=officer)
        assert ending.preview["rows"] == 0


class TestStopping:
    def test_one_s_own_is_withdrawn(self, officer: User) -> None:
        version = services.stop_change(proposed(in_force("Chats"), by=officer), reason="a mistake", by=officer)
        assert (version.closed_as, version.closing_reason, version.closed_by) == ("withdrawn", "a mistake", officer)

    def test_that_of_another_is_rejected(self, officer: User, second: User) -> None:
        version = services.stop_change(proposed(in_force("Chats"), by=officer), reason="too short", by=second)
        assert version.closed_as == "rejected"

    def test_an_approved_one_is_cancelled_in_its_grace_period(self, officer: User, second: User) -> None:
        current = in_force("Chats")
        version = approve_change(proposed(current, by=officer), by=second)
        stopped = services.stop_change(version, reason="a claim came in", by=person("compliance", "auditor"))
        assert stopped.closed_as == "cancelled in the grace period"
        assert AuditEvent.objects.get(type="retention.change_cancelled").object_ref == version.pk
        let_grace_pass(stopped)
        assert current in PolicyVersion.objects.in_force()

    def test_who_may_approve_and_not_change_cancels_nothing(self, officer: User, second: User) -> None:
        approver = person("support")
        approver.user_permissions.add(Permission.objects.get(codename="approve_policy"))
        current = in_force("Chats")
        assert services.stop_change(proposed(current, by=officer), reason="no", by=approver).closed_by == approver
        version = approve_change(proposed(current, by=officer), by=second)
        with pytest.raises(NotAllowed):
            services.stop_change(version, reason="no", by=approver)
        version.refresh_from_db()
        assert version.is_in_grace

    def test_one_in_force_cannot_be_stopped(self, officer: User, second: User) -> None:
        version = let_grace_pass(approve_change(proposed(in_force("Chats"), by=officer), by=second))
        with pytest.raises(services.ChangeAlreadyDecided):
            services.stop_change(version, reason="too late", by=officer)

    def test_a_stopped_one_is_not_approved(self, officer: User, second: User) -> None:
        version = proposed(in_force("Chats"), by=officer)
        services.stop_change(version, reason="a mistake", by=officer)
        with pytest.raises(AlreadyDecided):
            approve_change(version, by=second)


def test_a_policy_has_one_open_change(officer: User, second: User) -> None:
    current = in_force("Chats")
    version = proposed(current, by=officer)
    with pytest.raises(services.ChangeAlreadyOpen):
        change(current, second, length_count=5)
    approve_change(version, by=second)
    with pytest.raises(services.ChangeAlreadyOpen):
        change(current, second, length_count=5)
    with pytest.raises(services.ChangeAlreadyOpen):
        services.end_policy(current.policy, reason="over", by=second)
    services.stop_change(version, reason="another one", by=second)
    assert change(current, second, length_count=5).number == 3


def test_saying_the_same_is_no_change(officer: User) -> None:
    with pytest.raises(services.NothingChanged):
        change(in_force("Chats"), officer)


def test_a_name_belongs_to_one_policy(officer: User) -> None:
    services.propose_policy("Chats", CHATS, reason="notice", by=officer)
    with pytest.raises(services.PolicyNameTaken):
        services.propose_policy("Chats", CHATS, reason="notice", by=officer)


class TestEnd:
    def test_it_takes_a_second_person(self, officer: User, second: User) -> None:
        current = in_force("Chats")
        ending = services.end_policy(current.policy, reason="over", by=officer)
        assert current in PolicyVersion.objects.in_force()
        let_grace_pass(approve_change(ending, by=second))
        assert not PolicyVersion.objects.in_force().filter(policy=current.policy).exists()
        with pytest.raises(services.ChangeAlreadyDecided):
            services.end_policy(current.policy, reason="again", by=officer)

    def test_the_default_policy_does_not_end(self, officer: User) -> None:
        with pytest.raises(services.DefaultStays):
            services.end_policy(RetentionPolicy.objects.get(is_default=True), reason="over", by=officer)


def test_the_resolution_changes_when_the_version_starts(officer: User, second: User) -> None:
    record = make_session(last_activity_at=now() - timedelta(days=20))
    target = target_named("sessions")

    def length() -> Length | None:
        resolution = resolve(target.facts(SessionRecord.objects.get(pk=record.pk)), services.rules_in_force())
        assert resolution.winner is not None
        return resolution.winner.rule.length

    version = proposed(in_force("Chats", days=30), by=officer)
    assert length() == Length(30, Unit.DAYS)
    approve_change(version, by=second, confirmation="Chats")
    assert length() == Length(30, Unit.DAYS)
    let_grace_pass(version)
    assert length() == Length(10, Unit.DAYS)


@pytest.mark.parametrize(
    "sql",
    [
        *(
            f"UPDATE retention_policyversion SET {change} WHERE id = %(id)s"
            for change in (
                "length_count = 1",
                "store = 'main'",
                "clock = 'created'",
                "minimum_count = 1, minimum_unit = 'days', minimum_reference = 'x'",
                "is_end = true",
                "number = 7",
                "reason = 'another'",
                "preview = '{\"rows\": 1}'",
                "needs_approval = true",
                "starts_at = NULL",
                "starts_at = now() + interval '1 year'",
                "closed_at = now()",
            )
        ),
        "DELETE FROM retention_policyversion WHERE id = %(id)s",
        # Without what still waits for the end of the transaction, which would refuse it, too.
        "SET CONSTRAINTS ALL IMMEDIATE; TRUNCATE retention_policyversion CASCADE",
    ],
)
def test_a_version_in_force_is_never_changed_not_even_by_sql(sql: str) -> None:
    version = in_force("Chats")
    before = PolicyVersion.objects.values().get(pk=version.pk)
    refused = pytest.raises(DatabaseError, match=r"never|decided|in force")
    with refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.replace("%(id)s", f"'{version.pk}'"))
    assert PolicyVersion.objects.values().get(pk=version.pk) == before


def test_a_change_is_not_moved_out_of_its_grace_period(officer: User, second: User) -> None:
    version = approve_change(proposed(in_force("Chats"), by=officer), by=second)
    with pytest.raises(DatabaseError, match="decided already"), transaction.atomic():
        PolicyVersion.objects.filter(pk=version.pk).update(starts_at=now())
