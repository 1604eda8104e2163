"""Mapping from the session id in the store to the one that `EncryptedSession` was given."""

from __future__ import annotations

from dataclasses import dataclass

ARROW = "->"
ID = "{id}"


class BadSessionIds(ValueError):
    """The text is no such mapping; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class WrapperIds:
    """Reads `sealed:{id} -> {id}`: the inner session id on the left, the wrapper's on the right."""

    before: str = ""
    after: str = ""
    wrapper: str = ID

    @classmethod
    def parse(cls, text: str) -> WrapperIds:
        """Empty: both are the same. Raises BadSessionIds."""
        if not text.strip():
            return cls()
        inner, arrow, wrapper = (part.strip() for part in text.partition(ARROW))
        if not arrow or inner.count(ID) != 1 or not wrapper or wrapper.count(ID) > 1:
            raise BadSessionIds(
                f"Write how the wrapper's session id is derived from the stored one, such as sealed:{ID} {ARROW} {ID}."
            )
        before, _, after = inner.partition(ID)
        return cls(before, after, wrapper)

    def of(self, session_id: str) -> str:
        """The wrapper's id of a stored session; the stored id if it does not match the left side."""
        is_like = (
            session_id.startswith(self.before)
            and session_id.endswith(self.after)
            and len(session_id) > len(self.before) + len(self.after)
        )
        if not is_like:
            return session_id
        middle = session_id[len(self.before) : len(session_id) - len(self.after)]
        return self.wrapper.replace(ID, middle)
