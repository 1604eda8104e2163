"""Masks of sensitive values: the kind of the value, and enough of it to tell values apart.

    [card •••• 4242]  [account DE •••• 3000]  [e-mail ••••@example.com]  [phone •••• 20]  [key ghp_••••]

Plain text, so that it is unchanged in copied text, in files and in search. Anyone can write the same characters; they
have no meaning for access.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence

from memadmin.values.effort import UNLIMITED, StepLimit
from memadmin.values.rewriting import INVISIBLE, RewrittenText
from memadmin.web.masking import emails
from memadmin.web.masking.finding import SensitiveKind, SensitiveSpan, find_values

DOTS = "\N{BULLET}" * 4

MASK = re.compile(rf"\[((?:{'|'.join(SensitiveKind)}) (?:[^\[\]\s]{{1,4}} ?)?{DOTS}(?: \w{{1,4}}|@[\w.-]{{1,255}})?)\]")
"""Finds masks; the group is the text of the mask."""

MASKED_SECRET = f"[{SensitiveKind.KEY} {DOTS}]"

TELLING_OF_KEY = 4
LONG_KEY = 20
"""Minimum length at which the first characters, which only name the issuer, are shown."""


def mask_text(text: str, *, regions: Sequence[str] = (), limit: StepLimit = UNLIMITED) -> tuple[str, int]:
    """The text with its values masked, and their number. Raises TooMuchWork (see `find_values`)."""
    return mask_found(text, find_values(text, regions=regions, limit=limit))


def mask_found(text: str, found: Sequence[SensitiveSpan]) -> tuple[str, int]:
    """The text with the found values masked, and their number."""
    found = _unmasked(text, found)
    if not found:
        return text, 0
    pieces, place = [], 0
    for one in found:
        pieces += [text[place : one.start], _mask(text, one)]
        place = one.end
    return "".join(pieces) + text[place:], len(found)


def mask_in_json(original: str, decoded: RewrittenText, found: Sequence[SensitiveSpan]) -> tuple[str, int]:
    """A part of a JSON text with the values masked that were found in it without its escapes, and their number."""
    found = _unmasked(decoded.text, found)
    pieces, place = [], 0
    for one in found:
        start, end = decoded.in_original(one.start, one.end)
        pieces += [original[place:start], json.dumps(_mask(decoded.text, one), ensure_ascii=False)[1:-1]]
        place = end
    return "".join(pieces) + original[place:], len(found)


def _unmasked(text: str, found: Sequence[SensitiveSpan]) -> Sequence[SensitiveSpan]:
    """The found values outside of existing masks, which stay: the word before one may announce a secret."""
    if not found or DOTS not in text:
        return found
    starts, ends = [], []
    for mask in MASK.finditer(text):
        starts.append(mask.start())
        ends.append(mask.end())
    return [one for one in found if not _overlaps(one, starts, ends)]


def _overlaps(found: SensitiveSpan, starts: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether a value overlaps one of several ranges, which are in order."""
    following = bisect_right(ends, found.start)
    return following < len(starts) and starts[following] < found.end


def _mask(text: str, found: SensitiveSpan) -> str:
    """The mask of one value."""
    value = INVISIBLE.sub("", text[found.start : found.end])
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
