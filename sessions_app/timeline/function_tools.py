"""Parsers for tools of the application: functions, custom tools, MCP servers, approvals, tool search, programs,
sub-agents.
"""

from __future__ import annotations

import re

from memadmin.values.shortened import length_of
from sessions_app.timeline.blocks import TextBlock
from sessions_app.timeline.calls import (
    SENTENCE_CHARACTERS,
    Asked,
    Output,
    asked_with_arguments,
    failed,
    output_of,
    status_state,
)
from sessions_app.timeline.events import ToolState
from sessions_app.timeline.handoffs import IGNORED_HANDOFF
from sessions_app.timeline.parts import payload_blocks
from sessions_app.timeline.values import Fields, as_fields, fields_in, joined, list_in, one_line, text_in

# A failed function leaves no flag, only the text that the model was given. These are the SDK's own.
FAILURE_TEXT = re.compile(
    r"An error occurred while running the tool\b|Tool '[^\n]*' (?:timed out after \S+ seconds|not found)\.$"
)
NOT_APPROVED_TEXT = "Tool execution was not approved."
RECOGNISED = "The SDK stores no error flag. This text is recognised."


def function_call(fields: Fields) -> Asked:
    name = one_line(fields.get("name") or "function without a name")
    if namespace := text_in(fields, "namespace"):
        name = one_line(f"{namespace}.{name}")
    notes = ("called by a program",) if is_called_by_program(fields) else ()
    return asked_with_arguments(name, fields.get("arguments"), notes=notes)


def is_called_by_program(fields: Fields) -> bool:
    return fields_in(fields, "caller").get("type") == "program"


def function_output(fields: Fields) -> Output:
    payload = fields.get("output")
    text = payload.strip() if isinstance(payload, str) and length_of(payload) < 10_000 else ""
    if text == NOT_APPROVED_TEXT:
        return failed(text, RECOGNISED, ToolState.NOT_APPROVED)
    if text == IGNORED_HANDOFF:
        return failed(text, RECOGNISED, ToolState.IGNORED)
    if FAILURE_TEXT.match(text):
        return failed(text, RECOGNISED)
    return output_of(payload)


def custom_call(fields: Fields) -> Asked:
    given = fields.get("input")
    name = one_line(fields.get("name") or "custom tool without a name")
    return Asked(name, one_line(given or "", 80), payload_blocks(given, "Input"), is_named=True)


def mcp_call(fields: Fields) -> Asked:
    return asked_with_arguments(_mcp_tool(fields), fields.get("arguments"))


def mcp_output(fields: Fields) -> Output:
    """Output of an MCP call: the provider runs it, so the output is in the same item."""
    error = fields.get("error")
    if error is None:
        output = output_of(fields.get("output"))
        return Output(output.body, status_state(fields), output.notes)
    details = as_fields(error)
    texts = [as_fields(part).get("text") or part for part in list_in(details, "content")]
    sentence = joined(texts, SENTENCE_CHARACTERS) if texts else details.get("message") or error
    code = details.get("code")
    return failed(sentence, one_line(f"{details.get('type') or 'error'} {code if code is not None else ''}"))


def approval_asked(fields: Fields) -> Asked:
    asked = mcp_call(fields)
    return Asked("Approval requested", f"{asked.title}{asked.detail}", asked.body, asked.notes)


def approval_given(fields: Fields) -> Output:
    reason = text_in(fields, "reason")
    body = (TextBlock(reason, "Reason"),) if reason else ()
    return Output(body, ToolState.APPROVED if fields.get("approve") is True else ToolState.DENIED)


def tool_search(fields: Fields) -> Asked:
    arguments = fields.get("arguments")
    query = as_fields(arguments).get("query")
    detail = one_line(query) if query is not None else one_line(arguments or "")
    return Asked("Tool search", detail, payload_blocks(arguments, "Arguments"))


def tools_found(fields: Fields) -> Output:
    tools = list_in(fields, "tools")
    names = TextBlock(tool_lines(tools), "Tools loaded")
    return Output((names,), notes=(f"{length_of(tools)} loaded",))


def tool_lines(tools: list[object]) -> str:
    """One line for each tool: its name and description."""
    lines = []
    for tool in tools:
        members = as_fields(tool)
        name = one_line(members.get("name") or members.get("server_label") or members.get("type") or tool, 100)
        description = text_in(members, "description")
        lines.append(f"{name}: {one_line(description)}" if description else name)
    return "\n".join(lines)


def program(fields: Fields) -> Asked:
    code = fields.get("code")
    return Asked("Program", one_line(code or "", 80), payload_blocks(code, "Code"))


def program_output(fields: Fields) -> Output:
    output = output_of(fields.get("result"))
    return Output(output.body, status_state(fields), output.notes)


def sub_agent_call(fields: Fields) -> Asked:
    return asked_with_arguments(one_line(fields.get("action") or "sub-agent"), fields.get("arguments"))


def _mcp_tool(fields: Fields) -> str:
    server, name = one_line(fields.get("server_label") or "MCP", 80), one_line(fields.get("name") or "tool", 120)
    return f"{server}.{name}"
