"""Memories of other systems: each becomes a proposal, and nothing is used before somebody approves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from django.db import transaction

from memories_app.models import Memory
from memories_app.services.proposing import propose_memory
from memories_app.services.refusals import Refused
from sessions_app.models import SubjectKind, SubjectSource
from sessions_app.services.subjects import SubjectError, standing_subject, subject_for_key


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory of a file: where it stands there, about whom, and what it says."""

    place: str
    subject: str
    statement: str
    kind: str = Memory.Kind.FACT
    key: str = ""


@dataclass(slots=True)
class Imported:
    proposed: int = 0
    known: int = 0
    problems: list[str] = field(default_factory=list)


class NotAProfile(Exception):
    """The file as a whole is not of this format; the message says what is expected."""


def entries_of_profile(value: object) -> Iterator[Entry | str]:
    """Of `{"user_42": {"favorite_drink": "chai"}}`; a sentence for what cannot be read. Raises NotAProfile."""
    if not isinstance(value, Mapping):
        raise NotAProfile('A profile file is an object of objects, such as {"user_42": {"favorite_drink": "chai"}}.')
    for subject, profile in value.items():
        if not isinstance(profile, Mapping):
            yield f"{subject}: this is not an object of names and values."
            continue
        for key, said in profile.items():
            place = f"{subject}.{key}"
            if isinstance(said, bool) or not isinstance(said, str | int | float) or not str(said).strip():
                yield f"{place}: this is neither a text nor a number."
                continue
            words = key.replace("_", " ").strip()
            yield Entry(place, subject, f"Their {words} is {str(said).strip()}.", Memory.Kind.PREFERENCE, key)


def import_entries(entries: Iterator[Entry | str]) -> Imported:
    """Proposes each, but for what is known of its subject word for word. Safe to repeat."""
    imported = Imported()
    for entry in entries:
        if isinstance(entry, str):
            imported.problems.append(entry)
            continue
        try:
            imported_now = _imported(entry)
        except (Refused, SubjectError) as problem:
            imported.problems.append(f"{entry.place}: {problem}")
            continue
        imported.proposed += imported_now
        imported.known += not imported_now
    return imported


@transaction.atomic
def _imported(entry: Entry) -> bool:
    subject = standing_subject(subject_for_key(SubjectKind.USER, entry.subject, SubjectSource.IMPORT))
    if Memory.objects.about(subject).filter(statement=entry.statement).exists():
        return False
    propose_memory(
        entry.statement,
        kind=entry.kind,
        key=entry.key,
        subject=subject,
        source=Memory.Source.IMPORT,
        extractor="import/profile",
    )
    return True
