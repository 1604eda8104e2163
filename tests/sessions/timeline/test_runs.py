"""Runs and turns are read from who speaks and from what was written together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessions_app.timeline import build_timeline
from sessions_app.timeline.events import Message, TimelineRun
from tests.sessions.timeline.items import (
    COMPACTION,
    ENVELOPE,
    FIRST_BATCH_AT,
    MINUTE,
    assistant,
    call,
    output,
    session,
    stored,
    user,
)


def runs_of(*batches: Sequence[Any], starts_session: bool = True, ends_session: bool = True) -> tuple[TimelineRun, ...]:
    return build_timeline(session(*batches), starts_session=starts_session, ends_session=ends_session).runs


def ids(run: TimelineRun) -> list[str]:
    return [item_id for event in run.events for item_id in event.item_ids]


def test_run_begins_at_the_users_text_and_a_turn_is_one_batch() -> None:
    first, second = runs_of(
        [user("weather?")],
        [call("a"), call("b"), output("a"), output("b")],
        [assistant("18 C")],
        [user("thanks")],
        [assistant("welcome")],
    )
    assert (first.number, second.number) == (1, 2)
    assert (first.item_count, first.turn_count) == (6, 2)
    assert [turn.written_at for turn in first.turns] == [FIRST_BATCH_AT + n * MINUTE for n in range(3)]
    assert second.started_at == FIRST_BATCH_AT + 3 * MINUTE
    assert first.anchor == "1"


def test_inputs_of_one_batch_are_one_run() -> None:
    (run,) = runs_of([{"role": "developer", "content": "be kind"}, user("one"), user("two")], [assistant("ok")])
    assert run.item_count == 4
    assert run.turn_count == 1


def test_imported_conversation_in_one_batch_still_has_its_runs() -> None:
    runs = runs_of([user("one"), assistant("1"), user("two"), assistant("2")])
    assert [ids(run) for run in runs] == [["1", "2"], ["3", "4"]]


def test_instructions_before_the_first_text_belong_to_its_run() -> None:
    runs = runs_of([{"role": "system", "content": "be kind"}], [user("one")], [assistant("1")])
    assert [ids(run) for run in runs] == [["1", "2", "3"]]


def test_runs_of_a_window_that_begins_later_have_no_number() -> None:
    runs = runs_of([output("a")], [assistant("18 C")], [user("thanks")], starts_session=False)
    assert [run.number for run in runs] == [None, None]


def test_what_compaction_left_is_one_run() -> None:
    runs = runs_of([user("one"), user("two"), COMPACTION], [user("three")], [assistant("3")])
    assert [ids(run) for run in runs] == [["1", "2", "3"], ["4", "5"]]


def test_neighbouring_encrypted_items_are_one_event() -> None:
    (run,) = runs_of([ENVELOPE], [ENVELOPE, ENVELOPE])
    (event,) = run.events
    assert event.title == "3 encrypted items"
    assert event.item_ids == ("1", "2", "3")


def test_late_output_leaves_no_empty_turn() -> None:
    first, second = runs_of([user("one")], [call("a")], [user("two")], [output("a")], [assistant("ok")])
    assert ids(first) == ["1", "2", "4"]
    assert [len(turn.events) for turn in second.turns] == [1, 1]


def test_store_without_times_still_shows_runs() -> None:
    values = [user("one"), call("a"), output("a"), assistant("1"), user("two")]
    items = [stored(value, id=str(number), written_at=None) for number, value in enumerate(values, start=1)]
    runs = build_timeline(items, starts_session=True, ends_session=True).runs
    assert [ids(run) for run in runs] == [["1", "2", "3", "4"], ["5"]]
    assert runs[0].turn_count == 1
    assert runs[0].started_at is None


def test_last_text_says_that_it_has_no_answer_yet() -> None:
    (run,) = runs_of([user("hello?")])
    (event,) = run.events
    assert isinstance(event, Message)
    assert event.notes == ("no answer yet",)
    (run,) = runs_of([user("hello?")], ends_session=False)
    assert not next(run.events).notes


def test_empty_window_is_an_empty_timeline() -> None:
    assert build_timeline([], starts_session=True, ends_session=True).runs == ()
