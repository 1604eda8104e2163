"""What a sweep takes: what its preview counted, in whole turns, by the clock of the database, and not far more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Value
from django.db.models.functions import Now
from django.utils.timezone import now
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from memadmin.retention.models import PolicyVersion, SweepResult
from memadmin.retention.policies.preview import histogram, preview
from memadmin.retention.policies.resolution import resolve
from memadmin.retention.policies.rules import Rule
from memadmin.retention.policies.services import rules_in_force
from memadmin.retention.sweep import starting
from memadmin.retention.sweep.starting import request_sweep, sweepable
from memadmin.retention.targets import due_rows
from memadmin.retention.targets.base import target_named
from memadmin.retention.targets.due_rows import DueRows, database_time
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from memadmin.runs.services import cancel_run, resume_run
from memories_app.models import Evidence, Memory, Recall, RecalledMemory, Signal
from sessions_app.encryption.purging import Purge
from sessions_app.models import SessionRecord, SessionStore, SubjectKind
from tests.agents import add_items, assistant, attach_main_store, run_sql, user, value_of
from tests.builders import make_session, make_subject
from tests.client.agents import in_agent, in_postgres, talk
from tests.memories.builders import approved as approved_memory
from tests.memories.builders import proposed
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import age, in_force, swept

UNCHANGED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def call(number: int) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"call_{number}", "name": "look_up", "arguments": "{}"}


def output(number: int) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": "sent"}


# --- preview and run --------------------------------------------------------------------------------------------------

SCOPES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "sessions": {
        "session_pattern": st.sampled_from(["a_*", "*1", "b_2"]),
        "agent": st.sampled_from(["bot", "clerk"]),
        "label": st.sampled_from(["vip", "dispute"]),
        "subject_kind": st.sampled_from(["user", "project"]),
        "is_encrypted": st.booleans(),
        "store": st.sampled_from(["main", "other"]),
    },
    "memories": {
        "agent": st.sampled_from(["bot", "clerk"]),
        "subject_kind": st.sampled_from(["user", "project"]),
        "kind": st.sampled_from(["fact", "preference"]),
        "status": st.sampled_from(["approved", "needs_revalidation", "expired"]),
    },
    "signals": {
        "store": st.sampled_from(["main", "other"]),
        "label": st.sampled_from(["vip", "dispute"]),
        "agent": st.sampled_from(["bot", "clerk"]),
        "subject_kind": st.sampled_from(["user", "project"]),
        "kind": st.sampled_from(["preference", "correction"]),
    },
}
SCOPES["items"] = SCOPES["sessions"]
SCOPES["recalls"] = {name: each for name, each in SCOPES["signals"].items() if name != "kind"}
SCOPES["proposals"] = {name: each for name, each in SCOPES["memories"].items() if name != "status"}


@st.composite
def contents(draw: st.DrawFn, target: str) -> dict[str, Any]:
    declared = target_named(target)
    action = draw(st.sampled_from([*declared.actions, "delete", "keep"]))
    scope = draw(st.fixed_dictionaries({}, optional=SCOPES[target]))
    if action in ("expire", "revalidate"):
        scope.pop("status", None)
    content = {"target": target, "clock": draw(st.sampled_from(sorted(declared.clocks))), "action": action, **scope}
    if action == "keep":
        content["days"] = None
    else:
        content["days"] = draw(st.integers(1, 60))
    if draw(st.integers(0, 3)) == 0:
        content |= {"minimum_count": draw(st.integers(1, 3)), "minimum_unit": "months", "minimum_reference": "law"}
    return content


policies = st.sampled_from(sorted(SCOPES)).flatmap(lambda target: st.lists(contents(target), min_size=1, max_size=4))


@pytest.fixture
def everything(kept_main_store: SessionStore) -> None:
    """Sessions, items, memories, signals and recalls of many ages, with and without a session and a subject."""
    random, officer = Random(15), person("compliance")
    subjects = [make_subject("s-1"), make_subject("s-2", kind=SubjectKind.PROJECT), None]
    for number in range(14):
        name = f"{random.choice('ab')}_{number}"
        add_items(name, user("one"), call(number))
        add_items(name, *([output(number)] if number % 2 else [assistant("two")]))
        add_items(name, user("three"), assistant("four"))
        age(name, timedelta(days=random.randrange(70), hours=2))
        turns = [timedelta(days=random.randrange(70)) for _ in range(2)]
        with connection.cursor() as cursor:
            for turn in turns:
                values: list[Any] = [turn, name, name]
                cursor.execute(
                    "UPDATE agent_messages SET created_at = created_at - %s WHERE session_id = %s AND id <= (SELECT"
                    " percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM agent_messages WHERE session_id = %s)",
                    values,
                )
        SessionRecord.objects.filter(session_id=name).update(
            agent=random.choice(["", "bot", "clerk"]),
            labels=random.choice([[], ["vip"], ["dispute", "x"]]),
            is_encrypted=random.random() < 0.3,
            subject=random.choice(subjects),
            registered_at=datetime.now(UTC) - timedelta(days=70 + random.randrange(70)),
        )
    records = list(SessionRecord.objects.order_by("session_id"))

    def past() -> datetime:
        return datetime.now(UTC) - timedelta(days=random.randrange(70))

    for number in range(12):
        subject, record = random.choice(subjects), random.choice([*records[:4], None, None])
        Signal.objects.create(
            subject=subject,
            record_id=record.pk if record else None,
            kind=random.choice(["preference", "correction"]),
            agent=random.choice(["", "bot"]),
        )
        make = approved_memory if number % 3 else proposed
        memory = make(
            f"tea {number}", subject=subject, kind=random.choice(["fact", "preference"]), agents=["bot"][: number % 2]
        )
        if number % 4 == 1:
            Memory.objects.filter(pk=memory.pk).update(status="needs_revalidation")
        if record and record.subject_id in (None, memory.subject_id):
            Evidence.objects.create(memory=memory, record_id=record.pk, session_id=record.session_id, item_id="1")
        Memory.objects.filter(pk=memory.pk).update(proposed_at=past(), decided_at=random.choice([None, past()]))
        recall = Recall.objects.create(subject=subject, record_id=record.pk if record else None)
        if memory.status == "approved" and number % 2:
            RecalledMemory.objects.create(recall=recall, memory=memory, version=1, place=1, recalled_at=past())
    for rows, column in ((Signal, "created_at"), (Recall, "recalled_at")):
        for row in rows.objects.all():
            rows.objects.filter(pk=row.pk).update(**{column: past()})
    make_hold(records[0], by=officer)
    make_hold("vip", by=officer)
    held = subjects[1]
    assert held
    make_hold(held, by=officer)


@effort(max_examples=6, suppress_health_check=UNCHANGED)
@given(drawn=policies)
def test_a_run_takes_what_its_preview_counted(everything: None, drawn: list[dict[str, Any]]) -> None:
    check_run(drawn)


@pytest.mark.release
@effort(max_examples=40, suppress_health_check=UNCHANGED)
@given(drawn=policies)
def test_runs_take_what_their_previews_counted(everything: None, drawn: list[dict[str, Any]]) -> None:
    check_run(drawn)


def check_run(drawn: list[dict[str, Any]]) -> None:
    """A run under these policies takes what their previews count."""
    with transaction.atomic():
        for content in drawn:
            in_force(**content)
        rules = rules_in_force()
        counted = {
            (rule.version, place.place): (place.rows, place.items or 0)
            for rule in sweepable(DueRows(rules))
            for place in preview(rule, rules).places
        }
        for rule in rules:
            check_histogram(rule, rules, database_time())
        run = swept()
        results = SweepResult.objects.filter(run=run)
        assert {(each.version_id, each.place): (each.taken, each.items) for each in results} == counted
        assert {each.backlog for each in results} <= {0}
        transaction.set_rollback(True)


policies_of_other_rows = policies.filter(lambda drawn: drawn[0]["target"] not in ("sessions", "items"))


@effort(max_examples=10, suppress_health_check=UNCHANGED)
@given(drawn=policies_of_other_rows)
def test_the_query_says_what_the_resolution_says(everything: None, drawn: list[dict[str, Any]]) -> None:
    """Also of rows without a session, a subject or a decision."""
    check_query(drawn)


@pytest.mark.release
@effort(max_examples=40, suppress_health_check=UNCHANGED)
@given(drawn=policies_of_other_rows)
def test_queries_say_what_the_resolution_says(everything: None, drawn: list[dict[str, Any]]) -> None:
    check_query(drawn)


def check_query(drawn: list[dict[str, Any]]) -> None:
    """The query finds the rows that the resolution finds under these policies."""
    with transaction.atomic():
        for content in drawn:
            in_force(**content)
        rules, at = rules_in_force(), database_time()
        target = target_named(drawn[0]["target"])
        held = set(target.rows().filter(target.held()).values_list("pk", flat=True))
        wanted: dict[Any, set[Any]] = {}
        for row in target.rows():
            resolution = resolve(target.facts(row, (1,) if row.pk in held else ()), rules)
            if resolution.is_due(at) and resolution.winner:
                wanted.setdefault(resolution.winner.rule.version, set()).add(row.pk)
        assert taken_by(rules, at) == wanted
        for rule in rules:
            if rule.target == target.name:
                check_histogram(rule, rules, at)
        transaction.set_rollback(True)


def test_sessions_in_use_and_held_ones_are_counted_apart(kept_main_store: SessionStore, officer: User) -> None:
    """By their creation all are due. One that is held and in use counts as both, and is drawn as held."""
    old: dict[str, Any] = {"registered_at": now() - timedelta(days=60)}
    quiet = {**old, "last_activity_at": now() - timedelta(days=50)}
    for columns, count in ((quiet, 1), (old, 2)):
        for _ in range(count):
            make_session(**columns)
    for columns, count in ((quiet, 3), (old, 4)):
        for _ in range(count):
            make_hold(make_session(**columns), by=officer)
    rules = [in_force("Chats", clock="created", days=30).rule()]
    counted = preview(rules[0], rules)
    assert (counted.rows, counted.live, counted.held) == (1, 6, 7)
    (bucket,) = [each for each in histogram(rules[0], rules) if each.kept or each.taken or each.held]
    assert (bucket.days, bucket.taken, bucket.kept, bucket.held) == (60, 1, 2, 7)


def test_where_no_session_is_due_no_item_is(kept_main_store: SessionStore) -> None:
    add_items("young", "hi")
    rules = [in_force("Chats", days=30).rule()]
    counted = preview(rules[0], rules)
    assert (counted.rows, counted.items) == (0, 0)


def check_histogram(rule: Rule, rules: Sequence[Rule], at: datetime) -> None:
    """Each row that the rule is about is drawn once, as what comes of it."""
    buckets, due, target = histogram(rule, rules, at=at), DueRows(rules, at), target_named(rule.target)
    assert sum(bucket.taken for bucket in buckets) == due.due(rule).count()
    assert sum(bucket.held for bucket in buckets) == due.held(rule).count()
    everything = target.rows().filter(target.scope_q(rule)).count()
    assert sum(bucket.kept + bucket.taken + bucket.held for bucket in buckets) == everything


def taken_by(rules: Sequence[Rule], at: datetime) -> dict[Any, set[Any]]:
    due = DueRows(rules, at)
    found = {rule.version: set(due.due(rule).values_list("pk", flat=True)) for rule in rules if rule.length}
    return {version: rows for version, rows in found.items() if rows}


def test_holds_of_the_query_are_those_of_the_database(everything: None) -> None:
    query = "SELECT EXISTS (SELECT FROM memadmin_holds_on(%s, %s, %s))"
    target = target_named("items")
    found = set(target.rows().filter(target.held()).values_list("pk", flat=True))
    with connection.cursor() as cursor:
        for record in SessionRecord.objects.all():
            cursor.execute(query, [record.pk, record.subject_id, list(record.labels)])
            assert cursor.fetchone() == (record.pk in found,)
    assert 0 < len(found) < SessionRecord.objects.count()


# --- whole turns ------------------------------------------------------------------------------------------------------


def replayed() -> list[Any]:
    """What the SDK's Runner gives to the model in the next run of the session."""
    model = in_agent(lambda: talk(in_postgres("talk"), "And now?"))
    return list(model.calls[-1].input)


