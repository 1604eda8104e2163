"""Blocks of message content and tool payloads, which consist of the same parts: text, pictures, files."""

from __future__ import annotations

from memadmin.values.shortened import JsonText, ShortText
from sessions_app.timeline.blocks import Block, Data, Reference, TextBlock
from sessions_app.timeline.decode import NotJson, parse_json
from sessions_app.timeline.media import audio_part, file_part, link, picture_part, video_part
from sessions_app.timeline.values import Fields, as_fields, list_in, one_line, text_in

PARSED_CHARACTERS = 64 * 1024
"""Maximum length of JSON inside a string that is shown parsed."""

TEXT_PARTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
PICTURE_PARTS = frozenset({"input_image", "image_url", "computer_screenshot"})
OUTPUT_PARTS = TEXT_PARTS | PICTURE_PARTS | {"input_file", "refusal"}
"""Types of parts of an output that is not a string."""


def content_blocks(content: object) -> tuple[Block, ...]:
    """Blocks of the content of a message: a string, a list of parts, or any other value."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextBlock(content),)
    if isinstance(content, list):
        return tuple(block for part in content for block in _part_blocks(part))
    return (Data(content),)


def payload_blocks(payload: object, label: str = "") -> tuple[Block, ...]:
    """Blocks of the arguments or the output of a tool."""
    if payload is None:
        return ()
    if isinstance(payload, str):
        value = json_inside(payload)
        return (Data(value, label),) if value is not None else (TextBlock(payload, label, style="machine"),)
    if isinstance(payload, list) and payload and all(_is_part(element) for element in payload):
        return content_blocks(payload)
    return (Data(payload, label),)


def json_inside(text: str) -> object | None:
    """Object or array in a string of JSON; None for any other text."""
    if isinstance(text, JsonText):
        return text.value
    # The beginning of a text is not the JSON that the whole may be.
    if isinstance(text, ShortText) or len(text) > PARSED_CHARACTERS or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return parse_json(text)
    except NotJson:
        return None


def _is_part(element: object) -> bool:
    part_type = as_fields(element).get("type")
    return isinstance(part_type, str) and part_type in OUTPUT_PARTS


def _part_blocks(part: object) -> tuple[Block, ...]:
    if isinstance(part, str):
        return (TextBlock(part),)
    fields = as_fields(part)
    match fields.get("type"):
        case str(part_type) if part_type in TEXT_PARTS and isinstance(fields.get("text"), str):
            return (TextBlock(text_in(fields, "text")), *annotation_blocks(list_in(fields, "annotations")))
        case "refusal" if isinstance(fields.get("refusal"), str):
            return (TextBlock(text_in(fields, "refusal")),)
        case str(part_type) if part_type in PICTURE_PARTS:
            return (picture_part(fields, "Screenshot" if part_type == "computer_screenshot" else "Picture"),)
        case "input_file":
            return (file_part(fields),)
        case "input_audio":
            return (audio_part(fields),)
        case "video_url":
            return (video_part(fields),)
    return (Data(part),)


def annotation_blocks(annotations: list[object]) -> tuple[Reference, ...]:
    """Citations of an answer, one line each."""
    return tuple(_citation(as_fields(annotation)) for annotation in annotations)


def _citation(annotation: Fields) -> Reference:
    if address := text_in(annotation, "url"):
        return link(address, text_in(annotation, "title"))
    name = annotation.get("filename") or annotation.get("file_id") or annotation.get("type") or "citation"
    return Reference("archive", one_line(name), one_line(annotation.get("file_id") or ""))
