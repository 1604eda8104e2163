"""Events of messages of every role, messages between agents, and reasoning."""

from __future__ import annotations

from memadmin.values.shortened import length_of
from sessions_app.timeline.blocks import Block, TextBlock
from sessions_app.timeline.decode import DecodedItem
from sessions_app.timeline.events import Badge, Message, Reasoning, ToolState
from sessions_app.timeline.parts import content_blocks, payload_blocks
from sessions_app.timeline.values import Fields, as_fields, fields_in, list_in, one_line, text_in

ROLE_NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "developer": "Developer"}
ROLE_ICONS = {"user": "user", "assistant": "robot", "tool": "tool"}
PHASES = {"commentary": "commentary", "final_answer": "answer"}


def message(entry: DecodedItem, agent: str, *, is_latest: bool) -> Message:
    """A message; `is_latest` when the session ends with it."""
    fields = entry.fields
    role = one_line(fields.get("role") or "no role", 40)
    is_refusal = role == "assistant" and _refuses(fields)
    who = agent if agent and role == "assistant" else ROLE_NAMES.get(role, role.capitalize())
    badges = [Badge("red", "ban", "refused")] if is_refusal else []
    if fields.get("tool_call_error") is True:
        badges.append(ToolState.FAILED.value)
    if fields.get("status") == "incomplete":
        badges.append(Badge("yellow", "alert-triangle", "incomplete"))
    return Message(
        items=(entry.stored,),
        icon=ROLE_ICONS.get(role, "prompt"),
        title=who,
        detail=_tool(fields) if role == "tool" else "",
        badges=tuple(badges),
        notes=(*_message_notes(fields), *(["no answer yet"] if is_latest and role == "user" else [])),
        body=_result(fields) if role == "tool" else (*_thought(fields), *_said(fields)),
        agent=agent if role == "assistant" else "",
        # Instructions, and memories that were put in: long, and the same in every run.
        is_collapsed=role in ("system", "developer"),
        role=role,
        is_refusal=is_refusal,
    )


def _thought(fields: Fields) -> tuple[Block, ...]:
    """Reasoning that a chat message contains beside its content."""
    thought = text_in(fields, "reasoning_content")
    return (TextBlock(thought, "Reasoning"),) if thought else ()


def _said(fields: Fields) -> tuple[Block, ...]:
    """Content of a message, with the tool calls that a chat message contains beside it."""
    calls: list[Block] = []
    for call in list_in(fields, "tool_calls"):
        function = fields_in(as_fields(call), "function")
        name = one_line(function.get("name") or as_fields(call).get("name") or "a tool without a name", 120)
        asked = function.get("arguments")
        calls += payload_blocks("{}" if asked in (None, "") else asked, f"Calls {name}")
    return (*content_blocks(fields.get("content")), *calls)


def _result(fields: Fields) -> tuple[Block, ...]:
    content = fields.get("content")
    return payload_blocks(content) if isinstance(content, str) else content_blocks(content)


def _tool(fields: Fields) -> str:
    """Name of the tool whose result a chat message is; empty without one."""
    name = text_in(fields, "tool_name") or text_in(fields, "name")
    return f"result of {one_line(name, 120)}" if name else ""


def _refuses(fields: Fields) -> bool:
    return any(as_fields(part).get("type") == "refusal" for part in list_in(fields, "content"))


def _message_notes(fields: Fields) -> list[str]:
    notes = [PHASES[phase]] if (phase := text_in(fields, "phase")) in PHASES else []
    provider = fields.get("provider_data")
    if model := text_in(as_fields(provider), "model"):
        notes.append(one_line(model, 80))
    if call_id := text_in(fields, "tool_call_id"):
        notes.append(f"call {one_line(call_id, 60)}")
    if not fields.get("content") and not fields.get("tool_calls"):
        notes.append("without content")
    return notes


def message_between_agents(entry: DecodedItem) -> Message:
    author, recipient = (one_line(entry.fields.get(name) or "an agent", 80) for name in ("author", "recipient"))
    return Message(
        items=(entry.stored,),
        icon="robot",
        title=f"{author} → {recipient}",
        body=content_blocks(entry.fields.get("content")),
        role="agent",
    )


def reasoning(entry: DecodedItem, agent: str, next_item_id: str) -> Reasoning:
    fields = entry.fields
    summaries, thoughts = fields.get("summary"), fields.get("content")
    body = (*content_blocks(summaries), *content_blocks(thoughts))
    count = length_of(summaries) if isinstance(summaries, list) else 0
    if not body:
        detail = "no readable text"
    elif count:
        detail = "1 summary" if count == 1 else f"{count} summaries"
    else:
        detail = "full text"
    return Reasoning(
        items=(entry.stored,),
        title="Reasoning",
        detail=detail,
        body=body,
        agent=agent,
        is_collapsed=True,
        opaque_byte_count=entry.size_of("encrypted_content") if fields.get("encrypted_content") else 0,
        next_item_id=next_item_id,
    )
