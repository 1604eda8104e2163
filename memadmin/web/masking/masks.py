"""Masks of sensitive values: the kind of the value, and enough of it to tell values apart.

    [card •••• 4242]  [account DE •••• 3000]  [e-mail ••••@example.com]  [phone •••• 20]  [key ghp_••••]

Plain text, so that it is unchanged in copied text, in files and in search. Anyone can write the same characters; they
have no meaning for access.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memadmin.web.masking import emails
from memadmin.web.masking.finding import SensitiveKind, SensitiveSpan, find_values

DOTS = "\N{BULLET}" * 4

MASK = re.compile(rf"\[((?:{'|'.join(SensitiveKind)}) (?:[^\[\]\s]{{1,4}} ?)?{DOTS}(?: \w{{1,4}}|@[\w.-]{{1,255}})?)\]")
"""Finds masks; the group is the text of the mask."""

MASKED_SECRET = f"[{SensitiveKind.KEY} {DOTS}]"

TELLING_OF_KEY = 4
LONG_KEY = 20
"""Minimum length at which the first characters, which only name the issuer, are shown."""


def mask_text(text: str, *, regions: Sequence[str] = (), deadline: float | None = None) -> tuple[str, int]:
    """The text with its values masked, and their number. Raises MaskingTimeout (see `find_values`)."""
    return mask_found(text, find_values(text, regions=regions, deadline=deadline))


def mask_found(text: str, found: Sequence[SensitiveSpan]) -> tuple[str, int]:
    """The text with the found values masked, and their number."""
    if found and DOTS in text:
        # Existing masks stay: the word before one may announce a secret.
        masks = [mask.span() for mask in MASK.finditer(text)]
        found = [one for one in found if not any(one.start < end and start < one.end for start, end in masks)]
    if not found:
        return text, 0
    pieces, place = [], 0
    for one in found:
        pieces += [text[place : one.start], _mask(text, one)]
        place = one.end
    return "".join(pieces) + text[place:], len(found)


def _mask(text: str, found: SensitiveSpan) -> str:
    """The mask of one value."""
    value = text[found.start : found.end]
    plain = "".join(filter(str.isalnum, value))
    match found.kind:
        case SensitiveKind.CARD:
            shown = f"{DOTS} {plain[-4:]}"
        case SensitiveKind.ACCOUNT:
            shown = f"{plain[:2].upper()} {DOTS} {plain[-4:]}"
        case SensitiveKind.EMAIL:
            shown = f"{DOTS}@{emails.domain_of(value)}"
        case SensitiveKind.PHONE:
            shown = f"{DOTS} {plain[-2:]}"
        case SensitiveKind.KEY:
            shown = f"{value[:TELLING_OF_KEY] if len(plain) >= LONG_KEY else ''}{DOTS}"
    return f"[{found.kind} {shown}]"
