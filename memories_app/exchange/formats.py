"""File formats, detected for each value: our own exports, those of mem0, and profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from memadmin import times
from memories_app.exchange.entries import ImportedMemory, ImportedQuote, UnreadableEntry

OWN = "memadmin.memory/1"
"""Value of `format` in each line of an export."""

Read = Iterator[ImportedMemory | UnreadableEntry]

NO_FORMAT = (
    'neither a profile, such as {"user_42": {"favorite_drink": "chai"}}, nor a memory of mem0, nor a line of'
    " export_memories"
)


class Malformed(ValueError):
    """A member has an invalid value; the message names it."""


def entries_of(value: object, place: str, *, of: str = "") -> Read:
    """Entries of one value of a file: a line, an element of an array, or the whole document. `of` sets the format
    instead of detecting it."""
    if of:
        yield from FORMATS[of](value, place)
    elif isinstance(value, Mapping) and value.get("format") == OWN:
        yield from of_export(value, place)
    elif isinstance(value, Mapping) and (
        isinstance(value.get("memory"), str) or any(isinstance(value.get(name), list) for name in LISTS_OF_MEM0)
    ):
        yield from of_mem0(value, place)
    elif isinstance(value, Mapping) and (not value or any(isinstance(one, Mapping) for one in value.values())):
        yield from of_profile(value, place)
    else:
        yield UnreadableEntry(place, NO_FORMAT)


# --- profiles -----------------------------------------------------------------------------------------------------


def of_profile(value: object, place: str) -> Read:
    """`{"user_42": {"favorite_drink": "chai"}}`: a preference for each name."""
    if not isinstance(value, Mapping):
        yield UnreadableEntry(
            place, 'this is not an object of objects, such as {"user_42": {"favorite_drink": "chai"}}'
        )
        return
    for subject, profile in value.items():
        if not isinstance(profile, Mapping):
            yield UnreadableEntry(subject, "this is not an object of names and values")
            continue
        for key, said in profile.items():
            where = f"{subject}.{key}"
            if isinstance(said, bool) or not isinstance(said, str | int | float) or not str(said).strip():
                yield UnreadableEntry(where, "this is neither a text nor a number")
                continue
            words = key.replace("_", " ").strip()
            statement = f"Their {words} is {str(said).strip()}."
            yield ImportedMemory(where, ("user", subject), statement, "import/profile", kind="preference", key=key)


# --- mem0 ---------------------------------------------------------------------------------------------------------

LISTS_OF_MEM0 = ("results", "memories")


def of_mem0(value: object, place: str) -> Read:
    """A memory as returned by `get_all` of mem0, or its whole response. With a user it is about that user; with only an
    agent it is for that agent and all users."""
    members: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    for name in LISTS_OF_MEM0:
        if isinstance(listed := members.get(name), list):
            for number, one in enumerate(listed, 1):
                yield _memory_of_mem0(one, f"{place}, {name} {number}")
            return
    yield _memory_of_mem0(value, place)


def _memory_of_mem0(value: object, place: str) -> ImportedMemory | UnreadableEntry:
    if not isinstance(value, Mapping):
        return UnreadableEntry(place, "this is not an object, as the memories of mem0 are")
    return _entry(_mem0, value, place)


def _mem0(value: Mapping[str, Any], place: str) -> ImportedMemory:
    user, agent = _text(value, "user_id"), _text(value, "agent_id")
    if not user and not agent:
        raise Malformed("it has neither a user_id nor an agent_id")
    kept = {name: value[name] for name in ("id", "categories", "metadata") if value.get(name)}
    return ImportedMemory(
        place,
        ("user", user) if user else None,
        _text(value, "memory"),
        "import/mem0",
        data={"mem0": kept} if kept else {},
        agents=[] if user else [agent],
        valid_until=_time(value, "expiration_date"),
    )


# --- our own ------------------------------------------------------------------------------------------------------


def of_export(value: object, place: str) -> Read:
    if not isinstance(value, Mapping):
        yield UnreadableEntry(place, "this is not an object, as the lines of export_memories are")
        return
    yield _entry(_exported, value, place)


def _exported(value: Mapping[str, Any], place: str) -> ImportedMemory:
    whose = value.get("subject")
    if whose is not None and not isinstance(whose, Mapping):
        raise Malformed("its subject is neither an object of kind and key nor null")
    return ImportedMemory(
        place,
        (_text(whose, "kind"), _text(whose, "key")) if whose is not None else None,
        _text(value, "statement"),
        "import/memadmin",
        kind=_text(value, "kind"),
        key=_text(value, "key"),
        data=_object(value, "data"),
        agents=_texts(value, "agents"),
        provenance=_text(value, "provenance"),
        confidence=_number(value, "confidence"),
        valid_from=_time(value, "valid_from"),
        valid_until=_time(value, "valid_until"),
        revalidate_on=_day(value, "revalidate_on"),
        said=[_said(one) for one in _list(value, "evidence")],
    )


def _said(value: object) -> ImportedQuote:
    if not isinstance(value, Mapping):
        raise Malformed("its evidence is not a list of objects")
    return ImportedQuote(
        _text(value, "quote"),
        speaker=_text(value, "speaker"),
        session_id=_text(value, "session_id"),
        item_id=_text(value, "item_id"),
        said_at=_time(value, "said_at"),
    )


# --- members --------------------------------------------------------------------------------------------------------


def _entry(
    read: Callable[[Mapping[str, Any], str], ImportedMemory], value: Mapping[str, Any], place: str
) -> ImportedMemory | UnreadableEntry:
    try:
        return read(value, place)
    except Malformed as problem:
        return UnreadableEntry(place, str(problem))


def _text(value: Mapping[str, Any], name: str) -> str:
    """A text member; empty if missing. An id may be a number."""
    found = value.get(name)
    if found is None:
        return ""
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise Malformed(f"its {name} is not text")
    return str(found)


def _number(value: Mapping[str, Any], name: str) -> float:
    found = value.get(name, 0.5)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise Malformed(f"its {name} is not a number")
    try:
        return float(found)
    except OverflowError:
        raise Malformed(f"its {name} is too large a number") from None


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name) or {}
    if not isinstance(found, Mapping):
        raise Malformed(f"its {name} is not an object")
    return found


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    found = value.get(name) or []
    if not isinstance(found, list):
        raise Malformed(f"its {name} is not a list")
    return found


def _texts(value: Mapping[str, Any], name: str) -> list[str]:
    found = _list(value, name)
    if not all(isinstance(one, str) for one in found):
        raise Malformed(f"its {name} contains a value that is not text")
    return found


def _time(value: Mapping[str, Any], name: str) -> datetime | None:
    """A time member, in UTC if without a zone; a day means its beginning."""
    found = value.get(name)
    if found in (None, ""):
        return None
    time = times.of_text(found) if isinstance(found, str | int) else None
    if time is None:
        raise Malformed(f"its {name} is not a time such as 2026-01-31T12:00:00Z")
    return time


def _day(value: Mapping[str, Any], name: str) -> date | None:
    found = value.get(name)
    if found in (None, ""):
        return None
    try:
        return date.fromisoformat(str(found) if isinstance(found, str | int) else "")
    except ValueError:
        raise Malformed(f"its {name} is not a day such as 2026-01-31") from None


FORMATS: Mapping[str, Callable[[object, str], Read]] = {"profile": of_profile, "mem0": of_mem0, "export": of_export}
