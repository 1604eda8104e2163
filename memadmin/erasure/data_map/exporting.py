"""Exports of the data map: all places as CSV and JSON, and the record of processing (GDPR article 30)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from memadmin.audit.transparency.canonical import utc
from memadmin.erasure.data_map.models import ProcessingRecord
from memadmin.erasure.data_map.places import DataKind, Place
from memadmin.web.downloads import csv_lines

HEADER = ("place", "name", "column", "class", "kinds", "of whom", "erased by", "kept for", "note")


def as_table(places: Iterable[Place]) -> Iterator[str]:
    """CSV with a line for each column."""
    return csv_lines(HEADER, (row for place in places for row in table_rows(place)))


def table_rows(place: Place) -> Iterator[Iterable[object]]:
    for column in place.columns:
        yield (
            place.location.label,
            place.name,
            column,
            place.data_class,
            ", ".join(place.kinds),
            ", ".join(place.persons),
            place.erased_by,
            place.kept_for,
            place.note,
        )


def as_json(places: Sequence[Place], record: ProcessingRecord | None, at: datetime) -> Iterator[str]:
    """One JSON document: the head of the record, and an object for each column."""
    document = {
        "format": "memadmin data map, 1",
        "at": utc(at),
        "record": {head.member: head.text for head in record_heads(record, places)},
        "places": [as_object(place, column) for place in places for column in place.columns],
    }
    yield json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def as_object(place: Place, column: str) -> dict[str, object]:
    return {
        "place": place.location,
        "name": place.name,
        "column": column,
        "class": place.data_class,
        "kinds": list(place.kinds),
        "of": list(place.persons),
        "erased_by": list(place.erasers),
        "kept_for": place.kept_for,
        "note": place.note,
    }


@dataclass(frozen=True, slots=True)
class RecordHead:
    """One item of article 30 (1). An empty text was not filled in yet."""

    letter: str
    member: str
    title: str
    text: str


def record_heads(record: ProcessingRecord | None, places: Sequence[Place]) -> list[RecordHead]:
    """The items (a) to (g) of article 30 (1), in their order; what the data map knows comes from it."""
    head = record or ProcessingRecord()
    return [
        RecordHead("a", "controller", "Controller", head.controller),
        RecordHead("a", "contact", "Data protection officer", head.contact),
        RecordHead("b", "purpose", "Purposes of the processing", head.purpose),
        RecordHead("c", "subjects", "Categories of data subjects", head.subjects),
        RecordHead("c", "data", "Categories of personal data", "; ".join(data_categories(places))),
        RecordHead("d", "recipients", "Categories of recipients", head.recipients),
        RecordHead("e", "third_countries", "Transfers to third countries, with safeguards", head.third_countries),
        RecordHead("f", "time_limits", "Time limits for erasure", time_limits(places)),
        RecordHead("g", "security", "Technical and organisational security measures", head.security),
    ]


WORDS = {
    DataKind.CONTENT: "content of conversations and what was learned from it",
    DataKind.IDENTITY: "identity: ids, tickets and names",
    DataKind.BEHAVIOUR: "behaviour: times, kinds and results of use",
    DataKind.STAFF: "accounts and actions of staff",
}


def data_categories(places: Sequence[Place]) -> list[str]:
    """Categories of personal data that any place has."""
    return [words for kind, words in WORDS.items() if any(kind in place.kinds for place in places)]


def time_limits(places: Sequence[Place]) -> str:
    """Where the limits are, and which places have none."""
    endless = dict.fromkeys(place.name for place in places if place.is_personal and place.is_kept_without_limit)
    limits = "Each place below names its limit and what erases it."
    return f"{limits} Without a limit unless erased: {', '.join(endless)}." if endless else limits
