"""Chat messages become the items that an agent would have stored."""

from __future__ import annotations

from typing import Any

from sessions_app.transcripts.chat import convert
from tests.cases import for_each


def user(content: Any = "Where is my order?") -> dict[str, Any]:
    return {"role": "user", "content": content}


def call(name: str = "look_up", arguments: Any = "{}", **id_: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **id_}


def called(name: str, call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str, text: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def answered(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "status": "completed", "content": list(parts)}


PNG = "data:image/png;base64,iVBORw0KGgo="

CASES: dict[str, tuple[list[Any], list[list[dict[str, Any]]]]] = {
    "text of each role, each a turn": (
        [
            {"role": "system", "content": "Be kind."},
            {"role": "developer", "content": "Be brief."},
            user("Hi"),
            {"role": "assistant", "content": "Hello, é 🫖"},
        ],
        [
            [{"role": "system", "content": "Be kind."}],
            [{"role": "developer", "content": "Be brief."}],
            [{"role": "user", "content": "Hi"}],
            [{"role": "assistant", "content": "Hello, é 🫖"}],
        ],
    ),
    "null content plus a call is a call alone": (
        [{"role": "assistant", "content": None, "tool_calls": [call(id="c1")]}],
        [[called("look_up", "c1")]],
    ),
    "empty content plus a call is a call alone": (
        [{"role": "assistant", "content": "", "tool_calls": [call(id="c1")]}],
        [[called("look_up", "c1")]],
    ),
    "an empty list of parts plus a call is a call alone": (
        [{"role": "assistant", "content": [], "tool_calls": [call(id="c1")]}],
        [[called("look_up", "c1")]],
    ),
    "text and call are two items, the output joins their turn": (
        [
            {"role": "assistant", "content": "One moment.", "tool_calls": [call(id="c1")]},
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
            {"role": "assistant", "content": "Found it."},
        ],
        [
            [{"role": "assistant", "content": "One moment."}, called("look_up", "c1"), output("c1", "found")],
            [{"role": "assistant", "content": "Found it."}],
        ],
    ),
    "parallel calls come as calls, then outputs": (
        [
            {"role": "assistant", "tool_calls": [call("a", id="c1"), call("b", id="c2")]},
            {"role": "tool", "tool_call_id": "c2", "content": "second"},
            {"role": "tool", "tool_call_id": "c1", "content": "first"},
        ],
        [[called("a", "c1"), called("b", "c2"), output("c2", "second"), output("c1", "first")]],
    ),
    "an empty and a null output stay outputs": (
        [
            {"role": "assistant", "tool_calls": [call(id="c1"), call(id="c2")]},
            {"role": "tool", "tool_call_id": "c1", "content": ""},
            {"role": "tool", "tool_call_id": "c2", "content": None},
        ],
        [[called("look_up", "c1"), called("look_up", "c2"), output("c1", ""), output("c2", "")]],
    ),
    "an output without id answers the oldest open call of its name": (
        [
            {"role": "assistant", "tool_calls": [call("a", id="c1"), call("b", id="c2"), call("b", id="c3")]},
            {"role": "tool", "name": "b", "content": "second"},
            {"role": "tool", "content": "first"},
        ],
        [[called("a", "c1"), called("b", "c2"), called("b", "c3"), output("c2", "second"), output("c1", "first")]],
    ),
    "an output that answers nothing is kept": (
        [user("Hi"), {"role": "tool", "content": "lost"}],
        [[{"role": "user", "content": "Hi"}], [output("call_2", "lost")]],
    ),
    "a late output does not join the turn of a person": (
        [
            {"role": "assistant", "tool_calls": [call(id="c1")]},
            user("Still there?"),
            {"role": "tool", "tool_call_id": "c1", "content": "late"},
        ],
        [[called("look_up", "c1")], [{"role": "user", "content": "Still there?"}], [output("c1", "late")]],
    ),
    "a call and its output without any id find each other": (
        [{"role": "assistant", "tool_calls": [call(), call()]}, {"role": "tool", "content": "1"}],
        [[called("look_up", "call_1_1"), called("look_up", "call_1_2"), output("call_1_1", "1")]],
    ),
    "a legacy function call": (
        [
            {"role": "assistant", "content": None, "function_call": {"name": "look_up", "arguments": '{"a":1}'}},
            {"role": "function", "name": "look_up", "content": "found"},
        ],
        [[called("look_up", "call_1", '{"a":1}'), output("call_1", "found")]],
    ),
    "a custom tool and its output": (
        [
            {"role": "assistant", "tool_calls": [{"id": "c1", "custom": {"name": "sql", "input": "SELECT 1"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
        ],
        [
            [
                {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "SELECT 1"},
                {"type": "custom_tool_call_output", "call_id": "c1", "output": "1"},
            ]
        ],
    ),
    "numbers as ids, JSON as arguments and as output": (
        [
            {"role": "assistant", "tool_calls": [call(arguments={"name": "é"}, id=7)]},
            {"role": "tool", "tool_call_id": 7, "content": {"found": True}},
        ],
        [[called("look_up", "7", '{"name": "é"}'), output("7", '{"found": true}')]],
    ),
    "arguments that are no JSON stay as they are": (
        [{"role": "assistant", "tool_calls": [call(arguments='{"order": "SO-2', id="c1")]}],
        [[called("look_up", "c1", '{"order": "SO-2')]],
    ),
    "parts of a person's message are one item": (
        [
            user(
                [
                    {"type": "text", "text": "Broken:"},
                    {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                    {"type": "image_url", "image_url": PNG},
                    {"type": "file", "file": {"filename": "bill.pdf", "file_data": "JVBERi0="}},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                    "and this",
                ]
            )
        ],
        [
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "Broken:"},
                        {"type": "input_image", "image_url": PNG, "detail": "low"},
                        {"type": "input_image", "image_url": PNG, "detail": "auto"},
                        {"type": "input_file", "filename": "bill.pdf", "file_data": "JVBERi0="},
                        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                        {"type": "input_text", "text": "and this"},
                    ],
                }
            ]
        ],
    ),
    "parts of an answer": (
        [{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}]}],
        [[answered({"type": "output_text", "text": "a", "annotations": []}, {"type": "refusal", "refusal": "no"})]],
    ),
    "a refusal beside null content, and beside text": (
        [
            {"role": "assistant", "content": None, "refusal": "I cannot help with that."},
            {"role": "assistant", "content": "But:", "refusal": "no"},
        ],
        [
            [answered({"type": "refusal", "refusal": "I cannot help with that."})],
            [
                answered(
                    {"type": "output_text", "text": "But:", "annotations": []}, {"type": "refusal", "refusal": "no"}
                )
            ],
        ],
    ),
    "parts of an output": (
        [
            {"role": "assistant", "tool_calls": [call(id="c1")]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "18 °C"}]},
        ],
        [[called("look_up", "c1"), output("c1", [{"type": "input_text", "text": "18 °C"}])]],
    ),
    "a text that is empty is still something that was said": (
        [user(""), {"role": "assistant", "content": ""}],
        [[{"role": "user", "content": ""}], [{"role": "assistant", "content": ""}]],
    ),
}


