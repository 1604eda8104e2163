"""Where in a text a value stands that not everybody has to see.

Each finder proposes places by a cheap expression and leaves the verdict to a library. Where a library has expressions
of its own, for keys and tokens, those are used.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memadmin.values import keys, numbers, windows
from memadmin.web.masking import emails


class Kind(StrEnum):
    """In the words that a mask shows; where values overlap, the first of these names them."""

    KEY = "key"
    CARD = "card"
    ACCOUNT = "account"
    EMAIL = "e-mail"
    PHONE = "phone"


class TookTooLong(Exception):
    """The text could not be looked through in the time that was given; nobody knows what is in it."""


@dataclass(frozen=True, slots=True)
class Found:
    start: int
    end: int
    kind: Kind


def find_values(
    text: str, *, regions: Sequence[str] = (), deadline: float | None = None, is_prose: bool = True
) -> list[Found]:
    """The values in a text, in order and apart from each other.

    Phone numbers without a country code are found for the `regions`, two letters each ("DE"). In prose a word in front
    may say that a secret follows; without `is_prose` that is not looked for, because it does not know JSON. Raises
    TookTooLong when time.monotonic() has passed the `deadline` before the end.
    """
    found: list[Found] = []
    for start, window in windows(text):
        if deadline is not None and time.monotonic() > deadline:
            raise TookTooLong
        for kind, first, end in _proposed(window, regions, is_prose):
            first, end = start + first, start + end
            if kind is Kind.KEY:
                first, end = keys.whole_word(text, first, end)
            found.append(Found(first, end, kind))
    return list(_apart(found)) if len(found) > 1 else found


def _proposed(window: str, regions: Sequence[str], is_prose: bool) -> Iterator[tuple[Kind, int, int]]:
    for first, end in keys.find(window, is_prose=is_prose):
        yield Kind.KEY, first, end
    if runs := numbers.runs_of_digits(window):
        for first, end in numbers.find_cards(window, runs):
            yield Kind.CARD, first, end
        for first, end in numbers.find_accounts(window):
            yield Kind.ACCOUNT, first, end
        for first, end in numbers.find_phones(window, regions, runs):
            yield Kind.PHONE, first, end
    for first, end in emails.find(window):
        yield Kind.EMAIL, first, end


def _apart(found: Iterable[Found]) -> Iterator[Found]:
    """What overlaps becomes one, of the more telling kind."""
    order = list(Kind)
    current: Found | None = None
    for one in sorted(found, key=lambda one: one.start):
        if current and one.start < current.end:
            kind = min(current.kind, one.kind, key=order.index)
            current = Found(current.start, max(current.end, one.end), kind)
            continue
        if current:
            yield current
        current = one
    if current:
        yield current
