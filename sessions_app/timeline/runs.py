"""Grouping into runs and turns. Stores keep neither; both follow from authors and batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from sessions_app.items import StoredItem
from sessions_app.timeline.decode import DecodedItem, decode
from sessions_app.timeline.events import Event, Message, NoteEvent, TimelineRun, Turn
from sessions_app.timeline.findings import is_same_batch
from sessions_app.timeline.values import text_in


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


def run_starts(items: Sequence[StoredItem]) -> list[int]:
    """Indexes of the items at which runs begin, in order; the first item of a window is one of them.

    Encrypted items do not show to which run they belong: one after another begins a run of its own here.
    """
    entries = [decode(item) for item in items]
    runs = group_into_runs([_outline(entry) for entry in entries], starts_session=False)
    heads = {run.anchor for run in runs}
    return [
        index
        for index, entry in enumerate(entries)
        if entry.stored.id in heads or (index and entry.is_envelope and entries[index - 1].is_envelope)
    ]


def _outline(entry: DecodedItem) -> Event:
    """The event of an item as far as the grouping reads it."""
    if entry.type == "message":
        return Message(items=(entry.stored,), title="", role=text_in(entry.fields, "role"))
    return NoteEvent(items=(entry.stored,), title="")


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
