"""A timeline as Markdown, for a download."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from sessions_app.timeline.blocks import Block, Data, NoticeBlock, Picture, Reference, TextBlock
from sessions_app.timeline.events import (
    Compaction,
    Encrypted,
    Event,
    Message,
    Reasoning,
    Timeline,
    ToolCall,
    UnreadableItem,
)

# What could load something, pass for markup or hide text in a viewer of the file. Emphasis and lists do no harm.
_ACTIVE = re.compile(r"[\\<\[&]")
_LINES = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def to_markdown(timeline: Timeline) -> str:
    """Markdown with runs as headings, speakers as sub-headings, messages as quotes, machine output as fenced blocks."""
    return "".join(f"{paragraph}\n\n" for paragraph in _paragraphs(timeline))


def _paragraphs(timeline: Timeline) -> Iterator[str]:
    for run in timeline.runs:
        name = f"Run {run.number}" if run.number else "Run"
        yield f"## {', '.join(filter(None, (name, _moment(run.started_at))))}"
        for event in run.events:
            yield from _event(event)


def _event(event: Event, level: int = 3) -> Iterator[str]:
    yield f"{'#' * level} {_heading(event)}"
    facts = [*(badge.word for badge in event.badges), *event.notes]
    if facts:
        yield f"*{_escaped(', '.join(facts))}*"
    for found in event.findings:
        yield f"**Finding: {_escaped(found.title)}.** {_escaped(found.sentence)}"
    for item in event.large_items:
        yield f"*Large item of {item.byte_count:,} bytes; only its beginning is here.*"
    for block in event.body:
        yield from _block(block)
    if isinstance(event, ToolCall):
        if event.output:
            yield f"Output{_item_number(event.output_item.id) if event.output_item else ''}:"
        for block in event.output:
            yield from _block(block)
        for nested in event.nested:
            yield from _event(nested, level=4)
    if isinstance(event, Reasoning | Compaction) and event.opaque_byte_count:
        yield f"*{event.opaque_byte_count:,} bytes that only the provider can read.*"
    if isinstance(event, Encrypted):
        yield f"*{event.byte_count:,} bytes, {_moment(event.first_at)} to {_moment(event.last_at)}.*"
        for sentence in event.sentences:
            yield f"*{_escaped(sentence)}*"
    if isinstance(event, UnreadableItem):
        yield f"*{_escaped(event.problem)}*"
        yield _fenced(event.raw.full)


def _heading(event: Event) -> str:
    words = [_escaped(event.title)]
    if event.detail:
        words.append(_escaped(event.detail))
    if isinstance(event, ToolCall | Message) and event.agent and event.agent != event.title:
        words.append(f"by {_escaped(event.agent)}")
    moment = f", {_moment(event.item.written_at)}" if event.item.written_at else ""
    if event.item.has_unreadable_time:
        moment = ", unreadable time"
    return f"{' '.join(words)}{moment}{_item_number(event.item.id)}"


def _item_number(item_id: str) -> str:
    return f", item {_escaped(item_id)}"


def _block(block: Block) -> Iterator[str]:
    match block:
        case TextBlock(style="prose"):
            if block.label:
                yield f"{_escaped(block.label)}:"
            yield _quoted(block.full)
        case TextBlock() | Data():
            if block.label:
                yield f"{_escaped(block.label)}:"
            yield _fenced(block.full, "json" if isinstance(block, Data) else "")
        case Picture():
            yield f"*{_escaped(block.label)}: picture of {block.byte_count:,} bytes, not in this file.*"
        case Reference():
            yield "*" + _escaped(": ".join(filter(None, (block.label, block.detail)))) + "*"
        case NoticeBlock():
            yield f"**{_escaped(' '.join(filter(None, (block.sentence, block.explanation))))}**"


def _quoted(text: str) -> str:
    return "\n".join(f"> {_escaped(line)}" for line in _LINES.split(text))


def _fenced(text: str, language: str = "") -> str:
    """A fenced block that its content cannot end: the fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _escaped(text: str) -> str:
    return _ACTIVE.sub(r"\\\g<0>", " ".join(_LINES.split(text)))


def _moment(instant: datetime | None) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC" if instant else "time unknown"
