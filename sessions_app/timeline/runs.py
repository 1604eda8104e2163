"""Grouping into runs and turns. Stores keep neither; both follow from authors and batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from sessions_app.timeline.events import Event, Message, TimelineRun, Turn
from sessions_app.timeline.findings import is_same_batch


def group_into_runs(events: Sequence[Event], *, starts_session: bool) -> tuple[TimelineRun, ...]:
    """Runs, oldest first. A run begins with each stretch of input, written together, that contains a user's text."""
    runs: list[list[Event]] = []
    for stretch in _stretches(events):
        begins = any(isinstance(event, Message) and event.role == "user" for event in stretch)
        if not runs or (begins and not _is_set_up(runs[-1])):
            runs.append([])
        runs[-1] += stretch
    return tuple(
        TimelineRun(number if starts_session else None, _turns(run)) for number, run in enumerate(runs, start=1)
    )


def _stretches(events: Sequence[Event]) -> list[list[Event]]:
    """Events, cut where input begins or ends, and between inputs that were not written together."""
    stretches: list[list[Event]] = [[event] for event in events[:1]]
    for before, event in pairwise(events):
        belongs = _is_input(before) == _is_input(event) and (
            not _is_input(event) or is_same_batch(before.item, event.item)
        )
        if belongs:
            stretches[-1].append(event)
        else:
            stretches.append([event])
    return stretches


def _is_input(event: Event) -> bool:
    return isinstance(event, Message) and event.is_input


def _is_set_up(events: Iterable[Event]) -> bool:
    """Whether there were only instructions so far: they belong to the following run."""
    return all(isinstance(event, Message) and event.role in ("system", "developer") for event in events)


def _turns(events: Sequence[Event]) -> tuple[Turn, ...]:
    """Batches of one run. In a store without times the input is one batch and the rest another."""
    batches = groupby(events, key=lambda event: (event.item.written_at, _is_input(event)))
    return tuple(Turn(written_at, tuple(batch)) for (written_at, _), batch in batches)
