"""What a seal means to who reads a timeline: a badge, and sentences."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.items import Seal, SealState
from sessions_app.timeline.badges import Badge

BADGES = {
    SealState.OTHER_KEY: Badge("orange", "key", "other key"),
    SealState.WRONG_KEY: Badge("red", "key-off", "wrong key"),
    SealState.TAMPERED: Badge("red", "alert-octagon", "tampered"),
    SealState.NO_KEY: Badge("secondary", "key-off", "no key here"),
    SealState.UNCHECKED: Badge("secondary", "circle-dashed", "not checked"),
}
EXPIRED = Badge("secondary", "hourglass-off", "expired")
AHEAD = Badge("orange", "clock", "not yet")
PLAINTEXT = Badge("orange", "lock-open", "plain text")


def badges_of(seal: Seal) -> tuple[Badge, ...]:
    """None for a sound seal that agents read."""
    shown = [BADGES[seal.state]] if seal.state in BADGES else []
    if seal.is_expired:
        shown.append(EXPIRED)
    if seal.is_ahead:
        shown.append(AHEAD)
    return tuple(shown)


def sentences_of(seal: Seal) -> Iterator[str]:
    """What is the matter with items that have such a seal; nothing where nothing is."""
    match seal.state:
        case SealState.OTHER_KEY:
            yield (
                f"Sealed with the key “{seal.key_name}”, and the store's is “{seal.store_key}”: agents with that one do"
                " not see it until rotate_key has sealed it anew."
            )
        case SealState.WRONG_KEY:
            yield (
                f"Written with another key than “{seal.store_key}”, or under another session id. An agent that holds"
                f" “{seal.store_key}” sees an empty history here."
            )
        case SealState.TAMPERED:
            yield (
                "No seal of the key that opens other items here: changed after it was sealed, brought from another"
                " session, or sealed with a key that nobody named. Agents skip it."
                if seal.store_key
                else "No key opens this: it was cut or changed. Agents skip it."
            )
        case SealState.NO_KEY:
            yield (
                f"The key “{seal.store_key}” is not in the keyring of this console."
                if seal.store_key
                else "No key is named for this store, so nothing sealed in it can be read here."
            )
        case SealState.UNCHECKED:
            yield "Too large to be opened among others; the page of the item alone has it."
    if seal.is_expired:
        yield "Agents no longer read it; the row is still stored."
    if seal.is_ahead:
        yield "Its time is still to come, and agents do not read it before that."
