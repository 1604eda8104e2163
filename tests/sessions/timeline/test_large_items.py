"""Of an item over the limit a page reads only both ends; it is still told and still paired."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from sessions_app.stores.base import ITEM_HEAD_BYTES
from sessions_app.timeline import Timeline, build_timeline, to_markdown
from sessions_app.timeline.blocks import Reference, TextBlock
from sessions_app.timeline.events import Compaction, Encrypted, Message, ToolCall
from tests.cases import for_each
from tests.sessions.timeline.items import COMPACTION, ENVELOPE, Raw, call, in_part, output, session, user

LONG = 'lorem ipsum, "dolor", ' * 20_000


def part_of(*batches: Sequence[Any], large: int) -> Timeline:
    items = session(*batches)
    items[large] = in_part(items[large])
    return build_timeline(items, starts_session=True, ends_session=True)


def test_large_output_is_paired_by_the_call_id_at_its_beginning() -> None:
    timeline = part_of([user("go")], [call("a"), output("a", LONG)], large=2)
    _, event = timeline.events
    assert isinstance(event, ToolCall)
    assert event.item_ids == ("2", "3")
    assert [item.id for item in event.large_items] == ["3"]
    (text,) = event.output
    assert isinstance(text, TextBlock)
    assert LONG.startswith(text.full)
    assert len(text.full) > ITEM_HEAD_BYTES * 0.9
    assert not timeline.findings


@for_each("separators", [(",", ":"), (", ", ": ")], ids=["compact", "spaced"])
def test_large_output_is_paired_by_the_call_id_at_its_end(separators: tuple[str, str]) -> None:
    backwards = {"output": LONG, "status": "completed", "call_id": "a", "type": "function_call_output"}
    timeline = part_of([user("go")], [call("a"), Raw(json.dumps(backwards, separators=separators))], large=2)
    _, event = timeline.events
    assert event.item_ids == ("2", "3")


def test_large_message_with_its_role_at_the_end() -> None:
    parts = [{"type": "input_text", "text": LONG}, {"type": "input_text", "text": "and then"}]
    timeline = part_of([{"content": parts, "role": "user"}], large=0)
    (event,) = timeline.events
    assert isinstance(event, Message)
    assert event.role == "user"


@for_each(
    "trap",
    [
        '","type":"function_call","call_id":"evil"}',
        ',"type":"function_call","call_id":"evil"}',
        '\\","call_id":"evil"}',
        ',"","type":"x"}',
    ],
)
@for_each("nested", [False, True])
def test_text_at_the_end_cannot_pass_for_members_of_the_item(trap: str, nested: bool) -> None:
    text = "x" * 300_000 + trap
    value = output("a", [{"type": "input_text", "text": text, "call_id": "evil"}] if nested else text)
    timeline = part_of([user("go")], [call("a"), call("evil"), value], large=3)
    assert [event.item_ids for event in timeline.events] == [("1",), ("2", "4"), ("3",)]


def test_last_of_duplicate_members_counts_also_when_it_is_at_the_end() -> None:
    raw = json.dumps(output("wrong", LONG))[:-1] + ',"call_id":"a"}'
    timeline = part_of([user("go")], [call("a"), Raw(raw)], large=2)
    assert [event.item_ids for event in timeline.events] == [("1",), ("2", "3")]


def test_half_a_name_is_not_taken_for_the_name() -> None:
    name = "n" * 400_000
    timeline = part_of([user("go")], [{"type": "function_call", "call_id": "a", "name": name}], large=1)
    _, event = timeline.events
    assert event.title == "function without a name"


def test_large_items_that_are_nothing_we_know() -> None:
    for raw in ("x" * 400_000, '"' + "x" * 400_000 + '"', "[" + "1," * 200_000 + "1]", "[" * 400_000, "{" * 400_000):
        part_of([Raw(raw)], large=0)


def test_markdown_says_that_the_rest_is_missing() -> None:
    timeline = part_of([user(LONG)], large=0)
    assert "Large item of" in to_markdown(timeline)


def test_large_envelope_and_compaction_tell_their_whole_size() -> None:
    (event,) = part_of([{**ENVELOPE, "payload": ENVELOPE["payload"] + "A" * 400_000}], large=0).events
    assert isinstance(event, Encrypted)
    assert event.byte_count > 400_000
    assert event.first_at is not None
    assert event.first_at.year == 2026
    (event,) = part_of([{**COMPACTION, "encrypted_content": "A" * 400_000}], large=0).events
    assert isinstance(event, Compaction)
    assert event.opaque_byte_count > 400_000


@for_each("padding", range(4))
def test_half_a_picture_is_not_displayed(padding: int) -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(300_000)).decode()
    filler = "x" * padding
    timeline = part_of(
        [user([{"type": "input_image", "detail": filler, "image_url": f"data:image/png;base64,{png}"}])], large=0
    )
    (event,) = timeline.events
    (block,) = event.body
    assert isinstance(block, Reference)
    timeline = part_of([{"type": "image_generation_call", "id": filler, "result": png}], large=0)
    (event,) = timeline.events
    assert isinstance(event, ToolCall)
    (block,) = event.output
    assert isinstance(block, Reference)
