"""Parsers for tools that act on a machine: shells, patches, a computer's screen, a code interpreter."""

from __future__ import annotations

from memadmin.values.shortened import first_of, is_part, length_of
from sessions_app.timeline.blocks import Block, Data, NoticeBlock, Reference, TextBlock
from sessions_app.timeline.calls import Asked, Output, output_of, status_state
from sessions_app.timeline.events import ToolState
from sessions_app.timeline.media import picture, picture_part
from sessions_app.timeline.parts import payload_blocks
from sessions_app.timeline.values import Fields, as_fields, fields_in, joined, list_in, one_line, text_in


def local_shell(fields: Fields) -> Asked:
    action = fields_in(fields, "action")
    command = action.get("command")
    line = " ".join(one_line(word) for word in command[:50]) if isinstance(command, list) else one_line(command or "")
    notes = []
    if directory := text_in(action, "working_directory"):
        notes.append(one_line(f"in {directory}"))
    if environment := fields_in(action, "env"):
        # Values are often secrets, and never needed to understand what happened.
        notes.append(one_line(f"environment: {', '.join(environment)}, values not shown"))
    return Asked("Shell", one_line(line), (TextBlock(line, "Command", style="machine"),), tuple(notes))


def shell(fields: Fields) -> Asked:
    action, environment = fields_in(fields, "action"), fields_in(fields, "environment")
    commands = list_in(action, "commands")
    notes = []
    if where := text_in(environment, "type"):
        notes.append(one_line(f"{where} {environment.get('container_id') or ''}"))
    body = TextBlock("\n".join(_command(command) for command in commands), "Commands", style="machine")
    return Asked("Shell", joined(commands), (body,) if commands else (), tuple(notes))


def _command(command: object) -> str:
    return command if isinstance(command, str) else one_line(command)


def shell_output(fields: Fields) -> Output:
    results = fields.get("output")
    if not isinstance(results, list):
        return output_of(results)
    body: list[Block] = []
    state = ToolState.OK
    for number, result in enumerate(results, start=1 + first_of(results)):
        outcome = fields_in(as_fields(result), "outcome")
        exit_code = outcome.get("exit_code")
        ending = "timed out" if outcome.get("type") == "timeout" else one_line(f"exit {exit_code}", 40)
        if outcome.get("type") == "timeout" or (isinstance(exit_code, int) and exit_code != 0):
            state = ToolState.FAILED
        streams = [(name, text_in(as_fields(result), name)) for name in ("stdout", "stderr")]
        written = [(name, text) for name, text in streams if text] or [("no output", "")]
        body += [TextBlock(text, f"Command {number}, {ending}, {name}", style="machine") for name, text in written]
    if state is ToolState.OK and is_part(results):
        state = ToolState.PARTLY_SHOWN
    return Output(tuple(body), state)


def apply_patch(fields: Fields) -> Asked:
    operation = fields_in(fields, "operation")
    verb = one_line(operation.get("type") or "change", 40).removesuffix("_file")
    diff = operation.get("diff")
    return Asked("Patch", one_line(f"{verb} {operation.get('path') or ''}"), payload_blocks(diff, "Difference"))


def patch_output(fields: Fields) -> Output:
    output = output_of(fields.get("output"))
    return Output(output.body, status_state(fields), output.notes)


def computer(fields: Fields) -> Asked:
    actions = list_in(fields, "actions") or ([fields["action"]] if fields.get("action") else [])
    body: tuple[Block, ...] = safety_notices(list_in(fields, "pending_safety_checks"), "Pending safety check")
    if actions:
        body += (Data(actions if len(actions) > 1 else actions[0], "Actions" if len(actions) > 1 else "Action"),)
    return Asked("Computer", joined([_action_line(as_fields(action)) for action in actions]), body)


def _action_line(action: Fields) -> str:
    """`click (10, 20)`, `type “hello”`, `keypress CTRL+C`."""
    kind = one_line(action.get("type") or "action", 40)
    match kind:
        case "type":
            return f"type “{one_line(action.get('text') or '', 60)}”"
        case "keypress":
            return f"keypress {'+'.join(one_line(key, 20) for key in list_in(action, 'keys')[:10])}"
        case "drag":
            return f"drag over {length_of(list_in(action, 'path'))} points"
        case "scroll":
            return one_line(f"scroll by ({action.get('scroll_x')}, {action.get('scroll_y')})", 60)
    if "x" in action and "y" in action:
        return one_line(f"{kind} ({action['x']}, {action['y']})", 60)
    return kind


def computer_output(fields: Fields) -> Output:
    screenshot = fields.get("output")
    body: tuple[Block, ...] = safety_notices(
        list_in(fields, "acknowledged_safety_checks"), "Safety check, acknowledged"
    )
    if isinstance(screenshot, dict):
        return Output((*body, picture_part(screenshot, "Screenshot")), status_state(fields))
    return Output((*body, *payload_blocks(screenshot)), status_state(fields))


def safety_notices(checks: list[object], explanation: str) -> tuple[NoticeBlock, ...]:
    return tuple(
        NoticeBlock(
            "warning", one_line(as_fields(check).get("message") or as_fields(check).get("code") or check), explanation
        )
        for check in checks
    )


def code_interpreter(fields: Fields) -> Asked:
    code = fields.get("code")
    return Asked("Code interpreter", one_line(code or "", 80), payload_blocks(code, "Code"))


def code_interpreter_output(fields: Fields) -> Output:
    outputs = fields.get("outputs")
    if not isinstance(outputs, list):
        return Output(payload_blocks(outputs), status_state(fields), ("its outputs were not stored",))
    return Output(tuple(_interpreter_output(as_fields(output)) for output in outputs), status_state(fields))


def _interpreter_output(output: Fields) -> Block:
    match output.get("type"):
        case "logs" if isinstance(output.get("logs"), str):
            return TextBlock(text_in(output, "logs"), "Logs", style="machine")
        case "image":
            address = text_in(output, "url")
            return picture(address, "Picture") if address else Reference("eye-off", "Picture", "no address")
    return Data(output)
