"""How pages call and draw what makes a memory risky. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flag:
    word: str
    symbol: str


FLAGS = {
    "secret": Flag("secret", "key"),
    "card_number": Flag("card number", "credit-card"),
    "account_number": Flag("account number", "credit-card"),
    "contact": Flag("way to contact", "user"),
    "health": Flag("health", "heartbeat"),
    "belief": Flag("may show belief", "eye-exclamation"),
    "politics": Flag("may show politics", "eye-exclamation"),
    "origin": Flag("may show origin", "eye-exclamation"),
    "sexuality": Flag("may show sexuality", "eye-exclamation"),
    "offence": Flag("may show an offence", "eye-exclamation"),
    "instruction": Flag("reads like an instruction", "prompt"),
    "link": Flag("link", "arrow-right"),
    "invisible": Flag("invisible characters", "eye-off"),
}

HINTS = {
    "duplicate": Flag("known already", "copy"),
    "near_duplicate": Flag("much like another", "equal"),
    "contradiction": Flag("contradicts", "arrows-diff"),
}
"""How the look at other memories marks what waits; see memories_app.dedup.similarity."""

CHECKS = (
    ("No secret, card or account number found", {"secret", "card_number", "account_number"}),
    ("No way to contact somebody found", {"contact"}),
    ("No sensitive category found", {"health", "belief", "politics", "origin", "sexuality", "offence"}),
    ("Does not read like an instruction", {"instruction"}),
    ("No link, no invisible character", {"link", "invisible"}),
)
"""What is looked for, said of a text in which it was not found, and the flags of it."""


def flag_named(name: str) -> Flag:
    return FLAGS.get(name, Flag(name.replace("_", " "), "alert-triangle"))
