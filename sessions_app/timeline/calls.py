"""Parsed tool calls and outputs, and helpers shared by the parsers."""

from __future__ import annotations

from dataclasses import dataclass

from memadmin.values.shortened import length_of
from sessions_app.timeline.blocks import Block, NoticeBlock
from sessions_app.timeline.events import ToolState
from sessions_app.timeline.parts import PARSED_CHARACTERS, json_inside, payload_blocks
from sessions_app.timeline.values import Fields, as_fields, one_line, text_in

PARSED_NOTE = "stored as a JSON string, shown parsed"
ARGUMENTS_SHOWN = 4
SENTENCE_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class Asked:
    """Parsed call of a tool."""

    title: str
    detail: str = ""
    body: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()
    is_named: bool = False
    """Whether the title is the tool's own name."""


@dataclass(frozen=True, slots=True)
class Output:
    """Parsed output of a tool."""

    body: tuple[Block, ...] = ()
    state: ToolState = ToolState.OK
    notes: tuple[str, ...] = ()


def arguments_line(arguments: object) -> str:
    """Arguments on one line, written as in code: `(city: "Berlin", days: 3)`."""
    members = list(as_fields(arguments).items())
    if not members:
        return "()"
    shown = [f"{one_line(name, 40)}: {_argument(value)}" for name, value in members[:ARGUMENTS_SHOWN]]
    return f"({', '.join(shown)}{', …' if len(members) > ARGUMENTS_SHOWN else ''})"


def _argument(value: object) -> str:
    return f'"{one_line(value, 40)}"' if isinstance(value, str) else one_line(value, 40)


def asked_with_arguments(title: str, arguments: object, *, is_named: bool = True, notes: tuple[str, ...] = ()) -> Asked:
    """Call whose arguments are an object, JSON in a string as the SDK stores it, or a string that is not JSON."""
    if not isinstance(arguments, str):
        line = arguments_line(arguments) if isinstance(arguments, dict) else one_line(arguments or "")
        return Asked(title, line, payload_blocks(arguments, "Arguments"), notes, is_named)
    parsed = json_inside(arguments)
    if isinstance(parsed, dict):
        body = payload_blocks(arguments, "Arguments") if parsed else ()
        return Asked(title, arguments_line(parsed), body, (*notes, PARSED_NOTE) if parsed else notes, is_named)
    if parsed is None and arguments.strip() and length_of(arguments) <= PARSED_CHARACTERS:
        notes = (*notes, "the arguments are not valid JSON")
    return Asked(title, one_line(arguments), payload_blocks(arguments, "Arguments"), notes, is_named)


def output_of(payload: object) -> Output:
    """Output without a special form."""
    is_parsed = isinstance(payload, str) and json_inside(payload) is not None
    return Output(payload_blocks(payload), notes=(PARSED_NOTE,) if is_parsed else ())


def failed(sentence: object, explanation: str = "", state: ToolState = ToolState.FAILED) -> Output:
    notice = NoticeBlock("danger", one_line(sentence, SENTENCE_CHARACTERS), explanation)
    whole = payload_blocks(sentence, "Full text") if len(notice.sentence) >= SENTENCE_CHARACTERS else ()
    return Output((notice, *whole), state)


def status_state(fields: Fields) -> ToolState:
    """State by the status of the item; ok without one."""
    match text_in(fields, "status"):
        case "failed":
            return ToolState.FAILED
        case "in_progress" | "incomplete" | "searching" | "interpreting" | "generating" | "calling":
            return ToolState.IN_PROGRESS
    return ToolState.OK
