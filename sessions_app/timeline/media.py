"""Pictures, files and links in items: those that may be displayed, and those that are only named."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from memadmin.values.shortened import left_out_of, length_of
from sessions_app.timeline.blocks import Block, Picture, Reference
from sessions_app.timeline.values import Fields, fields_in, one_line, text_in

PICTURE_BYTES = 512 * 1024
PICTURE_CHARACTERS = PICTURE_BYTES * 4 // 3 + 200
"""Longest data: URI with a picture of that size."""

ENCODED = re.compile(r"\A(?:data:[\w./+-]{1,100};base64,)?[A-Za-z0-9+/]{4000,}+={0,2}\Z")
"""A long run of base64: a picture or a file."""

URL_CHARACTERS = 2_000
HOST = re.compile(r"(?:[a-z0-9][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::\d{1,5})?", re.IGNORECASE | re.ASCII)
NOT_WHOLE = "not a whole picture, not shown"
DATA_URI = re.compile(r"data:(?P<type>[\w.+/-]{1,100})(?:;[\w=.+-]{1,100})*;base64,", re.ASCII | re.IGNORECASE)

# Recognised by their first bytes, whatever type they claim. Not SVG: it is a document that can load and run things.
RASTER_SIGNATURES = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF....WEBP", re.DOTALL)),
)


def picture(source: str, label: str) -> Picture | Reference:
    """Block of a picture given as a data: URI or as an address."""
    if head := DATA_URI.match(source):
        return picture_from_base64(source[head.end() :], label, left_out=left_out_of(source))
    if source.startswith("data:"):
        return Reference("eye-off", label, "data: URI that is not base64, not shown")
    return link(source, label, icon="eye-off", note="not loaded")


def picture_from_base64(encoded: str, label: str, *, left_out: int = 0) -> Picture | Reference:
    """Block of a picture; `left_out` characters of it are missing in `encoded`."""
    byte_count = (len(encoded) + left_out) * 3 // 4
    if byte_count > PICTURE_BYTES:
        return Reference("eye-off", label, f"{byte_count:,} bytes, too large to show here")
    if left_out:
        return Reference("eye-off", label, NOT_WHOLE)
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return Reference("eye-off", label, NOT_WHOLE)
    for media_type, signature in RASTER_SIGNATURES:
        if signature.match(content):
            uri = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
            return Picture(uri, label, len(content))
    return Reference("eye-off", label, f"{len(content):,} bytes, not a PNG, JPEG, GIF or WebP, not shown")


def without_pictures(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Blocks of an item that was read in part, without pictures: their data is truncated."""
    return tuple(
        Reference("eye-off", block.label, NOT_WHOLE) if isinstance(block, Picture) else block for block in blocks
    )


def picture_part(part: Fields, label: str = "Picture") -> Picture | Reference:
    """Block of a part with `image_url` (a string, or an object with `url`) or `file_id`."""
    source = text_in(part, "image_url") or text_in(fields_in(part, "image_url"), "url")
    if source:
        return picture(source, label)
    return Reference("eye-off", label, one_line(part.get("file_id") or "no address"))


def file_part(part: Fields) -> Reference:
    """Block of a part with `file_data`, `file_id` or `file_url`."""
    name = one_line(part.get("filename") or "File")
    if content := text_in(part, "file_data"):
        head = DATA_URI.match(content)
        size = f"about {(length_of(content) - (head.end() if head else 0)) * 3 // 4:,} bytes"
        return Reference("archive", name, f"{head['type'].lower()}, {size}" if head else size)
    if address := text_in(part, "file_url"):
        return link(address, name, icon="archive", note="not loaded")
    return Reference("archive", name, one_line(part.get("file_id") or "no content"))


def audio_part(part: Fields) -> Reference:
    audio = fields_in(part, "input_audio")
    size = length_of(text_in(audio, "data")) * 3 // 4
    return Reference(
        "activity", "Audio", f"{one_line(audio.get('format') or 'unknown format', 20)}, about {size:,} bytes"
    )


def video_part(part: Fields) -> Reference:
    address = text_in(part, "video_url") or text_in(fields_in(part, "video_url"), "url")
    return link(address, "Video", icon="player-pause", note="not loaded")


def link(address: str, label: str = "", *, icon: str = "cloud", note: str = "") -> Reference:
    """An address as text; a link only if it is plain http or https."""
    shown = one_line(address) or "no address"
    host = _host(address)
    if not host:
        return Reference(icon, one_line(label) or shown, shown if label else "")
    detail = f"{one_line(host, 80)}, {note}" if note else shown
    return Reference(icon, one_line(label) or shown, detail if label or note else "", url=address)


def _host(address: str) -> str:
    """Host of an address that is safe as a link; empty for any other.

    Letters of other scripts are no part of it: they can look like Latin ones, and a browser shows them in another form.
    """
    if len(address) > URL_CHARACTERS or not address.isprintable() or " " in address or "\\" in address:
        return ""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return ""
    return host if parts.scheme in ("http", "https") and HOST.fullmatch(parts.netloc) else ""
