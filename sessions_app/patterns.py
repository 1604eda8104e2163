"""Patterns that read subject, ticket and agent from a session id. Pure: texts in, texts out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Final

FIELD_LENGTHS: Final[Mapping[str, int]] = {"subject": 512, "ticket": 200, "agent": 200}
"""Fields that a pattern can read, with the length of the column of each."""

ANYTHING: Final = "*"


class PatternError(ValueError):
    """The pattern cannot be used; the message is a sentence for its author."""


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """Fields read from a session id. A field that the pattern does not have is empty."""

    subject: str = ""
    ticket: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """`customer_{subject}:ticket_{ticket}`: literal text around fields, and `{*}` for an ignored part.

    The whole session id has to match, letter by letter. A field is at least one character long and ends where the text
    after it first appears; the last one takes the rest. Doubled braces are literal, as in Python.
    """

    fields: tuple[str, ...]
    literals: tuple[str, ...]
    """Literal texts before, between and after the fields: one more than fields."""

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Parsed pattern. Raises PatternError."""
        fields: list[str] = []
        literals = [""]
        try:
            pieces = list(Formatter().parse(text))
        except ValueError:
            raise PatternError("A brace is not closed or not opened; write {{ or }} for a literal brace.") from None
        for literal, field, spec, conversion in pieces:
            literals[-1] += literal
            if field is None:
                continue
            if field not in (*FIELD_LENGTHS, ANYTHING) or spec or conversion:
                raise PatternError(
                    f"“{{{field}}}” is not a field; there are {{subject}}, {{ticket}}, {{agent}}, {{*}}."
                )
            if field != ANYTHING and field in fields:
                raise PatternError(f"{{{field}}} appears twice.")
            if fields and not literals[-1]:
                raise PatternError(
                    f"{{{fields[-1]}}} and {{{field}}} are adjacent, so their boundary is unclear; put text "
                    "between them."
                )
            fields.append(field)
            literals.append("")
        if not {"subject", "ticket"} & set(fields):
            raise PatternError("A pattern needs {subject} or {ticket}.")
        return cls(tuple(fields), tuple(literals))

    def match(self, session_id: str) -> PatternMatch | None:
        """Fields of this session id, or None if it does not match. Linear in its length, whatever the pattern.

        A value that is longer than its column or consists of spaces does not match: it could not be selected in a list.
        """
        *_, tail = self.literals
        if not session_id.startswith(self.literals[0]) or not session_id.endswith(tail):
            return None
        start, end = len(self.literals[0]), len(session_id) - len(tail)
        values = []
        # Ending each field at the first chance leaves the most for those after it, so no other split needs a try.
        for literal in self.literals[1:-1]:
            stop = session_id.find(literal, start + 1, end)
            if stop < 0:
                return None
            values.append(session_id[start:stop])
            start = stop + len(literal)
        if start >= end:
            return None
        values.append(session_id[start:end])
        found = {field: value for field, value in zip(self.fields, values, strict=True) if field != ANYTHING}
        if any(len(value) > FIELD_LENGTHS[field] or value.isspace() for field, value in found.items()):
            return None
        return PatternMatch(**found)
