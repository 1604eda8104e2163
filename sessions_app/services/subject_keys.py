"""Destruction of the keys of an erased subject: copies of its encrypted sessions, as in dumps, become unreadable.

In addition to deleting the sessions, never instead of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from django.contrib.auth.models import User
from django.db import transaction

from memadmin import audit
from memadmin.client.subject_keys import KeyFolder, SubjectKeyDestroyed, SubjectKeysUnavailable
from memadmin.client.subjects import Subject as SubjectInHost
from sessions_app import audit_events
from sessions_app.encryption import Sealing, SessionKey, WrapperIds, keyring
from sessions_app.encryption.subject_keys import SUBJECT_KEY, SubjectId, key_folder
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, Subject, SubjectAlias
from sessions_app.services.deletion_guards import check_deletion
from sessions_app.services.subjects import merge_target

CANARY = "canary"
"""Session id of the envelopes with which a destruction is verified."""


class KeyNotDestroyed(Exception):
    """After its destruction, a key still opened what it had encrypted before."""

    def __init__(self) -> None:
        super().__init__("A key of this subject still opens envelopes after it was destroyed. Look at the key folder.")


def destroy_subject_keys(subject: Subject) -> int:
    """Destroys the keys for all ids of a subject and of all merged with it; returns how many there were until now.

    Safe to repeat. Needs the aliases, so it comes before they are deleted. Files are no part of a transaction: what was
    destroyed stays destroyed if the caller's is rolled back. An envelope of each key is tried afterwards, as the
    console opens those of sessions. Raises DeletionRefused, SubjectKeysUnavailable and KeyNotDestroyed.
    """
    folder = key_folder()
    if folder is None:
        return 0
    with transaction.atomic(), audit.recording(audit_events.SUBJECT_KEYS_DESTROYED) as event:
        subject = merge_target(subject)
        group = subject.group_ids()
        list(Subject.objects.select_for_update(no_key=True).filter(pk__in=group).order_by("pk"))
        records = SessionRecord.objects.filter(subject__in=group).values_list("pk", flat=True)
        check_deletion(records=records, subjects=group)
        ids = list(SubjectAlias.objects.filter(subject__in=group).order_by("pk").values_list("kind", "key"))
        canaries = canaries_of(folder, ids)
        count = sum(folder.destroy(SubjectInHost(key, kind)) for kind, key in ids)
        if opened(canaries, ids):
            raise KeyNotDestroyed
        event.target = event.subject = subject
        event.counters, event.is_void = {"keys": count}, not count
    return count


def allow_new_key(subject: Subject, *, kind: str, key: str, by: User | None = None) -> bool:
    """Lets agents make a new key for an id of a person who comes back; True if its old key was destroyed.

    What the old key encrypted stays unreadable. Raises SubjectKeysUnavailable.
    """
    folder = key_folder()
    if folder is None:
        return False
    with transaction.atomic(), audit.recording(audit_events.SUBJECT_KEY_ALLOWED, by=by) as event:
        event.target = event.subject = subject
        is_allowed = folder.allow_new_key(SubjectInHost(key, kind))
        event.is_void = not is_allowed
    return is_allowed


def wrap_subject_keys(folder: KeyFolder, *, key: str) -> int:
    """Wraps all keys of subjects with another key of the keyring; returns how many had another one.

    The keys, and what they encrypted, stay the same. Raises SubjectKeysUnavailable.
    """
    with transaction.atomic(), audit.recording(audit_events.SUBJECT_KEYS_WRAPPED) as event:
        count = folder.wrap_with(key)
        event.counters, event.is_void = {"keys": count}, not count
    return count


def canaries_of(folder: KeyFolder, ids: Sequence[SubjectId]) -> list[StoredItem]:
    """An envelope of each existing key. A key that cannot be unwrapped here has none."""
    found = []
    for number, (kind, key) in enumerate(ids, start=1):
        try:
            text = folder.existing_key(SubjectInHost(key, kind))
        except (SubjectKeyDestroyed, SubjectKeysUnavailable):
            continue
        if text:
            found.append(canary(number, SessionKey(SUBJECT_KEY, text)))
    assert opened(found, ids) == len(found)
    return found


def canary(number: int, key: SessionKey) -> StoredItem:
    payload = key.cipher(CANARY).encrypt(b'{"role":"user","content":"canary"}').decode()
    raw = json.dumps({"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": payload})
    return StoredItem(str(number), Position((number,)), raw, len(raw), None)


def opened(envelopes: Sequence[StoredItem], ids: Sequence[SubjectId]) -> int:
    """Number of envelopes that this console opens, the way in which it reads sessions of this subject."""
    sealing = Sealing("", None, WrapperIds(), keyring(), lambda session_id: ids)
    seen = sealing.of_session(CANARY).examined(envelopes, at=datetime.now(UTC), opens=True)
    return sum(item.seal is not None and item.seal.is_open for item in seen)
