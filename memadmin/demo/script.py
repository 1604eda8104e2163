"""Parts of a demo story, and the texts with which the scripted model answers.

A story is played by the SDK's real runner; only the model is replaced. With a real model the user messages are
the same, and the scripted answers are not used.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from agents import Agent
from agents.items import TResponseInputItem, TResponseOutputItem
from openai.types.responses import (
    ResponseCodeInterpreterToolCall,
    ResponseFileSearchToolCall,
    ResponseFunctionToolCall,
    ResponseFunctionWebSearch,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_output_item import ImageGenerationCall, McpCall, McpListTools

from memadmin.demo.bots import Person

PICTURES = Path(__file__).with_name("pictures")

Answer: TypeAlias = Sequence[TResponseOutputItem]
"""Output of the model for one call: texts, tool calls, reasoning, in this order."""


class ExchangeEnding(Enum):
    """End of an exchange."""

    ANSWERED = "answered"
    CANCELLED = "the person closes the window while the answer comes in"
    LEFT_OPEN = "a tool waits for approval, and nobody has decided yet"
    APPROVED = "a tool waits for approval, and a person of the shop agrees"
    REJECTED = "a tool waits for approval, and a person of the shop does not agree"


class Keeping(Enum):
    """Session class of the bot."""

    PLAIN = "as it is"
    ENCRYPTED = "in the SDK's EncryptedSession"
    COMPACTED = "in the SDK's OpenAIResponsesCompactionSession"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user message, and all steps of the bot until its answer: one run."""

    said: str | list[TResponseInputItem]
    answers: Sequence[Answer]
    after: timedelta = timedelta(minutes=2)
    """Time since the previous exchange."""
    is_streamed: bool = False
    ending: ExchangeEnding = ExchangeEnding.ANSWERED
    takes_back: int = 0
    """Number of items popped first, because the person corrects a message."""


@dataclass(frozen=True, slots=True)
class Story:
    """One complete session."""

    session_id: str
    person: str
    bot: Agent[Person]
    began: timedelta
    """Time since its beginning."""
    exchanges: Sequence[Exchange]
    keeping: Keeping = Keeping.PLAIN
    items_read_back: int | None = None
    """Number of items that the bot reads back; None for all."""


@dataclass(slots=True)
class _Compacted:
    output: list[dict[str, Any]]
    usage: None = None


@dataclass(slots=True)
class FakeCompaction:
    """Substitute for `client.responses` of OpenAI, so that a session is compacted without a network.

    Like the real endpoint it keeps user messages and replaces the rest by one opaque item, which consists of random
    bytes.
    """

    responses: Any = field(init=False)

    def __post_init__(self) -> None:
        self.responses = self

    async def compact(self, *, input: Sequence[Mapping[str, Any]] = (), **_: object) -> _Compacted:
        kept = [
            {"type": "message", "role": "user", "status": "completed", "content": _as_parts(item["content"])}
            for item in input
            if item.get("role") == "user"
        ]
        opaque = base64.urlsafe_b64encode(b"\x80" + uuid4().bytes * 150).decode()
        return _Compacted([*kept, {"type": "compaction", "id": _id("cmp"), "encrypted_content": opaque}])


# --- output items of the model ---------------------------------------------------------------------------------------


def says(text: str, *sources: tuple[str, str]) -> TResponseOutputItem:
    """An answer; each source is a title and an address, cited at the end of the text."""
    citations: list[Any] = [
        {"type": "url_citation", "title": title, "url": url, "start_index": len(text) - 1, "end_index": len(text)}
        for title, url in sources
    ]
    content = ResponseOutputText(type="output_text", text=text, annotations=citations)
    return ResponseOutputMessage(id=_id("msg"), type="message", role="assistant", status="completed", content=[content])


def refuses(text: str) -> TResponseOutputItem:
    content = ResponseOutputRefusal(type="refusal", refusal=text)
    return ResponseOutputMessage(id=_id("msg"), type="message", role="assistant", status="completed", content=[content])


def thinks(*summary: str) -> TResponseOutputItem:
    """Reasoning; without a summary only the encrypted form that providers return."""
    sealed = None if summary else base64.urlsafe_b64encode(b"\x80" + uuid4().bytes * 40).decode()
    return ResponseReasoningItem.model_validate(
        {
            "id": _id("rs"),
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text} for text in summary],
            "encrypted_content": sealed,
        }
    )


def calls(tool: str, **arguments: Any) -> TResponseOutputItem:
    return calls_badly(tool, json.dumps(arguments, ensure_ascii=False))


def remembers(
    statement: str, *, kind: str = "preference", topic: str = "", was_said: bool = True
) -> TResponseOutputItem:
    """Proposes a memory, by the tool that all bots have."""
    return calls("remember", statement=statement, kind=kind, topic=topic, was_said=was_said)


def calls_badly(tool: str, arguments: str) -> TResponseOutputItem:
    """A call with arguments as text, which may be invalid JSON."""
    return ResponseFunctionToolCall(
        id=_id("fc"), type="function_call", status="completed", call_id=_id("call"), name=tool, arguments=arguments
    )


def searches_web(query: str, *sources: str) -> TResponseOutputItem:
    return ResponseFunctionWebSearch.model_validate(
        {
            "id": _id("ws"),
            "type": "web_search_call",
            "status": "completed",
            "action": {"type": "search", "query": query, "sources": [{"type": "url", "url": url} for url in sources]},
        }
    )


def searches_files(query: str, **found: str) -> TResponseOutputItem:
    """Hits are named by file, without the ending."""
    return ResponseFileSearchToolCall.model_validate(
        {
            "id": _id("fs"),
            "type": "file_search_call",
            "status": "completed",
            "queries": [query],
            "results": [
                {"file_id": _id("file"), "filename": f"{name}.md", "score": 0.87, "text": text}
                for name, text in found.items()
            ],
        }
    )


def computes(code: str, printed: str) -> TResponseOutputItem:
    return ResponseCodeInterpreterToolCall.model_validate(
        {
            "id": _id("ci"),
            "type": "code_interpreter_call",
            "status": "completed",
            "container_id": _id("cntr"),
            "code": code,
            "outputs": [{"type": "logs", "logs": printed}],
        }
    )


def draws(picture: str, prompt: str) -> TResponseOutputItem:
    return ImageGenerationCall(
        id=_id("ig"),
        type="image_generation_call",
        status="completed",
        result=base64.b64encode((PICTURES / picture).read_bytes()).decode(),
        revised_prompt=prompt,
        output_format="png",
    )


def lists_tools(server: str, **tools: str) -> TResponseOutputItem:
    return McpListTools.model_validate(
        {
            "id": _id("mcpl"),
            "type": "mcp_list_tools",
            "server_label": server,
            "tools": [{"name": name, "description": text, "input_schema": {}} for name, text in tools.items()],
        }
    )


def asks_server(server: str, tool: str, output: str, **arguments: Any) -> TResponseOutputItem:
    return McpCall(
        id=_id("mcp"),
        type="mcp_call",
        server_label=server,
        name=tool,
        arguments=json.dumps(arguments, ensure_ascii=False),
        output=output,
        status="completed",
    )


def photo(text: str, picture: str) -> list[TResponseInputItem]:
    """A user message with a picture."""
    data = base64.b64encode((PICTURES / picture).read_bytes()).decode()
    return [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": text},
                {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{data}"},
            ],
        }
    ]


def _id(kind: str) -> str:
    return f"{kind}_{uuid4().hex[:24]}"


def _as_parts(content: Any) -> Any:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content
