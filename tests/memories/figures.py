"""How good the rules and the screening are, on labelled texts: figures, and their tables in the documentation.

`python -m tests.memories.figures` writes the tables again.
"""

from __future__ import annotations

import gzip
import json
import os
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from memories_app.learning.distillers.rules import found_in
from memories_app.learning.distillers.types import SessionMessage
from memories_app.learning.risk_detection import risks_of

DATA = Path(__file__).parents[1] / "data"
DOCS = Path(__file__).parents[2] / "docs"


# --- The distiller ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    """A message of a user, and its sentences that are worth remembering: the text, or its digest."""

    kind: str
    half: str
    text: str
    worth: frozenset[str]


@dataclass(frozen=True, slots=True)
class Precision:
    """Numbers of messages, of sentences worth remembering in them, of proposals, and of sensible ones."""

    messages: int = 0
    worth: int = 0
    proposed: int = 0
    sensible: int = 0

    def __add__(self, other: Precision) -> Precision:
        return Precision(
            self.messages + other.messages,
            self.worth + other.worth,
            self.proposed + other.proposed,
            self.sensible + other.sensible,
        )


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def labelled_messages(transcripts: str | None = None) -> Iterator[LabelledMessage]:
    """The labelled messages. Those of the transcripts are in the labels by digest only, and come from that file."""
    given = {digest(text): text for text in _said_in(transcripts)} if transcripts else {}
    with (DATA / "distiller-labels.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            label = json.loads(line)
            text = label.get("text") or given.get(label["digest"])
            if text:
                yield LabelledMessage(label["kind"], label["half"], text, frozenset(label.get("worth", ())))


def _said_in(transcripts: str) -> Iterator[str]:
    opened = gzip.open if transcripts.endswith(".gz") else open
    with opened(transcripts, "rt", encoding="utf-8") as lines:
        for line in lines:
            for message in json.loads(line)["messages"]:
                if message["role"] == "user":
                    yield message["content"]


def precision(messages: Iterable[LabelledMessage]) -> dict[tuple[str, str], Precision]:
    """Precision by kind and half. A proposal is sensible if it quotes a sentence that is worth remembering."""
    figures: dict[tuple[str, str], Precision] = {}
    for message in messages:
        found = list(found_in(SessionMessage("1", "user", message.text)))
        sensible = sum(bool({one.quote, digest(one.quote)} & message.worth) for one in found)
        of_message = Precision(1, len(message.worth), len(found), sensible)
        key = message.kind, message.half
        figures[key] = figures.get(key, Precision()) + of_message
    return figures


# --- The screening ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rates:
    """Texts with a risk, those found, texts that only look like it, and false alarms."""

    risky: int
    found: int
    harmless: int
    alarms: int

    @property
    def recall(self) -> float:
        return self.found / self.risky

    @property
    def false_alarms(self) -> float:
        return self.alarms / self.harmless


def rates_of(name: str) -> dict[str, Rates]:
    """Rates by flag, for one of the files risk-NAME.toml."""
    texts = tomllib.loads((DATA / f"risk-{name}.toml").read_text(encoding="utf-8"))
    frames = texts.pop("frames", "{}").split("\n")
    return {flag: _rates(flag, part, [frame for frame in frames if frame]) for flag, part in texts.items()}


def _rates(flag: str, part: dict[str, Any], frames: list[str]) -> Rates:
    risky, harmless = (
        [
            frame.replace("{}", text)
            for text in (part[name].strip().split("\n") if isinstance(part[name], str) else part[name])
            for frame in frames
        ]
        for name in ("has", "lacks")
    )
    return Rates(len(risky), _flagged(flag, risky), len(harmless), _flagged(flag, harmless))


def _flagged(flag: str, texts: list[str]) -> int:
    return sum(flag in flags_of(text) for text in texts)


def flags_of(text: str) -> set[str]:
    return {risk.flag for risk in risks_of(text)}


# --- The tables ---------------------------------------------------------------------------------------------------

NAMES = {
    "chitchat": "everyday conversations",
    "chitchat-statements": "everyday, statements about oneself",
    "airline": "an airline's support",
}


def screening_table() -> str:
    development, held, values = rates_of("phrases-development"), rates_of("phrases-held"), rates_of("values")
    rows = [
        "| risk | found, used for the lists | false alarms | found, written last | false alarms |",
        "| --- | --- | --- | --- | --- |",
    ]
    for flag in development:
        rows.append(f"| `{flag}` | {_cells(development[flag])} | {_cells(held[flag])} |")
    for flag, rates in values.items():
        rows.append(f"| `{flag}` | | | {_cells(rates)} |")
    return "\n".join(rows)


def _cells(rates: Rates) -> str:
    return f"{rates.found} of {rates.risky} | {rates.alarms} of {rates.harmless}"


def distiller_table(figures: dict[tuple[str, str], Precision]) -> str:
    rows = [
        "| messages | half | number | worth remembering | proposed | sensible |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (kind, half), figure in sorted(figures.items()):
        name = "kept back" if half == "held" else "used for the rules"
        rows.append(
            f"| {NAMES[kind]} | {name} | {figure.messages} | {figure.worth} | {figure.proposed} | {figure.sensible} |"
        )
    return "\n".join(rows)


def with_table(document: str, table: str) -> str:
    """The document with this table in place of its own, which is between two comments."""
    before, begin, rest = document.partition("<!-- table -->\n")
    _, end, after = rest.partition("\n<!-- end of table -->")
    return f"{before}{begin}{table}{end}{after}"


if __name__ == "__main__":
    tables = {"screening.md": screening_table()}
    if transcripts := os.environ.get("MEMADMIN_TRANSCRIPTS"):
        tables["distilling.md"] = distiller_table(precision(labelled_messages(transcripts)))
    for name, table in tables.items():
        path = DOCS / name
        path.write_text(with_table(path.read_text(encoding="utf-8"), table), encoding="utf-8")
