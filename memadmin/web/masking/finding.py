"""Detection of personal values and secrets in text.

Each finder proposes matches by a cheap expression and leaves the decision to a library. For keys and tokens, the
library's own expressions are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memadmin.values import keys, numbers, windows
from memadmin.values.effort import UNLIMITED, StepLimit
from memadmin.values.rewriting import without_invisible
from memadmin.web.masking import emails

ENCODED_CHARACTERS_OF_A_STEP = 8


class SensitiveKind(StrEnum):
    """Kinds as shown in masks, in the order of precedence for overlapping values."""

    KEY = "key"
    CARD = "card"
    ACCOUNT = "account"
    EMAIL = "e-mail"
    PHONE = "phone"


@dataclass(frozen=True, slots=True)
class SensitiveSpan:
    start: int
    end: int
    kind: SensitiveKind


def find_values(
    text: str, *, regions: Sequence[str] = (), limit: StepLimit = UNLIMITED, is_prose: bool = True
) -> list[SensitiveSpan]:
    """The values in a text, in order, without overlaps.

    Phone numbers without a country code are found for the `regions`, two letters each ("DE"). In prose a preceding
    word may announce a secret; without `is_prose` this is not checked, because the check does not support JSON.
    Invisible characters hide nothing. Raises TooMuchWork when the `limit` is reached before the end.
    """
    found = _found(text, regions, limit, is_prose)
    if visible := without_invisible(text):
        for one in _found(visible.text, regions, limit, is_prose):
            found.append(SensitiveSpan(*visible.in_original(one.start, one.end), one.kind))
    return list(_apart(found)) if len(found) > 1 else found


def find_cards(text: str, *, limit: StepLimit = UNLIMITED) -> list[SensitiveSpan]:
    """Only the card numbers in a text, for encoded data: in it anything else is a coincidence."""
    found = []
    for start, window in windows(text):
        limit.spend(len(window) // ENCODED_CHARACTERS_OF_A_STEP)
        for first, end in numbers.find_cards(window, numbers.runs_of_digits(window), limit):
            found.append(SensitiveSpan(start + first, start + end, SensitiveKind.CARD))
    return list(_apart(found))


def _found(text: str, regions: Sequence[str], limit: StepLimit, is_prose: bool) -> list[SensitiveSpan]:
    found: list[SensitiveSpan] = []
    key_places: list[tuple[int, int]] = []
    for start, window in windows(text):
        limit.spend(len(window))
        key_places += ((start + first, start + end) for first, end in keys.find(window, is_prose=is_prose))
        for kind, first, end in _proposed(window, regions, limit):
            found.append(SensitiveSpan(start + first, start + end, kind))
    return found + [SensitiveSpan(*place, SensitiveKind.KEY) for place in keys.whole_words(text, key_places)]


def _proposed(window: str, regions: Sequence[str], limit: StepLimit) -> Iterator[tuple[SensitiveKind, int, int]]:
    if runs := numbers.runs_of_digits(window):
        for first, end in numbers.find_cards(window, runs, limit):
            yield SensitiveKind.CARD, first, end
        for first, end in numbers.find_accounts(window, limit):
            yield SensitiveKind.ACCOUNT, first, end
        for first, end in numbers.find_phones(window, regions, runs, limit):
            yield SensitiveKind.PHONE, first, end
    for first, end in numbers.find_grouped_cards(window, limit):
        yield SensitiveKind.CARD, first, end
    for first, end in emails.find(window, limit):
        yield SensitiveKind.EMAIL, first, end


def _apart(found: Iterable[SensitiveSpan]) -> Iterator[SensitiveSpan]:
    """Merges overlapping values into one, of the kind with precedence."""
    order = list(SensitiveKind)
    current: SensitiveSpan | None = None
    for one in sorted(found, key=lambda one: one.start):
        if current and one.start < current.end:
            kind = min(current.kind, one.kind, key=order.index)
            current = SensitiveSpan(current.start, max(current.end, one.end), kind)
            continue
        if current:
            yield current
        current = one
    if current:
        yield current
