"""Badges: states as the interface shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Badge:
    """A state: a tone of the interface, an icon and one or a few words."""

    tone: str
    icon: str
    word: str
