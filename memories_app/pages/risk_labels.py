"""Labels and icons of risk flags and marks. Pure."""

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
    "contact": Flag("contact details", "user"),
    "national_id": Flag("identity number", "id-badge-2"),
    "passport": Flag("passport number", "id-badge-2"),
    "birth_date": Flag("date of birth", "id-badge-2"),
    "address": Flag("postal address", "map-2"),
    "health": Flag("health", "heartbeat"),
    "belief": Flag("may reveal belief", "eye-exclamation"),
    "politics": Flag("may reveal politics", "eye-exclamation"),
    "origin": Flag("may reveal origin", "eye-exclamation"),
    "sexuality": Flag("may reveal sexuality", "eye-exclamation"),
    "offence": Flag("may reveal an offence", "eye-exclamation"),
    "instruction": Flag("possible instruction", "prompt"),
    "authority": Flag("claims a role or rights", "shield-lock"),
    "price": Flag("price or refund", "tag"),
    "link": Flag("link", "arrow-right"),
    "invisible": Flag("invisible characters", "eye-off"),
}

HINTS = {
    "duplicate": Flag("duplicate", "copy"),
    "near_duplicate": Flag("near duplicate", "equal"),
    "contradiction": Flag("same topic", "arrows-diff"),
}
"""Marks of proposals from the comparison with other memories; see memories_app.dedup.similarity."""

CHECKS = (
    ("No secret, card or account number found", {"secret", "card_number", "account_number"}),
    ("No contact details found", {"contact"}),
    ("No identity number, date of birth or address found", {"national_id", "passport", "birth_date", "address"}),
    ("No sensitive category found", {"health", "belief", "politics", "origin", "sexuality", "offence"}),
    ("Not an instruction", {"instruction"}),
    ("No claim of a role or rights", {"authority"}),
    ("No price, discount or refund stated", {"price"}),
    ("No link and no invisible character", {"link", "invisible"}),
)
"""Checks: the sentence for a text without findings, and their flags."""


def flag_named(name: str) -> Flag:
    return FLAGS.get(name, Flag(name.replace("_", " "), "alert-triangle"))
