"""Events of items that are neither messages nor calls: set-up, references, compaction, and unknown types."""

from __future__ import annotations

from sessions_app.timeline.blocks import Block, Data, NoticeBlock, TextBlock
from sessions_app.timeline.decode import DecodedItem, printable
from sessions_app.timeline.encryption import sealed_at
from sessions_app.timeline.events import Badge, Compaction, Encrypted, NoteEvent, ToolState, UnreadableItem
from sessions_app.timeline.function_tools import tool_lines
from sessions_app.timeline.parts import payload_blocks
from sessions_app.timeline.seals import badges_of, sentences_of
from sessions_app.timeline.values import as_fields, fields_in, list_in, one_line, text_in


def note(entry: DecodedItem, places: dict[str, str]) -> NoteEvent:
    """Event of an item without a type of event of its own. `places` has the row of an item by its id for the model."""
    fields = entry.fields
    match entry.type:
        case "additional_tools":
            return _tools_note(entry, "Tools added")
        case "mcp_list_tools":
            return _tools_note(entry, f"MCP tools of {one_line(fields.get('server_label') or 'a server', 80)}")
        case "configuration_update":
            changes = {name: value for name, value in fields.items() if name != "type"}
            effort = fields_in(fields, "reasoning").get("effort")
            form = fields_in(fields_in(fields, "text"), "format").get("type")
            parts = [f"reasoning effort {one_line(effort, 40)}"] if effort else []
            parts += [f"answers as {one_line(form, 40)}"] if form else []
            return _note(entry, "Configuration changed", ", ".join(parts), icon="replace", body=(Data(changes),))
        case "compaction_trigger":
            return _note(entry, "Compaction requested", icon="fold")
        case "item_reference":
            target = text_in(fields, "id")
            place = places.get(target)
            where = f"item {place}" if place and place != entry.stored.id else "not on this page"
            return _note(entry, f"Reference to {one_line(target or 'nothing')}", where, icon="arrow-right")
    if not entry.is_object:
        body = payload_blocks(entry.value) or (Data(entry.value),)
        return _note(entry, "Not a JSON object", "shown as it is", icon="file-unknown", body=body, is_collapsed=False)
    if not entry.type:
        return _note(entry, "Item without a type", "shown as JSON", icon="puzzle", body=(Data(entry.value),))
    title = f"Unknown type “{one_line(entry.type, 80)}”"
    return _note(entry, title, "shown as JSON", icon="puzzle", body=(Data(entry.value),))


def _note(
    entry: DecodedItem,
    title: str,
    detail: str = "",
    *,
    icon: str,
    body: tuple[Block, ...] = (),
    badges: tuple[Badge, ...] = (),
    is_collapsed: bool = True,
) -> NoteEvent:
    return NoteEvent(
        items=(entry.stored,),
        title=title,
        detail=detail,
        badges=badges,
        body=body,
        is_collapsed=is_collapsed and bool(body),
        icon=icon,
    )


def _tools_note(entry: DecodedItem, title: str) -> NoteEvent:
    tools, error = list_in(entry.fields, "tools"), entry.fields.get("error")
    names = [one_line(as_fields(tool).get("name") or as_fields(tool).get("type") or tool, 80) for tool in tools[:10]]
    body: list[Block] = []
    if error:
        body.append(NoticeBlock("danger", one_line(as_fields(error).get("message") or error, 1_000)))
    if tools:
        body.append(TextBlock(tool_lines(tools), style="machine"))
    return _note(
        entry,
        title,
        one_line(", ".join(names)) or "none",
        icon="tool",
        body=tuple(body),
        badges=(ToolState.FAILED.value,) if error else (),
        is_collapsed=not error,
    )


def compaction(entry: DecodedItem) -> Compaction:
    return Compaction(
        items=(entry.stored,),
        title="History compacted here",
        opaque_byte_count=entry.size_of("encrypted_content"),
    )


def unreadable(entry: DecodedItem) -> UnreadableItem:
    return UnreadableItem(
        items=(entry.stored,),
        title="Not readable as JSON",
        problem=entry.problem,
        raw=TextBlock(printable(entry.stored.raw), style="machine"),
        is_collapsed=True,
    )


def encrypted(entries: list[DecodedItem]) -> Encrypted:
    """One event for neighbouring envelopes. Their times are those of the tokens; without one, the store's."""
    times = [moment for entry in entries if (moment := sealed_at(entry.fields) or entry.stored.written_at)]
    count, seal = len(entries), entries[0].stored.seal
    return Encrypted(
        items=tuple(entry.stored for entry in entries),
        title="1 encrypted item" if count == 1 else f"{count} encrypted items",
        first_at=min(times, default=None),
        last_at=max(times, default=None),
        badges=badges_of(seal) if seal else (),
        sentences=tuple(sentences_of(seal)) if seal else (),
    )
