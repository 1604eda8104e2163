"""Exclusions of a copy: codes, each with a sentence for the person."""

from __future__ import annotations

from django.db import models


class NotIncluded(models.TextChoices):
    STORE_LEFT_OUT = "store_left_out", "This place did not respond; it was decided to make the copy without the rest."
    UNREADABLE = "unreadable", "These sessions are damaged and could not be read."
    LOCKED = (
        "locked",
        "These sessions are locked or encrypted, so that staff reads them only with a second person. It was decided to "
        "make the copy without them, or they were locked after the decision. You can ask for them.",
    )
    STAY_ENCRYPTED = (
        "stay_encrypted",
        "These items are encrypted, and the copy was not approved to include them. You can ask for them.",
    )
    NO_KEY = "no_key", "These items are encrypted, and their key is not available."
    HIDDEN_BY_PROVIDER = (
        "provider",
        "Parts that only the provider of the language model can read, such as its reasoning and compacted history, are"
        " included as they are stored, and cannot be shown as text.",
    )
    OUTSIDE = (
        "outside",
        "Backups, logs of servers, run states that programs saved, and what the provider of the language model keeps"
        " are outside of this system.",
    )
    OTHERS = "others", "Words from sessions of other people are left out, also where they led to a note about you."


NEVER_INCLUDED = (NotIncluded.OTHERS, NotIncluded.HIDDEN_BY_PROVIDER, NotIncluded.OUTSIDE)
"""All others could be included once a store or a key is there again: they are exceptions of the run."""
