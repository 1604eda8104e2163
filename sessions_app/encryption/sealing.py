"""Examining and decrypting encrypted envelopes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Protocol

from cryptography.fernet import Fernet, InvalidToken

from sessions_app.encryption.keyring import Keyring, keyring
from sessions_app.encryption.session_ids import WrapperIds
from sessions_app.encryption.subject_keys import SUBJECT_KEY, KeysOfSubject, SubjectId, keys_of_subject
from sessions_app.items import Seal, SealState, StoredItem
from sessions_app.timeline.decode import decode
from sessions_app.timeline.encryption import ENVELOPE_MEMBER, FERNET_VERSION, sealed_at
from sessions_app.timeline.values import Fields, text_in

SDK_TTL = timedelta(seconds=600)
"""Default `ttl` of EncryptedSession."""

CLOCK_SKEW = timedelta(seconds=60)
"""Seconds that the SDK lets a token be ahead of its reader's clock."""

LEAST_TOKEN_BYTES, BLOCK_BYTES = 73, 16
"""Length of a Fernet token with one block: version, time, 16 bytes of the cipher's start, the block, the signature."""


class EncryptedStore(Protocol):
    """Encryption columns of a store's row; see models.SessionStore."""

    encryption_key: str
    encryption_ttl_seconds: int | None
    encryption_ids: str

    def subject_ids_of(self, session_id: str) -> Sequence[SubjectId]: ...


def of_nobody(session_id: str) -> Sequence[SubjectId]:
    return ()


@dataclass(frozen=True, slots=True)
class Sealing:
    """Encryption settings of a store, with the loaded keys."""

    key_name: str
    """Empty if no key is set for the store."""
    declared_ttl: timedelta | None
    """Time for which agents read an item; None if it is not declared for the store."""
    wrapper_ids: WrapperIds
    keys: Keyring
    subject_ids_of: Callable[[str], Sequence[SubjectId]] = of_nobody
    """Ids of the subject of a session. Called for what the store's key does not open."""

    @property
    def ttl(self) -> timedelta:
        """The declared time, or the SDK's default: for display only, since agents may read items for longer."""
        return SDK_TTL if self.declared_ttl is None else self.declared_ttl

    def of_session(self, session_id: str) -> SessionSeals:
        return SessionSeals(self, self.wrapper_ids.of(session_id), session_id)


def sealing_of(store: EncryptedStore) -> Sealing:
    return Sealing(
        store.encryption_key,
        None if store.encryption_ttl_seconds is None else timedelta(seconds=store.encryption_ttl_seconds),
        WrapperIds.parse(store.encryption_ids),
        keyring(),
        store.subject_ids_of,
    )


