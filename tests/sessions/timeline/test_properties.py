"""What holds for any session, tried on made-up ones."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.items import StoredItem
from sessions_app.timeline import Inspector, Timeline, build_timeline, to_markdown
from sessions_app.timeline.decode import decode
from tests.sessions.timeline.items import (
    COMPACTION,
    ENVELOPE,
    EXAMPLES,
    FIRST_BATCH_AT,
    Raw,
    assistant,
    call,
    handoff,
    in_part,
    output,
    stored,
    user,
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def spoiled_examples(draw: st.DrawFn) -> Any:
    """An example with members replaced, removed or moved, at any depth."""
    item = json.loads(json.dumps(draw(st.sampled_from(EXAMPLES))["item"]))
    for _ in range(draw(st.integers(0, 3))):
        spot = item
        while isinstance(spot, dict | list) and spot:
            key = draw(st.sampled_from(sorted(spot) if isinstance(spot, dict) else list(range(len(spot)))))
            if draw(st.booleans()) or not isinstance(spot[key], dict | list):
                spot[key] = draw(anything)
                break
            spot = spot[key]
    return item


raws = (
    st.text(st.characters(), max_size=40).map(Raw)
    | anything
    | spoiled_examples()
    | spoiled_examples().map(lambda item: Raw(json.dumps(item)[:-1]))
)

CALL_IDS = st.sampled_from(["a", "b"])
speech = st.one_of(
    st.sampled_from([user("hi"), assistant("hello"), {"role": "developer", "content": "x"}, ENVELOPE, COMPACTION]),
    st.just(ENVELOPE),
    CALL_IDS.map(call),
    CALL_IDS.map(output),
    CALL_IDS.map(lambda call_id: handoff(call_id, "Billing")[0]),
    CALL_IDS.map(lambda call_id: handoff(call_id, "Billing")[1]),
    st.just({"type": "mcp_approval_request", "id": "r", "name": "ask"}),
    st.just({"type": "mcp_approval_response", "approval_request_id": "r", "approve": True}),
    st.just({"type": "tool_search_call", "call_id": None}),
    st.just({"type": "tool_search_output", "call_id": None}),
    st.just(Raw("{broken")),
)


@st.composite
def sessions(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> list[StoredItem]:
    """Items in the agent's order; some share a batch, and the row ids may be out of order."""
    contents = draw(st.lists(values, max_size=14))
    ids = draw(st.permutations(range(1, len(contents) + 1))) if draw(st.booleans()) else range(1, len(contents) + 1)
    batch = 0
    items = []
    for value, id in zip(contents, ids, strict=True):
        batch += draw(st.booleans())
        items.append(stored(value, id=str(id), written_at=FIRST_BATCH_AT + timedelta(seconds=batch)))
    # A store orders by time, then by row.
    return sorted(items, key=lambda item: item.position)


def whole(items: list[StoredItem]) -> Timeline:
    return build_timeline(items, starts_session=True, ends_session=True)


@given(sessions(raws), st.booleans(), st.booleans())
@settings(max_examples=120, deadline=None)
def test_any_text_gives_a_timeline_with_each_item_once(
    items: list[StoredItem], starts_session: bool, ends_session: bool
) -> None:
    timeline = build_timeline(items, starts_session=starts_session, ends_session=ends_session)
    told = [item_id for event in timeline.events for item_id in event.item_ids]
    assert sorted(told) == sorted(item.id for item in items)
    to_markdown(timeline).encode()
    for event in timeline.events:
        repr(event).encode(errors="surrogatepass")


@given(raws, st.integers(1, 60), st.integers(1, 60))
@settings(max_examples=120, deadline=None)
def test_any_text_can_be_read_in_part(value: Any, head: int, tail: int) -> None:
    item = stored(value)
    part = StoredItem(
        item.id, item.position, item.raw[:head], item.byte_count, item.written_at, item.raw[-tail:] or " "
    )
    timeline = whole([part])
    assert len(list(timeline.events)) == 1
    to_markdown(timeline).encode()


@given(sessions(speech), st.lists(st.integers(0, 14), max_size=3))
@settings(max_examples=120, deadline=None)
def test_inspection_in_batches_finds_what_the_timeline_finds(items: list[StoredItem], cuts: list[int]) -> None:
    inspector = Inspector()
    edges = [0, *sorted(cuts), len(items)]
    for start, end in pairwise(edges):
        inspector.feed(items[start:end])
    assert inspector.finish().findings == whole(items).findings


@given(sessions(speech), st.integers(0, 14), st.integers(0, 14))
@settings(max_examples=200, deadline=None)
def test_window_finds_nothing_that_the_whole_session_does_not(items: list[StoredItem], start: int, end: int) -> None:
    window = items[start:end]
    timeline = build_timeline(window, starts_session=start == 0, ends_session=end >= len(items))
    assert {(found.code, found.item) for found in timeline.findings} <= {
        (found.code, found.item) for found in whole(items).findings
    }


@given(st.dictionaries(st.sampled_from(["type", "call_id", "output", "status", "x"]), anything, min_size=1))
@settings(max_examples=120, deadline=None)
def test_members_recovered_from_both_ends_are_true(value: Any) -> None:
    """Whatever is read from a part of an item by which it is paired is what the whole item says."""
    padded = {"filler": "f" * 40_000, **value, "more": ["m" * 200_000]}
    item = stored({**padded, **value})
    whole_fields, part_fields = decode(item).fields, decode(in_part(item)).fields
    for member in ("type", "call_id", "status"):
        if member in part_fields:
            assert repr(part_fields[member]) == repr(whole_fields[member])
