"""Dispatch tables: item type to parser of calls and of outputs. A tool with call and output in one item is in both."""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.timeline import function_tools, hosted_tools, machine_tools
from sessions_app.timeline.calls import Asked, Output
from sessions_app.timeline.values import Fields

ASKED: dict[str, Callable[[Fields], Asked]] = {
    "function_call": function_tools.function_call,
    "custom_tool_call": function_tools.custom_call,
    "mcp_call": function_tools.mcp_call,
    "mcp_approval_request": function_tools.approval_asked,
    "tool_search_call": function_tools.tool_search,
    "program": function_tools.program,
    "multi_agent_call": function_tools.sub_agent_call,
    "local_shell_call": machine_tools.local_shell,
    "shell_call": machine_tools.shell,
    "apply_patch_call": machine_tools.apply_patch,
    "computer_call": machine_tools.computer,
    "code_interpreter_call": machine_tools.code_interpreter,
    "file_search_call": hosted_tools.file_search,
    "web_search_call": hosted_tools.web_search,
    "image_generation_call": hosted_tools.image_generation,
}

OUTPUT: dict[str, Callable[[Fields], Output]] = {
    "function_call_output": function_tools.function_output,
    "custom_tool_call_output": function_tools.function_output,
    "mcp_call": function_tools.mcp_output,
    "mcp_approval_response": function_tools.approval_given,
    "tool_search_output": function_tools.tools_found,
    "program_output": function_tools.program_output,
    "multi_agent_call_output": function_tools.function_output,
    "local_shell_call_output": function_tools.function_output,
    "shell_call_output": machine_tools.shell_output,
    "apply_patch_call_output": machine_tools.patch_output,
    "computer_call_output": machine_tools.computer_output,
    "code_interpreter_call": machine_tools.code_interpreter_output,
    "file_search_call": hosted_tools.file_search_output,
    "web_search_call": hosted_tools.web_search_output,
    "image_generation_call": hosted_tools.image_generation_output,
}

ONE_ITEM_TOOLS = ASKED.keys() & OUTPUT.keys()
