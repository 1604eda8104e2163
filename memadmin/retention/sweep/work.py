"""The work of a sweep: policies and holds are read again in every chunk, and one place after the other is worked on."""

from __future__ import annotations

from django.db.models import F
from django.db.models.functions import Now

from memadmin import audit
from memadmin.retention import audit_events
from memadmin.retention.holds.guard import keep_holds_out
from memadmin.retention.models import SweepResult
from memadmin.retention.policies.rules import Rule
from memadmin.retention.sweep.ending import finish_result, vacuum_after
from memadmin.retention.sweep.pressure import TooManyDeadRows, clear_dead_rows, wait_for_database
from memadmin.retention.sweep.starting import COUNTING, expected_rows, instant_of, is_too_much, start
from memadmin.retention.sweep.tables import agents_rows
from memadmin.retention.targets.base import CannotSweep, Taken, target_named
from memadmin.retention.targets.due_rows import DueRows, database_time
from memadmin.runs.engine import Lease, NeedsDecision, stoppable
from memadmin.runs.models import Run
from sessions_app.stores.base import StoreUnavailable

State = SweepResult.State

POLICY_CHANGED = "The policy was changed or ended during the run: the next run follows the new version."

AWAY = "away"
"""Code of the run's exception: the store did not respond."""

REFUSED = "refused"
"""Code of the run's exception: the age of what is in the store is not certain, or the store was removed."""


def work(lease: Lease) -> None:
    """Works on a sweep from where it is. Raises what the lease raises, Wait and NeedsDecision."""
    start(lease)
    questions = []
    for result in SweepResult.objects.filter(run=lease.run).unfinished().select_related("version__policy"):
        try:
            sweep(lease, result)
        except NeedsDecision as question:
            # The other policies do not wait for the answer.
            questions.append(question)
    if questions:
        raise questions[0]
    for result in SweepResult.objects.filter(run=lease.run, backlog__isnull=True).select_related("version__policy"):
        finish_result(lease, result)
    vacuum_after(lease)


def sweep(lease: Lease, result: SweepResult) -> None:
    """Takes what is due under one version at one place. A store that does not respond is skipped, and named."""
    rule = result.version.rule()
    target = target_named(rule.target)
    ask_if_too_much(lease, result)
    try:
        if result.started_at is None:
            prepare(lease, result)
        while True:
            try:
                target.take_all(lease, lambda run, at_most: take_chunk(lease, run, result, rule, at_most), result)
                return
            except TooManyDeadRows as found:
                clear_dead_rows(lease, found.table)
    except TooMuch:
        result.refresh_from_db()
        ask(lease, result, f"has taken {result.taken:,} rows", result.previewed or expected_rows(result) or 0)
    except CannotSweep as problem:
        skip(lease, result, str(problem), code=REFUSED)
    except StoreUnavailable:
        skip(lease, result, f"The store {result.place} did not respond. The next run includes it.", code=AWAY)


def prepare(lease: Lease, result: SweepResult) -> None:
    """What comes before the first chunk at a place, once however often the run is handed over."""
    lease.extend(COUNTING)
    with stoppable():
        target_named(result.version.target).begin(result.place)
    with lease.chunk():
        SweepResult.objects.filter(pk=result.pk).update(started_at=Now(), state=State.RUNNING)


def take_chunk(lease: Lease, run: Run, result: SweepResult, rule: Rule, at_most: int) -> int:
    """One chunk: in its transaction no hold can be placed, and the policies are those in force now."""
    result.refresh_from_db(from_queryset=SweepResult.objects.select_for_update())
    if result.state in SweepResult.FINISHED:
        return 0
    target = target_named(rule.target)
    # The earlier of both: the database's clock may have stepped back.
    due = DueRows.now(min(instant_of(lease), database_time()))
    if due.rule_of(rule.version) is None and not target.has_begun(rule, result.place):
        close(result, State.SKIPPED, POLICY_CHANGED)
        return 0
    wait_for_database(run.cursor)
    refuse_too_much(result)
    keep_holds_out()
    taken = target.take_some(due, rule, result, at_most=at_most)
    for table, count in agents_rows(rule, result.place, taken).items():
        taken.tables[table] = taken.tables.get(table, 0) + count
    save(result, taken)
    for code, count in taken.left.items():
        run.add_exception(code, result.place, count)
    run.count(items=taken.items)
    if taken.taken or taken.items:
        audit.record(
            audit_events.ROWS_EXPIRED,
            target=result.version,
            shown=taken.shown,
            counters={"rows": taken.taken, "items": taken.items, "held": taken.held},
        )
    if not taken.passed:
        in_force = due.rule_of(rule.version) is not None
        close(result, State.DONE if in_force else State.SKIPPED, "" if in_force else POLICY_CHANGED)
    return taken.passed


def save(result: SweepResult, taken: Taken) -> None:
    """Adds the counts of a chunk to its result, in the chunk's transaction."""
    tables, left = {**result.tables}, {**result.left}
    for table, count in taken.tables.items():
        tables[table] = tables.get(table, 0) + count
    for code, count in taken.left.items():
        left[code] = left.get(code, 0) + count
    columns = {
        "taken": F("taken") + taken.taken,
        "items": F("items") + taken.items,
        "held": F("held") + taken.held,
        "tables": tables,
        "left": left,
        "cursor": taken.cursor or result.cursor,
        "state": State.RUNNING,
    }
    SweepResult.objects.filter(pk=result.pk).update(**columns)


def close(result: SweepResult, state: str, reason: str = "") -> None:
    SweepResult.objects.filter(pk=result.pk).update(state=state, reason=reason, ended_at=Now(), cursor={})


def skip(lease: Lease, result: SweepResult, reason: str, *, code: str) -> None:
    with lease.chunk() as run:
        close(result, State.SKIPPED, reason)
        run.add_exception(code, result.place)


def refuse_too_much(result: SweepResult) -> None:
    """Raises TooMuch if more was taken than twice of what was due at the start: then the clock or the data moved.

    Where not everything could be counted, what was expected stands for it.
    """
    if result.has_asked:
        return
    counted = result.previewed if result.previewed is not None else expected_rows(result)
    if counted is not None and is_too_much(result.taken, counted):
        raise TooMuch


class TooMuch(Exception):
    """The run has taken more than twice of its own count. Nothing of this chunk was changed."""


def ask_if_too_much(lease: Lease, result: SweepResult) -> None:
    """Stops the run once for each result that would take, or took, more than twice of what was expected.

    A person who resumes the run has decided that this is right.
    """
    expected = expected_rows(result)
    if expected is None or result.has_asked or not is_too_much(result.previewed or 0, expected):
        return
    ask(lease, result, f"would take {result.previewed:,} rows", expected)


def ask(lease: Lease, result: SweepResult, what: str, expected: int) -> None:
    """Raises NeedsDecision. Only when a person resumes the stopped run the question is answered: see `answer`."""
    with lease.chunk() as run:
        run.cursor = {**run.cursor, ASKS: sorted({*run.cursor.get(ASKS, []), result.pk})}
    place = f" in {result.place}" if result.place else ""
    raise NeedsDecision(
        f"{result.version.policy} {what}{place}; {expected:,} were expected. Resume the run if that is right, or"
        " cancel it."
    )


ASKS = "asks"
"""Key of the run's cursor: ids of the results about which a person is asked."""


def answer(run: Run) -> None:
    """A person resumed the stopped run: what it asked is right. In the transaction of that, with the run locked."""
    SweepResult.objects.filter(pk__in=run.cursor.get(ASKS, [])).update(has_asked=True)
