"""Badges and sentences for encrypted envelopes."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.items import Seal, SealState
from sessions_app.timeline.badges import Badge

BADGES = {
    SealState.OTHER_KEY: Badge("orange", "key", "other key"),
    SealState.WRONG_KEY: Badge("red", "key-off", "wrong key"),
    SealState.TAMPERED: Badge("red", "alert-octagon", "tampered"),
    SealState.NO_KEY: Badge("secondary", "key-off", "key not available"),
    SealState.KEY_DESTROYED: Badge("secondary", "key-off", "key destroyed"),
    SealState.UNCHECKED: Badge("secondary", "circle-dashed", "not checked"),
}
EXPIRED = Badge("secondary", "hourglass-off", "expired")
AHEAD = Badge("orange", "clock", "time in the future")
PLAINTEXT = Badge("orange", "lock-open", "plain text")


def badges_of(seal: Seal) -> tuple[Badge, ...]:
    """Badges of a seal; none for a sound seal that agents can read."""
    shown = [BADGES[seal.state]] if seal.state in BADGES else []
    if seal.is_expired:
        shown.append(EXPIRED)
    if seal.is_ahead:
        shown.append(AHEAD)
    return tuple(shown)


def sentences_of(seal: Seal) -> Iterator[str]:
    """Problems of items with such a seal; empty if there are none."""
    match seal.state:
        case SealState.OTHER_KEY:
            yield (
                f"Encrypted with the key “{seal.key_name}”; the key of the store is “{seal.store_key}”. Agents"
                " with the store's key do not see this item. Run rotate_key to encrypt it again."
            )
        case SealState.WRONG_KEY:
            yield (
                f"Encrypted with a key other than “{seal.store_key}”, or under another session id. An agent"
                f" with the key “{seal.store_key}” sees an empty history."
            )
        case SealState.TAMPERED:
            yield (
                "The key of the other items does not decrypt this item: it was changed, copied from another session,"
                " or encrypted with an unknown key. Agents skip it."
                if seal.store_key
                else "No key decrypts this item: it was truncated or changed. Agents skip it."
            )
        case SealState.NO_KEY:
            yield (
                f"The key “{seal.store_key}” is not in the keyring of this console."
                if seal.store_key
                else "No key is configured for this store, so its encrypted items cannot be read. Run store_key."
            )
        case SealState.KEY_DESTROYED:
            yield "The key of this subject was destroyed with their erasure: nobody can read this item any more."
        case SealState.UNCHECKED:
            yield "Too large to decrypt on this page. Open the page of the item."
    if seal.is_expired:
        yield "Agents no longer read this item; it is still stored."
    if seal.is_ahead:
        yield "The time of this item is in the future; agents cannot read it until then."
