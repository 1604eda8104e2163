"""Detection of personal values and secrets in text.

Each finder proposes matches by a cheap expression and leaves the decision to a library. For keys and tokens, the
library's own expressions are used.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memadmin.values import keys, numbers, windows
from memadmin.web.masking import emails


class SensitiveKind(StrEnum):
    """Kinds as shown in masks, in the order of precedence for overlapping values."""

    KEY = "key"
    CARD = "card"
    ACCOUNT = "account"
    EMAIL = "e-mail"
    PHONE = "phone"


class MaskingTimeout(Exception):
    """The text could not be searched within the deadline; it may contain values."""


@dataclass(frozen=True, slots=True)
class SensitiveSpan:
    start: int
    end: int
    kind: SensitiveKind


def find_values(
    text: str, *, regions: Sequence[str] = (), deadline: float | None = None, is_prose: bool = True
) -> list[SensitiveSpan]:
    """The values in a text, in order, without overlaps.

    Phone numbers without a country code are found for the `regions`, two letters each ("DE"). In prose a preceding
    word may announce a secret; without `is_prose` this is not checked, because the check does not support JSON. Raises
    MaskingTimeout when time.monotonic() has passed the `deadline` before the end.
    """
    found: list[SensitiveSpan] = []
    for start, window in windows(text):
        if deadline is not None and time.monotonic() > deadline:
            raise MaskingTimeout
        for kind, first, end in _proposed(window, regions, is_prose):
            first, end = start + first, start + end
            if kind is SensitiveKind.KEY:
                first, end = keys.whole_word(text, first, end)
            found.append(SensitiveSpan(first, end, kind))
    return list(_apart(found)) if len(found) > 1 else found


def _proposed(window: str, regions: Sequence[str], is_prose: bool) -> Iterator[tuple[SensitiveKind, int, int]]:
    for first, end in keys.find(window, is_prose=is_prose):
        yield SensitiveKind.KEY, first, end
    if runs := numbers.runs_of_digits(window):
        for first, end in numbers.find_cards(window, runs):
            yield SensitiveKind.CARD, first, end
        for first, end in numbers.find_accounts(window):
            yield SensitiveKind.ACCOUNT, first, end
        for first, end in numbers.find_phones(window, regions, runs):
            yield SensitiveKind.PHONE, first, end
    for first, end in emails.find(window):
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
