"""Resolution: which rule wins. The pure function and the query of the sweep say the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from memadmin.retention.policies.lengths import MOST, Length, Unit
from memadmin.retention.policies.resolution import Resolution, resolve
from memadmin.retention.policies.rules import Action, Facts, Rule
from memadmin.retention.targets.base import target_named
from memadmin.retention.targets.due_rows import DueRows
from sessions_app.models import SessionRecord
from tests.builders import make_session, make_store, make_subject
from tests.people import person
from tests.retention.builders import make_hold

NOW = datetime(2028, 3, 1, 4, tzinfo=UTC)

UNCHANGED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
"""The tests only read from the database that a fixture has filled."""

lengths = st.builds(Length, st.integers(1, 14), st.sampled_from(Unit)).filter(lambda each: each.longest.days < 500)
scopes: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "store": st.sampled_from(["main", "other"]),
        "session_pattern": st.sampled_from(["*", "a*", "*_1", "b_*", "a.1"]),
        "agent": st.sampled_from(["bot", "clerk"]),
        "label": st.sampled_from(["vip", "dispute"]),
        "subject_kind": st.sampled_from(["user", "project"]),
        "is_encrypted": st.booleans(),
    },
)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    action = draw(st.sampled_from([Action.DELETE, Action.DELETE, Action.KEEP]))
    number = draw(st.integers(0, 10**6))
    return Rule(
        policy=UUID(int=number),
        name=f"policy {number}",
        version=UUID(int=number),
        number=1,
        target="sessions",
        clock=draw(st.sampled_from(["last_activity", "created"])),
        action=action,
        length=draw(lengths) if action == Action.DELETE else None,
        minimum=draw(st.none() | lengths),
        scope=draw(scopes),
        is_default=draw(st.integers(0, 4)) == 0,
    )


rule_sets = st.lists(rules(), max_size=6, unique_by=lambda rule: rule.version)
instants = st.integers(0, 425 * 24 * 60).map(
    lambda minutes: datetime(2027, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
)
facts = st.builds(
    lambda store, session_id, agent, labels, kind, is_encrypted, first, second, holds: Facts(
        "sessions",
        {
            "store": store,
            "session_pattern": session_id,
            "agent": agent,
            "label": labels,
            "subject_kind": kind,
            "is_encrypted": is_encrypted,
        },
        {"created": min(first, second), "last_activity": max(first, second)},
        holds,
    ),
    st.sampled_from(["main", "other"]),
    st.sampled_from(["a_1", "a.1", "b_1", "b_2", "axb_1"]),
    st.sampled_from(["", "bot", "clerk"]),
    st.lists(st.sampled_from(["vip", "dispute", "x"]), unique=True),
    st.sampled_from(["", "user", "project"]),
    st.booleans(),
    instants,
    instants,
    st.lists(st.integers(1, 9), max_size=1),
)


def ends(resolution: Resolution) -> datetime:
    return resolution.due_at or datetime.max.replace(tzinfo=UTC)


class TestResolution:
    @given(rule_sets, facts, st.randoms(use_true_random=False))
    def test_does_not_depend_on_the_order(self, given_rules: list[Rule], row: Facts, random: Random) -> None:
        shuffled = random.sample(given_rules, len(given_rules))
        assert resolve(row, shuffled) == resolve(row, given_rules)

    @given(rule_sets, facts)
    def test_a_hold_never_shortens(self, given_rules: list[Rule], row: Facts) -> None:
        held = Facts(row.target, row.scope, row.clocks, (1,))
        assert not resolve(held, given_rules).is_due(datetime.max.replace(tzinfo=UTC))

    @given(rule_sets, facts, rules())
    def test_a_minimum_is_never_undercut(self, given_rules: list[Rule], row: Facts, more: Rule) -> None:
        resolution = resolve(row, [*given_rules, more])
        for rule in (*given_rules, more):
            matching = resolve(row, [rule])
            if rule.minimum and (matching.winner or matching.losers):
                assert ends(resolution) >= rule.minimum.after(row.clocks[rule.clock])

    @given(rule_sets, facts)
    def test_always_has_an_answer(self, given_rules: list[Rule], row: Facts) -> None:
        resolution = resolve(row, given_rules)
        assert (resolution.due_at is None) == (resolution.action == Action.KEEP)

    def test_within_a_level_the_earliest_deletion_wins(self) -> None:
        long, short = plain_rule(90, name="long"), plain_rule(30, name="short")
        resolution = resolve(plain_facts(), [long, short])
        assert resolution.winner is not None
        assert resolution.winner.rule == short
        assert [claim.rule for claim in resolution.losers] == [long]

    def test_an_explicit_rule_that_keeps_wins_over_a_group(self) -> None:
        keep = plain_rule(None, name="keep", scope={"agent": "bot"})
        resolution = resolve(plain_facts(agent="bot"), [plain_rule(30), keep])
        assert resolution.due_at is None

    def test_a_minimum_postpones(self) -> None:
        minimum = plain_rule(None, name="law", minimum=Length(6, Unit.YEARS))
        resolution = resolve(plain_facts(), [plain_rule(30), minimum])
        assert resolution.due_at == datetime(2033, 3, 1, tzinfo=UTC)
        assert resolution.minimum is not None
        assert resolution.minimum.rule == minimum

    @pytest.mark.parametrize("action", [Action.EXPIRE, Action.REVALIDATE])
    def test_only_approved_memories_expire(self, action: Action) -> None:
        rule = replace(plain_rule(30), target="memories", action=action)
        for status, is_due in (("approved", True), ("retired", False)):
            row = replace(plain_facts(status=status), target="memories")
            assert (resolve(row, [rule]).due_at is not None) == is_due


def plain_rule(days: int | None, *, name: str = "policy", **columns: Any) -> Rule:
    return Rule(
        policy=uuid4(),
        name=name,
        version=uuid4(),
        number=1,
        target="sessions",
        clock="last_activity",
        action=Action.DELETE if days else Action.KEEP,
        length=Length(days, Unit.DAYS) if days else None,
        **columns,
    )


def plain_facts(**scope: Any) -> Facts:
    at = datetime(2027, 3, 1, tzinfo=UTC)
    return Facts("sessions", scope, {"last_activity": at, "created": at})


class TestQuery:
    """What the sweep selects is what the pure function says is due."""

    @pytest.fixture
    def sessions(self, db: None) -> list[SessionRecord]:
        """A hundred sessions with every combination of chance that matters."""
        random = Random(7)
        officer = person("compliance")
        stores = [make_store("main"), make_store("other")]
        subjects = [make_subject("s-1"), make_subject("s-2", kind="project"), None]  # type: ignore[arg-type]
        for number in range(100):
            created = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(minutes=random.randrange(60 * 24 * 425))
            # The ends of months are where the calendars could differ.
            if number % 3 == 0:
                created = created.replace(month=random.choice([1, 3, 5, 10]), day=random.choice([29, 30, 31]))
            make_session(
                random.choice(["a_{}1", "b_{}1", "a.{}1", "c{}"]).format(f"{number}_"),
                store=random.choice(stores),
                subject=random.choice(subjects),
                agent=random.choice(["", "bot", "clerk"]),
                labels=random.choice([[], ["vip"], ["dispute", "x"]]),
                is_encrypted=random.random() < 0.3,
                registered_at=created,
                last_activity_at=min(created + timedelta(days=random.randrange(60)), NOW),
            )
        for record in SessionRecord.objects.order_by("?")[:10]:
            make_hold(record, by=officer)
        return list(
            SessionRecord.objects.select_related("store", "subject").prefetch_related("subject__aliases").order_by("pk")
        )

    @effort(max_examples=30, suppress_health_check=UNCHANGED)
    @given(given_rules=rule_sets)
    def test_says_the_same(self, sessions: list[SessionRecord], given_rules: list[Rule]) -> None:
        self.compare(sessions, given_rules)

    @pytest.mark.release
    @effort(max_examples=150, suppress_health_check=UNCHANGED)
    @given(given_rules=rule_sets)
    def test_says_the_same_of_many_rules(self, sessions: list[SessionRecord], given_rules: list[Rule]) -> None:
        self.compare(sessions, given_rules)

    def compare(self, sessions: list[SessionRecord], given_rules: list[Rule]) -> None:
        target = target_named("sessions")
        held = set(target.rows().filter(target.held()).values_list("pk", flat=True))
        wanted: dict[UUID, set[UUID]] = {}
        for record in sessions:
            resolution = resolve(target.facts(record, (1,) if record.pk in held else ()), given_rules)
            if resolution.is_due(NOW) and record.last_activity_at <= NOW - timedelta(hours=1):
                assert resolution.winner is not None
                wanted.setdefault(resolution.winner.rule.version, set()).add(record.pk)
        due = DueRows(given_rules, NOW)
        found = {rule.version: set(due.due(rule).values_list("pk", flat=True)) for rule in given_rules}
        assert {version: rows for version, rows in found.items() if rows} == wanted


class TestLengths:
    @effort(suppress_health_check=UNCHANGED)
    @given(at=instants, length=lengths)
    def test_python_and_postgresql_add_alike(self, db: None, at: datetime, length: Length) -> None:
        assert value_in_database(at, length) == length.after(at)

    @pytest.mark.parametrize(
        ("at", "length", "end"),
        [
            ("2027-01-31", Length(1, Unit.MONTHS), "2027-02-28"),
            ("2028-01-31", Length(1, Unit.MONTHS), "2028-02-29"),
            ("2028-02-29", Length(1, Unit.YEARS), "2029-02-28"),
            ("2028-02-29", Length(4, Unit.YEARS), "2032-02-29"),
            # Where summer time begins and ends, a day has 24 hours all the same: the zone is UTC.
            ("2027-03-27", Length(2, Unit.DAYS), "2027-03-29"),
            ("2027-10-30", Length(2, Unit.DAYS), "2027-11-01"),
        ],
    )
    def test_ends_of_months_and_leap_days(self, at: str, length: Length, end: str) -> None:
        assert length.after(datetime.fromisoformat(f"{at}T12:00+00:00")) == datetime.fromisoformat(f"{end}T12:00+00:00")

    def test_the_longest_lengths_have_an_end(self) -> None:
        for unit, most in MOST.items():
            assert Length(most, unit).after(NOW) > NOW
            assert Length(most * 1000, unit).after(NOW) == datetime.max.replace(tzinfo=UTC)


def value_in_database(at: datetime, length: Length) -> datetime:
    from django.db.models import DateTimeField, Value

    from memadmin.retention.targets.due_rows import Later

    make_store("main")
    from sessions_app.models import SessionStore

    later = Later(Value(at, output_field=DateTimeField()), length)
    return SessionStore.objects.annotate(later=later).values_list("later", flat=True)[0]