@for_each(("messages", "turns"), CASES.values(), ids=CASES.keys())
def test_messages_become_items(messages: list[Any], turns: list[list[dict[str, Any]]]) -> None:
    converted = convert(messages)
    assert converted.turns == turns
    assert converted.problems == []


@for_each(
    ("message", "reason"),
    [
        ("hello", "the message is not an object"),
        ({"content": "hello"}, "it has no role"),
        ({"role": "critic", "content": "hello"}, "unknown role 'critic'"),
        ({"role": "user"}, "it has no content"),
        ({"role": "assistant", "content": None}, "it has no content"),
        ({"role": "user", "content": 42}, "its content is neither text nor a list of parts"),
        ({"role": "user", "content": [{"text": "hello"}]}, "a part of its content has no type"),
        ({"role": "assistant", "tool_calls": "look_up"}, "tool_calls is not a list"),
        ({"role": "assistant", "tool_calls": ["look_up"]}, "a tool call is not an object"),
        ({"role": "assistant", "tool_calls": [{"id": "c1"}]}, "a tool call has no function name"),
        ({"role": "assistant", "tool_calls": [call("", id="c1")]}, "a tool call has no name"),
    ],
)
def test_a_message_that_is_none_is_named_and_the_others_stay(message: object, reason: str) -> None:
    converted = convert([user("Hi"), message, user("Bye")])
    assert converted.problems == [f"message 2: {reason}"]
    assert [turn[0]["content"] for turn in converted.turns] == ["Hi", "Bye"]


def test_a_problem_quotes_nothing_of_what_was_said() -> None:
    secret = "my card is 4111 1111 1111 1111"
    assert secret not in convert([{"role": "user", "content": {"text": secret}}]).problems[0]
