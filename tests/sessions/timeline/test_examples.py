"""Every item that the SDK can store, and what a reader is shown of it."""

from __future__ import annotations

from typing import Any

from sessions_app.timeline import build_timeline
from tests.cases import for_each
from tests.sessions.timeline.items import EXAMPLES, stored

# In the order of tests/data/sdk-items.jsonl: the kind of event, its title, the words beside the title.
EXPECTED = [
    ("message", "User", ""),
    ("message", "User", ""),
    ("message", "Assistant", ""),
    ("message", "Assistant", ""),
    ("message", "Assistant", ""),
    ("message", "System", ""),
    ("message", "Developer", ""),
    ("message", "User", ""),
    ("message", "User", ""),
    ("message", "Developer", ""),
    ("message", "Assistant", ""),
    ("message", "Assistant", ""),
    ("message", "Assistant", ""),
    ("message", "Assistant", ""),
    ("message", "Assistant", ""),
    ("tool", "File search", "refund policy"),
    ("tool", "File search", "refund policy, returns"),
    ("tool", "Computer", "click (10, 20)"),
    ("tool", "Computer", "double_click (1, 2)"),
    ("tool", "Computer", "drag over 2 points"),
    ("tool", "Computer", "keypress CTRL+C"),
    ("tool", "Computer", "move (3, 4)"),
    ("tool", "Computer", "screenshot"),
    ("tool", "Computer", "scroll by (0, 120)"),
    ("tool", "Computer", "type “hello”"),
    ("tool", "Computer", "wait"),
    ("tool", "Computer", "click (1, 1), type “abc”"),
    ("tool", "computer_call_output", "call_cu2"),
    ("tool", "Web search", "weather berlin"),
    ("tool", "Opened page", "https://example.com"),
    ("tool", "Find in page", "“price” in https://example.com"),
    ("tool", "get_weather", '(city: "Berlin")'),
    ("handoff", "Handoff", "to billing_agent"),
    ("tool", "crm.lookup", "()"),
    ("tool", "get_weather", '(city: "Rome")'),
    ("tool", "get_weather", "{bad"),
    ("tool", "function_call_output", "call_1"),
    ("tool", "function_call_output", "call_2"),
    ("tool", "function_call_output", "call_5"),
    ("tool", "function_call_output", "call_6"),
    ("tool", "function_call_output", "call_7"),
    ("tool", "function_call_output", "call_8"),
    ("tool", "Tool search", "crm lookup"),
    ("tool", "Tool search", "crm lookup"),
    ("tool", "tool_search_output", "call_ts1"),
    ("note", "Tools added", "extra"),
    ("note", "Configuration changed", "reasoning effort high"),
    ("note", "Configuration changed", "answers as json_schema"),
    ("reasoning", "Reasoning", "1 summary"),
    ("reasoning", "Reasoning", "no readable text"),
    ("reasoning", "Reasoning", "full text"),
    ("compaction", "History compacted here", ""),
    ("note", "Compaction requested", ""),
    ("tool", "Generated image", "A small red dot"),
    ("tool", "Generated image", ""),
    ("tool", "Code interpreter", "print(1+1)"),
    ("tool", "Code interpreter", ""),
    ("tool", "Shell", "ls -l"),
    ("tool", "local_shell_call_output", "call_ls1"),
    ("tool", "Shell", "ls, pwd"),
    ("tool", "Shell", "pip list"),
    ("tool", "shell_call_output", "call_sh1"),
    ("tool", "Patch", "create a.txt"),
    ("tool", "Patch", "update a.txt"),
    ("tool", "Patch", "delete a.txt"),
    ("tool", "apply_patch_call_output", "call_ap1"),
    ("tool", "apply_patch_call_output", "call_ap1"),
    ("note", "MCP tools of deepwiki", "ask"),
    ("note", "MCP tools of deepwiki", "none"),
    ("tool", "Approval requested", 'deepwiki.ask(q: "x")'),
    ("tool", "mcp_approval_response", "mcpr_1"),
    ("tool", "mcp_approval_response", "mcpr_1"),
    ("tool", "deepwiki.ask", '(q: "x")'),
    ("tool", "deepwiki.ask", "()"),
    ("tool", "deepwiki.ask", "()"),
    ("tool", "sql", "SELECT 1"),
    ("tool", "custom_tool_call_output", "call_c1"),
    ("tool", "custom_tool_call_output", "call_c1"),
    ("note", "Reference to msg_123", "not on this page"),
    ("note", "Reference to msg_123", "not on this page"),
    ("tool", "Program", "const r = await tools.get_weather({city:'Rome'}); return r;"),
    ("tool", "program_output", "call_prog1"),
    ("encrypted", "1 encrypted item", ""),
    ("message", "User", ""),
    ("message", "User", ""),
    ("message", "Assistant", ""),
    ("message", "User", ""),
    ("tool", "f", "()"),
    ("message", "root → researcher", ""),
    ("tool", "spawn_agent", '(name: "researcher")'),
    ("tool", "multi_agent_call_output", "call_m1"),
    ("message", "Tool", ""),
    ("note", "Unknown type “hologram_call”", "shown as JSON"),
    ("note", "Not a JSON object", "shown as it is"),
]


@for_each(
    ("example", "expected"),
    list(zip(EXAMPLES, EXPECTED, strict=True)),
    ids=[f"{example['type']}: {example['variant']}" for example in EXAMPLES],
)
def test_each_item_is_told_as_what_it_is(example: dict[str, Any], expected: Any) -> None:
    timeline = build_timeline([stored(example["item"])], starts_session=False, ends_session=False)
    (event,) = timeline.events
    assert (event.kind, event.title, event.detail) == expected
    assert event.item_ids == ("1",)


def test_the_examples_cover_every_type() -> None:
    assert len({example["type"] for example in EXAMPLES if example["in_input_union"]} - {None}) == 31
