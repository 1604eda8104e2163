"""Limit of the work on one text, counted in steps and not in seconds: the same text always has the same result."""

from __future__ import annotations

from dataclasses import dataclass

# Steps of one question to a library, as measured; a character is one step.
PHONE_STEPS, ACCOUNT_STEPS, CARD_STEPS, EMAIL_STEPS = 2_000, 1_500, 100, 100


class TooMuchWork(Exception):
    """The text needs more steps than are allowed; it may contain values."""


@dataclass
class StepLimit:
    """Number of steps that may still be taken. A step takes about a tenth of a microsecond."""

    left: int

    def spend(self, steps: int) -> None:
        """Counts steps. Raises TooMuchWork when none are left."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork


class Unlimited(StepLimit):
    """Limit for short texts, and for texts that have to be read to their end."""

    def __init__(self) -> None:
        super().__init__(0)

    def spend(self, steps: int) -> None:
        """Counts nothing."""


UNLIMITED = Unlimited()