@dataclass
class SessionSeals:
    """Envelopes of one session. Derives a key for it once, and each other key once it has to be tried."""

    sealing: Sealing
    wrapper_id: str
    session_id: str
    """The stored one."""
    _ciphers: dict[str, Fernet] = field(default_factory=dict)

    @property
    def has_key(self) -> bool:
        """True if the key of the store, or one of the session's subject, is loaded."""
        return self.sealing.keys.get(self.sealing.key_name) is not None or bool(self._of_subject.keys)

    @cached_property
    def _of_subject(self) -> KeysOfSubject:
        return keys_of_subject(lambda: self.sealing.subject_ids_of(self.session_id))

    def examined(
        self,
        items: Sequence[StoredItem],
        *,
        at: datetime,
        opens: bool = False,
        is_key_proven: Callable[[], bool] = lambda: False,
    ) -> list[StoredItem]:
        """The items of the session, each envelope among them with its state, and decrypted on demand as far as
        possible.

        An envelope of an unknown key and a broken one look the same; they differ in whether the store's key opens
        anything else. If it opens nothing among `items`, `is_key_proven` is asked, once.
        """
        seen = [self._examined(item, at=at, opens=opens) for item in items]
        in_doubt = [number for number, item in enumerate(seen) if item.seal and item.seal.state == SealState.WRONG_KEY]
        if in_doubt and (any(is_sound(item) for item in seen) or is_key_proven()):
            for number in in_doubt:
                item = seen[number]
                assert item.seal
                seen[number] = replace(item, seal=replace(item.seal, state=SealState.TAMPERED))
        return seen

    def examined_now(self, items: Sequence[StoredItem]) -> list[StoredItem]:
        """`examined` as of now, without decrypting any."""
        return self.examined(items, at=datetime.now(UTC))

    def proves_key(self, items: Sequence[StoredItem]) -> bool:
        """True if the store's key opens any of the items."""
        return any(map(is_sound, self.examined_now(items)))

    def ciphers(self) -> Iterator[Fernet]:
        """All loaded keys, the store's first, then those of the subject."""
        return (cipher for _, cipher in self._all_ciphers())

    def _examined(self, item: StoredItem, *, at: datetime, opens: bool) -> StoredItem:
        if ENVELOPE_MEMBER not in item.raw:
            return item
        entry = decode(item)
        if not entry.is_envelope:
            return item
        moment = sealed_at(entry.fields)
        seal = Seal(
            self._state_without_key(item, entry.fields),
            moment,
            # Not `moment + ttl`: an envelope may claim to be of the year 9999, and Python has no time after it.
            is_expired=moment is not None and moment < at - self.sealing.ttl,
            is_ahead=moment is not None and moment > at + CLOCK_SKEW,
            store_key=self.sealing.key_name,
        )
        if seal.state != SealState.WRONG_KEY:
            return replace(item, seal=seal)
        token = text_in(entry.fields, "payload").encode()
        for name, cipher in self._all_ciphers():
            try:
                if opens:
                    inside = cipher.decrypt(token).decode("utf-8", "replace")
                else:
                    cipher.extract_timestamp(token)
            except InvalidToken:
                continue
            state = SealState.SOUND if name in (self.sealing.key_name, SUBJECT_KEY) else SealState.OTHER_KEY
            seal = replace(seal, state=state, key_name=name, is_open=opens)
            return replace(item, raw=inside, seal=seal) if opens else replace(item, seal=seal)
        if self._of_subject.is_any_destroyed:
            seal = replace(seal, state=SealState.KEY_DESTROYED)
        return replace(item, seal=seal)

    def _state_without_key(self, item: StoredItem, envelope: Fields) -> SealState:
        """Wrong key, for tokens on which the keys have yet to be tried."""
        if not item.is_whole:
            return SealState.UNCHECKED
        if not is_token(text_in(envelope, "payload")):
            return SealState.TAMPERED
        if self.has_key:
            return SealState.WRONG_KEY
        return SealState.KEY_DESTROYED if self._of_subject.is_any_destroyed else SealState.NO_KEY

    def _all_ciphers(self) -> Iterator[tuple[str, Fernet]]:
        """Keys to try: the store's, those of the subject, all others."""
        keys = self.sealing.keys.keys
        if self.sealing.key_name in keys:
            yield self.sealing.key_name, self._cipher(self.sealing.key_name)
        yield from ((SUBJECT_KEY, cipher) for cipher in self.ciphers_of_subject)
        for name in sorted(keys.keys() - {self.sealing.key_name}):
            yield name, self._cipher(name)

    def _cipher(self, name: str) -> Fernet:
        if name not in self._ciphers:
            self._ciphers[name] = self.sealing.keys.keys[name].cipher(self.wrapper_id)
        return self._ciphers[name]

    @cached_property
    def ciphers_of_subject(self) -> list[Fernet]:
        """Ciphers with the keys of the session's subject. Up to three queries, once."""
        # GovernedSession gives its wrapper the stored session id, whatever agents do that wrap by themselves.
        return [key.cipher(self.session_id) for key in self._of_subject.keys]


def is_sound(item: StoredItem) -> bool:
    return item.seal is not None and item.seal.state == SealState.SOUND


def is_token(payload: str) -> bool:
    """True for the form of a Fernet token. A truncated or garbled one has another form: this needs no key."""
    try:
        token = base64.urlsafe_b64decode(payload)
    except (binascii.Error, ValueError):
        return False
    return (
        len(token) >= LEAST_TOKEN_BYTES
        and token[0] == FERNET_VERSION
        and (len(token) - LEAST_TOKEN_BYTES) % BLOCK_BYTES == 0
    )
