"""Safe rendering of untrusted text from agents and their users. Pure: strings and values in, HTML out.

Markup is escaped, characters that hide or reorder text are shown as escapes, and the output has a limit, however large
or deeply nested the value is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape, unescape
from json.encoder import encode_basestring
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from memadmin.values.shortened import left_out_of, length_of
from memadmin.web.masking import DOTS, MASK

SHOWN_CHARACTERS = 20_000
"""Maximum of characters shown of one JSON value."""

SHOWN_STRING = 4_000
"""Maximum of characters shown of one string inside it."""

DEEPEST_INDENT = 24
INDENTS = ["\n" + "  " * depth for depth in range(DEEPEST_INDENT + 1)]

TAG = re.compile(r"(<[^<>]*>)")

AS_JSON = json.JSONEncoder(ensure_ascii=False, default=str).encode
"""Created once: json.dumps() creates a new encoder for every value."""

SPANS = {"j-key": "\x01", "j-str": "\x02", "j-num": "\x03"}
SPAN_ENDS, CUT_HERE, IN_ITS_PLACE = "\x04", "\x05", "\x06"
TAGS = {sign: f'<span class="{kind}">' for kind, sign in SPANS.items()} | {
    SPAN_ENDS: "</span>",
    CUT_HERE: '<span class="j-cut">… truncated: too long to display</span>',
}

END: Any = object()

# Control characters but tab and line feed, lone surrogates, direction overrides and isolates, zero-width spaces, soft
# hyphens and fillers, line separators, byte order marks, the "tag" characters that spell invisible ASCII, and variation
# selectors. Joiners stay: scripts and emoji need them.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
# They select the form of an ideograph, mostly in names; anywhere else they only hide something.
FORMS = re.compile("[\U000e0100-\U000e01ef]")
IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

# More combining marks on one letter than any script uses: they would cover the lines around.
STORM = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{5,}")
MOST_MARKS = 4


def write_out_invisible(text: str) -> str:
    r"""`text` with invisible, reordering, stacked and unencodable characters as `\uXXXX`, as in JSON."""
    if text.isascii():
        if text.isprintable():  # most texts; a page has hundreds
            return text[:]  # a plain string, also for a SafeString
    else:
        text = STORM.sub(lambda marks: marks[0][:MOST_MARKS] + _in_json(marks[0][MOST_MARKS:]), text)
    return INVISIBLE.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    if FORMS.match(match[0]) and IDEOGRAPH.match(match.string, max(match.start() - 1, 0)):
        return match[0]
    return _in_json(match[0])


def _in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def mark_matches(text: str, pattern: re.Pattern[str] | None) -> SafeString:
    """`text` in HTML, with each match of the pattern in a `<mark>`; empty matches are ignored.

    Masked values are spans of class masked; the text of a mask is not searched.
    """
    pieces, place = [], 0
    for mask in MASK.finditer(text) if DOTS in text else ():
        pieces += [_with_marks(text[place : mask.start()], pattern), _as_masked(mask)]
        place = mask.end()
    # Each part is escaped or written here.
    return mark_safe("".join(pieces) + _with_marks(text[place:], pattern))


def _with_marks(text: str, pattern: re.Pattern[str] | None) -> str:
    pieces, place = [], 0
    for match in pattern.finditer(text) if pattern else ():
        if match[0]:
            pieces.append(f"{escape(text[place : match.start()])}<mark>{escape(match[0])}</mark>")
            place = match.end()
    return "".join(pieces) + escape(text[place:])


def with_masks(html: str) -> str:
    """HTML with the masks in its text as elements."""
    return MASK.sub(_as_masked, html) if DOTS in html else html


def mark_in_html(html: str, pattern: re.Pattern[str] | None) -> str:
    """HTML of ours with its masks as elements, and with each match in a `<mark>`.

    A match across elements, such as "to**day**", is not found.
    """
    if pattern is None:
        return with_masks(html)
    pieces = TAG.split(html)
    # Text and elements alternate.
    pieces[::2] = (mark_matches(unescape(text), pattern) for text in pieces[::2])
    return "".join(pieces)


def _as_masked(mask: re.Match[str]) -> str:
    return f'<span class="masked">{escape(mask[1])}</span>'


def pretty_json(value: Any) -> SafeString:
    """`value` as indented JSON in HTML, keys, strings and other values in spans of class j-key, j-str and j-num.

    At most about SHOWN_CHARACTERS, then a line that it is truncated. Without recursion, so depth does not matter.
    """
    shown: list[str] = []
    masked: list[str] = []
    budget = SHOWN_CHARACTERS
    for punctuation, kind, text in tokens(value):
        budget -= len(punctuation) + len(text)
        if DOTS in text:
            masked.append(mark_matches(text, None))
            text = IN_ITS_PLACE
        shown.append(f"{punctuation}{SPANS[kind]}{text}{SPAN_ENDS}" if kind else punctuation + text)
        if budget < 0:
            shown.append("\n" + CUT_HERE)
            break
    # Once for the whole value, as a page has hundreds of values. JSON contains none of the replaced signs.
    html = escape("".join(shown))
    for sign, tag in TAGS.items():
        html = html.replace(sign, tag)
    pieces = html.split(IN_ITS_PLACE)
    return mark_safe(pieces[0] + "".join(map("".join, zip(masked, pieces[1:], strict=True))))


def tokens(value: Any) -> Iterator[tuple[str, str, str]]:
    """Keys, strings and other values in order: text before each, class of its span, its text."""
    open_containers: list[tuple[Iterator[Any], bool, int]] = []
    before = ""
    pending: Any = value
    while True:
        is_first = isinstance(pending, dict | list) and bool(pending)
        if is_first:
            is_object = isinstance(pending, dict)
            before += "{" if is_object else "["
            open_containers.append((iter(pending.items() if is_object else pending), is_object, left_out_of(pending)))
        else:
            yield before, *leaf(pending)
            before = ""
        while open_containers:
            children, is_object, left_out = open_containers[-1]
            child = next(children, END)
            if child is not END:
                break
            if left_out:
                before += f",{indent(len(open_containers))}… {left_out:,} more"
            open_containers.pop()
            before += indent(len(open_containers)) + ("}" if is_object else "]")
        else:
            yield before, "", ""
            return
        before += ("" if is_first else ",") + indent(len(open_containers))
        if is_object:
            yield before, "j-key", quoted(str(child[0]))
            before, pending = ": ", child[1]
        else:
            pending = child


def indent(depth: int) -> str:
    return INDENTS[depth] if depth < DEEPEST_INDENT else INDENTS[-1]


def leaf(value: Any) -> tuple[str, str]:
    if isinstance(value, str):
        return "j-str", quoted(value)
    if isinstance(value, dict | list):
        left_out = f"… {left_out_of(value):,} more" if left_out_of(value) else ""
        return "", f"{{{left_out}}}" if isinstance(value, dict) else f"[{left_out}]"
    if type(value) is int:
        # A number of a million digits is one token too, and Python refuses to convert it.
        bits = value.bit_length()
        return "j-num", f"a number of {bits:,} bits" if bits > SHOWN_STRING else str(value)
    return "j-num", AS_JSON(value)


def quoted(text: str) -> str:
    """`text` as a JSON string; a long one ends with the number of omitted characters."""
    shown = write_out_invisible(encode_basestring(text[:SHOWN_STRING]))
    left_out = length_of(text) - len(text[:SHOWN_STRING])
    return f"{shown} … {left_out:,} more characters" if left_out > 0 else shown