def accepted(items: Sequence[Any]) -> bool:
    """As a provider checks it: no output before its call."""
    calls = set()
    for item in items:
        if item.get("type") == "function_call":
            calls.add(item["call_id"])
        elif item.get("type") == "function_call_output" and item["call_id"] not in calls:
            return False
    return True


@pytest.fixture
def half_old(kept_main_store: SessionStore) -> None:
    """A session with an old turn, an old call of which the output is young, and a young turn."""
    add_items("talk", user("long ago"), call(1), output(1), assistant("done"))
    add_items("talk", user("do it when it is approved"), call(2))
    age("talk", timedelta(days=40))
    add_items("talk", output(2), assistant("it was approved"))
    run_sql("UPDATE agent_sessions SET updated_at = updated_at - interval '2 hours'")
    in_force("Old turns", target="items", clock="written", days=30)


def test_what_is_left_is_replayed(half_old: None) -> None:
    run = swept()
    result = SweepResult.objects.get()
    assert (result.items, result.left) == (4, {"kept_with_turn": 2})
    assert run.state == Run.State.COMPLETE
    items = replayed()
    assert accepted(items)
    assert [item.get("content") for item in items if item.get("role") == "user"] == [
        "do it when it is approved",
        "And now?",
    ]


def test_an_item_without_a_time_stays_and_does_not_keep_the_others(kept_main_store: SessionStore) -> None:
    for number in range(3):
        add_items("talk", user(f"question {number}"))
    age("talk", timedelta(days=40))
    run_sql("UPDATE agent_messages SET created_at = '-infinity' WHERE id = (SELECT min(id) FROM agent_messages)")
    version = in_force("Old turns", target="items", clock="written", days=30)
    assert preview(version.rule(), rules_in_force()).items == 2
    run = swept()
    assert SweepResult.objects.get(run=run).items == 2
    assert value_of("SELECT string_agg(created_at::text, ',') FROM agent_messages") == "-infinity"
    run = swept()
    assert SweepResult.objects.get(run=run).left == {"no_time": 1}
    assert run.state == Run.State.COMPLETE


