"""The work of a sweep: policies and holds are read again in every chunk, and one place after the other is worked on."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from django.db.models.functions import Now

from memadmin import audit
from memadmin.retention import audit_events
from memadmin.retention.holds.guard import keep_holds_out
from memadmin.retention.models import SweepResult
from memadmin.retention.policies.rules import Rule
from memadmin.retention.sweep.ending import finish_result, vacuum_after
from memadmin.retention.sweep.pressure import TooManyDeadRows, clear_dead_rows, wait_for_database
from memadmin.retention.sweep.starting import COUNTING, expected_rows, instant_of, is_too_much, start
from memadmin.retention.targets.base import CannotSweep, SweepChunk, target_named
from memadmin.retention.targets.due_rows import DueRows
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
    rules = {result.version_id: result.version.rule()}
    ask_if_too_much(lease, result)
    try:
        if result.started_at is None:
            prepare(lease, result)
        while True:
            try:
                lease.in_chunks(
                    lambda run, at_most: work_on_chunk(lease, run, result, rules, at_most),
                    most_rows=target_named(result.version.target).rows_at_once,
                )
                return
            except TooManyDeadRows as found:
                clear_dead_rows(lease, found.table)
    except TooMuch:
        ask(lease, result, f"has taken {result.taken:,} rows", result.previewed or expected_rows(result) or 0)
    except CannotSweep as problem:
        skip(lease, result, str(problem), code=REFUSED)
    except StoreUnavailable:
        skip(lease, result, f"The store {result.place} did not respond. The next run includes it.", code=AWAY)


def prepare(lease: Lease, result: SweepResult) -> None:
    """Prepares the work at a place, before its first chunk: once, however often the run is handed over."""
    lease.extend(COUNTING)
    with stoppable():
        target_named(result.version.target).begin(result.place)
    with lease.chunk():
        SweepResult.objects.filter(pk=result.pk).update(started_at=Now(), state=State.RUNNING)


def work_on_chunk(lease: Lease, run: Run, result: SweepResult, rules: dict[UUID, Rule], at_most: int) -> int:
    """One chunk: in its transaction no hold can be placed, and the policies are those in force now.

    `result` is as the last chunk saved it: the run, whose row is locked, has one process. `rules` are those known, by
    version.
    """
    rule = rules[result.version_id]
    wait_for_database(run.cursor)
    refuse_too_much(result)
    keep_holds_out()
    due = DueRows.of_chunk(instant_of(lease), rules)
    is_in_force = due.rule_of(rule.version) is not None
    target = target_named(rule.target)
    if not is_in_force and not target.has_begun(rule, result.place):
        close(result, State.SKIPPED, POLICY_CHANGED)
        return 0
    chunk = target.expire_chunk(due, rule, result, at_most=at_most)
    save(result, chunk)
    for code, count in chunk.left.items():
        run.add_exception(code, result.place, count)
    run.count(items=chunk.items)
    if chunk.taken or chunk.items:
        audit.record(
            audit_events.ROWS_EXPIRED,
            target=result.version,
            shown=chunk.shown,
            counters={"rows": chunk.taken, "items": chunk.items, "held": chunk.held},
        )
    if not chunk.passed:
        close(result, State.DONE if is_in_force else State.SKIPPED, "" if is_in_force else POLICY_CHANGED)
    return chunk.passed


def save(result: SweepResult, chunk: SweepChunk) -> None:
    """Adds the counts of a chunk to its result, in the chunk's transaction."""
    result.taken += chunk.taken
    result.items += chunk.items
    result.held += chunk.held
    result.tables = Counter(result.tables) + chunk.tables
    result.left = Counter(result.left) + chunk.left
    result.cursor = chunk.cursor or result.cursor
    result.save(update_fields=("taken", "items", "held", "tables", "left", "cursor"))


def close(result: SweepResult, state: str, reason: str = "") -> None:
    SweepResult.objects.filter(pk=result.pk).update(state=state, reason=reason, ended_at=Now(), cursor={})


def skip(lease: Lease, result: SweepResult, reason: str, *, code: str) -> None:
    with lease.chunk() as run:
        close(result, State.SKIPPED, reason)
        run.add_exception(code, result.place)


def refuse_too_much(result: SweepResult) -> None:
    """Raises TooMuch if more was taken than twice of what was due at the start: then the clock or the data moved.

    Where not everything could be counted, the expected number takes the place of the count.
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
