"""Converter of the messages of a chat transcript into items as the agents' SDK stores them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sessions_app.transcripts.parsing import identifier

Item: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class Converted:
    turns: list[list[Item]] = field(default_factory=list)
    """Items by the batches in which an agent would have written them."""
    problems: list[str] = field(default_factory=list)
    """One sentence for each message that is not among the items; quotes no content."""


class _NoItem(Exception):
    """The message cannot become an item; its text is the reason."""


@dataclass(frozen=True, slots=True)
class _Call:
    call_id: str
    name: str
    output_type: str


def convert(messages: Sequence[object]) -> Converted:
    """Items for each text, each tool call and each tool output, in the order of the messages.

    Like the SDK's runner it gives each message of a person a batch of its own, and puts an answer, its calls and their
    outputs into one. An output without an id answers the oldest open call of its name.
    """
    converted = Converted()
    open_calls: list[_Call] = []
    is_in_answer = False
    for number, message in enumerate(messages, 1):
        try:
            items = _items(message, number, open_calls)
        except _NoItem as reason:
            converted.problems.append(f"message {number}: {reason}")
            continue
        except RecursionError:
            converted.problems.append(f"message {number}: it is nested too deeply")
            continue
        is_output = items[0]["type"].endswith("_output") if "type" in items[0] else False
        if is_output and is_in_answer:
            converted.turns[-1] += items
        else:
            converted.turns.append(items)
        is_in_answer = is_output or items[0].get("role") == "assistant" or items[0].get("type", "").endswith("_call")
    return converted


def _items(message: object, number: int, open_calls: list[_Call]) -> list[Item]:
    """Items of a message, at least one. Calls are added to `open_calls`; an output removes the call that it answers."""
    if not isinstance(message, dict):
        raise _NoItem("the message is not an object")
    match message.get("role"):
        case "user" | "system" | "developer" as role:
            return [{"role": role, "content": _content(message)}]
        case "assistant":
            return _answer(message, number, open_calls)
        case "tool" | "function":
            return [_output(message, number, open_calls)]
        case str(role):
            raise _NoItem(f"unknown role {role[:40]!r}")
        case _:
            raise _NoItem("it has no role")


def _answer(message: Mapping[str, Any], number: int, open_calls: list[_Call]) -> list[Item]:
    called = message.get("tool_calls") or []
    if not isinstance(called, list):
        raise _NoItem("tool_calls is not a list")
    calls = [_call(call, f"call_{number}_{place}") for place, call in enumerate(called, 1)]
    if legacy := message.get("function_call"):
        calls.append(_call({"function": legacy}, f"call_{number}"))
    content, refusal = message.get("content"), message.get("refusal")
    texts: list[Item] = []
    if refusal or (isinstance(content, list) and content):
        parts = [_answer_part(part) for part in (content if isinstance(content, list) else [content or ""]) if part]
        parts += [{"type": "refusal", "refusal": refusal}] if refusal else []
        texts.append({"type": "message", "role": "assistant", "status": "completed", "content": parts})
    elif content or not calls:
        texts.append({"role": "assistant", "content": _content(message)})
    for call in calls:
        kind = "custom_tool_call" if call["type"] == "custom_tool_call" else "function_call"
        open_calls.append(_Call(call["call_id"], call["name"], f"{kind}_output"))
    return texts + calls


def _call(call: object, id_if_missing: str) -> Item:
    if not isinstance(call, dict):
        raise _NoItem("a tool call is not an object")
    call_id = identifier(call.get("id")) or id_if_missing
    if isinstance(custom := call.get("custom"), dict):
        return {
            "type": "custom_tool_call",
            "call_id": call_id,
            "name": _name(custom),
            "input": _text(custom.get("input")),
        }
    function = call.get("function")
    if not isinstance(function, dict):
        raise _NoItem("a tool call has no function name")
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": _name(function),
        "arguments": _text(function.get("arguments")),
    }


def _output(message: Mapping[str, Any], number: int, open_calls: list[_Call]) -> Item:
    call_id, name = identifier(message.get("tool_call_id")), message.get("name")
    answered = next(
        (call for call in open_calls if (call.call_id == call_id if call_id else name in (None, "", call.name))), None
    )
    if answered:
        open_calls.remove(answered)
    content: Any = message.get("content")
    return {
        "type": answered.output_type if answered else "function_call_output",
        "call_id": call_id or (answered.call_id if answered else f"call_{number}"),
        "output": [_part(part) for part in content] if _is_parts(content) else _text(content),
    }


def _content(message: Mapping[str, Any]) -> str | list[Item]:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return [_part(part) for part in content]
    if content is None:
        raise _NoItem("it has no content")
    raise _NoItem("its content is neither text nor a list of parts")


def _part(part: object) -> Item:
    """Part of the content for the model. Kinds that the Responses API does not know are kept unchanged."""
    match part:
        case str(text) | {"type": "text", "text": str(text)}:
            return {"type": "input_text", "text": text}
        case {"type": "image_url", "image_url": {"url": url, **others}}:
            return {"type": "input_image", "image_url": url, "detail": others.get("detail", "auto")}
        case {"type": "image_url", "image_url": str(url)}:
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case {"type": "file", "file": dict(file)}:
            return {**file, "type": "input_file"}
    return _as_given(part)


def _answer_part(part: object) -> Item:
    match part:
        case str(text) | {"type": "text", "text": str(text)}:
            return {"type": "output_text", "text": text, "annotations": []}
    return _as_given(part)


def _as_given(part: object) -> Item:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise _NoItem("a part of its content has no type")
    return part


def _is_parts(content: object) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(part, dict) and "type" in part for part in content)
    )


def _name(called: Mapping[str, Any]) -> str:
    name = called.get("name")
    if not isinstance(name, str) or not name:
        raise _NoItem("a tool call has no name")
    return name


def _text(value: object) -> str:
    """Arguments or output as text, as the SDK has them; some writers store JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