def test_item_by_item_it_would_be_refused(half_old: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Purge, "learn", lambda self, items: None)
    swept()
    assert not accepted(replayed()), "the broken variant is not broken"


def test_what_was_learned_from_deleted_items_has_its_outcome(half_old: None) -> None:
    record = SessionRecord.objects.get()
    first = str(value_of("SELECT min(id) FROM agent_messages"))
    last = str(value_of("SELECT max(id) FROM agent_messages"))
    for item_id in (first, last):
        columns = {"record_id": record.pk, "session_id": "talk", "item_id": item_id}
        Evidence.objects.create(memory=approved_memory(f"tea {item_id}"), quote="tea", **columns)
        Signal.objects.create(kind="preference", text="tea", **columns)
    swept()
    assert list(Evidence.objects.order_by("quote").values_list("quote", "item_id")) == [("", ""), ("tea", last)]
    assert [signal.item_id for signal in Signal.objects.all()] == [last]


# --- far more than expected -------------------------------------------------------------------------------------------


@pytest.fixture
def many(kept_main_store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten sessions of forty days, of which the allowance for small numbers is none."""
    monkeypatch.setattr(starting, "SLACK", 2)
    for number in range(10):
        add_items(f"s-{number}", "text")
        age(f"s-{number}", timedelta(days=40))


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


def quiet_for_longer(session_id: str) -> None:
    run_sql(f"UPDATE agent_sessions SET updated_at = updated_at - interval '1 year' WHERE session_id = '{session_id}'")


def previewed(rows: int) -> dict[str, Any]:
    return {"rows": rows, "places": [{"place": "main", "rows": rows}]}


@pytest.mark.parametrize("answer", ["resume", "cancel"])
def test_more_than_twice_its_approved_preview_it_asks(many: None, officer: User, answer: str) -> None:
    """A policy of 365 days becomes one of a day, and far more is due than the second person saw."""
    before = in_force("Chats", days=365)
    run = swept()
    assert (run.state, SweepResult.objects.get().taken) == (Run.State.COMPLETE, 0)
    in_force(policy=before.policy, days=1, preview=previewed(3))
    run = swept()
    assert run.state == Run.State.STOPPED
    assert run.reason.startswith("Chats would take 10 rows in main; 3 were expected.")
    assert SessionRecord.objects.count() == 10
    if answer == "resume":
        run = carry_on(resume_run(run, by=officer))
        assert (run.state, SessionRecord.objects.count()) == (Run.State.COMPLETE, 0)
    else:
        cancel_run(run, by=officer)
        assert carry_on(run).state == Run.State.CANCELLED
        assert SessionRecord.objects.count() == 10
        assert swept().state == Run.State.STOPPED, "the next one asks again"


def test_a_place_that_the_preview_did_not_have_is_asked_about(many: None) -> None:
    in_force("Chats", preview={"rows": 0, "places": [{"place": "other", "rows": 0}]})
    assert swept().state == Run.State.STOPPED
    assert SessionRecord.objects.count() == 10


def test_a_clock_that_steps_ahead_makes_it_ask(many: None) -> None:
    """To the database a step of its clock is the same as rows that are older at once."""
    in_force("Chats", days=50)
    assert swept().state == Run.State.COMPLETE
    run_sql("UPDATE agent_sessions SET updated_at = updated_at - interval '1 year'")
    run = swept()
    assert (run.state, SessionRecord.objects.count()) == (Run.State.STOPPED, 10)
    assert "0 were expected" in run.reason


def test_a_clock_that_steps_while_it_runs_makes_it_take_no_more(many: None, monkeypatch: pytest.MonkeyPatch) -> None:
    in_force("Chats", days=50)
    quiet_for_longer("s-0")
    run = request_sweep()
    monkeypatch.setattr(due_rows, "Now", lambda: Now() + Value(timedelta(days=365)))
    assert carry_on(run).state == Run.State.COMPLETE
    assert (SessionRecord.objects.count(), SweepResult.objects.get().taken) == (9, 1)
    monkeypatch.setattr(due_rows, "Now", lambda: Now() - Value(timedelta(days=365)))
    quiet_for_longer("s-1")
    assert swept().state == Run.State.COMPLETE
    assert SessionRecord.objects.count() == 9


# --- zones ------------------------------------------------------------------------------------------------------------


def test_a_writer_in_another_zone_is_compensated_or_refused(agent_tables: None, settings: Any) -> None:
    attach_main_store()
    add_items("tokyo", "hello", timezone="Asia/Tokyo")
    in_force("Chats", days=1)
    in_force("Turns", target="items", clock="written", days=1)
    run = swept()
    assert run.exceptions == [["refused", "main", 2]]
    for result in SweepResult.objects.filter(run=run):
        assert result.state == "skipped"
        assert "off by +9 hours" in result.reason
    # Declared, and 23 hours old: by the clock on the wall it would be a day and eight hours.
    settings.AGENT_TIMEZONE = "Asia/Tokyo"
    attach_main_store()
    add_items("young", "hello", timezone="Asia/Tokyo")
    in_tokyo("23 hours")
    run = swept()
    assert (run.state, run.exceptions) == (Run.State.COMPLETE, [])
    assert value_of("SELECT count(*) FROM agent_messages") == 2
    in_tokyo("2 hours")
    run = swept()
    assert (run.state, run.exceptions) == (Run.State.COMPLETE, [])
    assert value_of("SELECT string_agg(session_id, ' ') FROM agent_messages") == "young"


def in_tokyo(longer: str) -> None:
    """A session is so much older, as if its agent in Tokyo had written it then."""
    run_sql(f"UPDATE agent_messages SET created_at = created_at - interval '{longer}' WHERE session_id = 'tokyo'")
    run_sql("SET TimeZone TO 'Asia/Tokyo'")
    run_sql(f"UPDATE agent_sessions SET updated_at = updated_at - interval '{longer}' WHERE session_id = 'tokyo'")
    run_sql("SET TimeZone TO 'UTC'")


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Caracas", "Europe/Riga"])
@pytest.mark.parametrize(
    ("quiet_since", "length", "due_from"),
    [
        ("2027-01-31 12:00", (1, "months"), "2027-02-28 12:00"),
        ("2028-01-31 12:00", (1, "months"), "2028-02-29 12:00"),
        ("2028-02-29 12:00", (1, "years"), "2029-02-28 12:00"),
        # Summer time begins and ends in Europe.
        ("2027-03-27 12:00", (1, "days"), "2027-03-28 12:00"),
        ("2027-10-30 23:30", (1, "days"), "2027-10-31 23:30"),
        ("2027-12-31 23:59", (2, "months"), "2028-02-29 23:59"),
    ],
)
def test_the_day_comes_by_the_calendar_in_utc(
    db: None, zone: str, quiet_since: str, length: tuple[int, str], due_from: str
) -> None:
    """Whatever the zone of the database's session."""
    from tests.builders import make_session

    since, until = (datetime.fromisoformat(f"{each}+00:00") for each in (quiet_since, due_from))
    make_session("quiet", last_activity_at=since, registered_at=since)
    version: PolicyVersion = in_force(days=None, action="delete", length_count=length[0], length_unit=length[1])
    run_sql(f"SET LOCAL TimeZone TO '{zone}'")
    rules = rules_in_force()
    (rule,) = [each for each in rules if each.version == version.pk]
    assert not DueRows(rules, until - timedelta(seconds=1)).due(rule).exists()
    assert DueRows(rules, until).due(rule).exists()
