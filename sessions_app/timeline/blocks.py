"""Blocks: the parts of an event. Each is inert: text, data, a checked picture, or the name of something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

from memadmin.values.shortened import length_of
from sessions_app.timeline.values import pretty_json

SHOWN_CHARACTERS = 8_000

SHOWN_PARTS = 100
"""Number of blocks of one event on a page; the page of its item shows the others, as many at a time."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text of any length; a page shows its beginning and the number of further characters."""

    kind: ClassVar = "text"
    full: str
    label: str = ""
    style: Literal["prose", "machine"] = "prose"

    @property
    def shown(self) -> str:
        return self.full[:SHOWN_CHARACTERS]

    @property
    def left_out(self) -> int:
        """Number of characters that the page does not show."""
        return length_of(self.full) - len(self.shown)


@dataclass(frozen=True, slots=True)
class Data:
    """A JSON value."""

    kind: ClassVar = "data"
    value: object
    label: str = ""

    @property
    def full(self) -> str:
        return pretty_json(self.value)


@dataclass(frozen=True, slots=True)
class Picture:
    """A small raster picture that was stored inside the item; `data_uri` is built from checked parts."""

    kind: ClassVar = "picture"
    data_uri: str
    label: str
    byte_count: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A file, remote picture or source that is named and not shown. Nothing is ever loaded from it."""

    kind: ClassVar = "reference"
    icon: str
    label: str
    detail: str = ""
    url: str = ""
    """Always http or https with a host of plain letters; empty for anything else."""

    @property
    def host(self) -> str:
        """Host and port that the address opens."""
        return urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True)
class NoticeBlock:
    """A sentence that must not be overlooked, from this console or from the error of a tool."""

    kind: ClassVar = "notice"
    tone: Literal["danger", "warning"]
    sentence: str
    explanation: str = ""


Block: TypeAlias = TextBlock | Data | Picture | Reference | NoticeBlock
