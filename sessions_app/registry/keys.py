"""Problems of a store's key: not loaded, or not the one that its agents use."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.encryption import sealing_of
from sessions_app.encryption.subject_keys import key_folder
from sessions_app.items import SealState
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreProblem

SESSIONS_TRIED = 3
ITEMS_TRIED = 10


def key_problems(store: SessionStore) -> Iterator[StoreProblem]:
    """Tries the key on the last items of the newest encrypted sessions: four queries. Raises StoreUnavailable."""
    if not store.encryption_key:
        return
    sealing = sealing_of(store)
    if sealing.keys.get(store.encryption_key) is None:
        sentence = f"{sealing.keys.why_not(store.encryption_key)} Encrypted items of this store cannot be read."
        yield StoreProblem("session-key-missing", sentence)
        return
    if doubt := sealing.keys.doubts.get(store.encryption_key):
        yield StoreProblem("session-key-doubtful", doubt)
    tried = decrypted = 0
    sealed = SessionRecord.objects.on_record().filter(store=store, is_encrypted=True).newest_first()
    for session_id in sealed.values_list("session_id", flat=True)[:SESSIONS_TRIED]:
        page = backend_for(store).last_page(session_id, ITEMS_TRIED)
        states = [item.seal.state for item in sealing.of_session(session_id).examined_now(page.items) if item.seal]
        tried += len(states)
        decrypted += states.count(SealState.SOUND)
    if tried and not decrypted:
        yield StoreProblem(
            "session-key-wrong",
            f"The key {store.encryption_key} opens none of the {tried} encrypted items that were written last: agents"
            " use another key, or another session id than the stored one.",
        )


def key_hints(store: SessionStore) -> Iterator[str]:
    # With keys of subjects, agents may do without a key of the store.
    if store.encryption_key or key_folder() is not None:
        return
    if SessionRecord.objects.filter(store_id=store.pk, is_encrypted=True).exists():
        yield (
            "Some of its sessions are encrypted, but no key is set. Add the key to the keyring and run store_key"
            f" {store} --key with its name."
        )
