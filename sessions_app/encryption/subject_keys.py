"""Keys of subjects, as the console reads them: from the folder that it shares with the agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from django.conf import settings

from memadmin.client.subject_keys import KeyFolder, SubjectKeyDestroyed, SubjectKeysUnavailable
from memadmin.client.subjects import Subject
from sessions_app.encryption.keyring import keyring
from sessions_app.encryption.keys import SessionKey

SUBJECT_KEY = "subject key"
"""Name of any subject's key; no key of the keyring has a space in its name."""

SubjectId: TypeAlias = tuple[str, str]
"""Kind and key of an alias."""


@dataclass(frozen=True, slots=True)
class KeysOfSubject:
    keys: tuple[SessionKey, ...] = ()
    is_any_destroyed: bool = False


def key_folder() -> KeyFolder | None:
    """The folder of MEMADMIN_SUBJECT_KEYS_DIR; None if there is none. Reads no file."""
    if settings.SUBJECT_KEYS_DIR is None:
        return None
    usable = keyring().keys
    return KeyFolder(
        settings.SUBJECT_KEYS_DIR,
        {secret.name: secret.text for secret in settings.SESSION_KEYS if secret.name in usable},
    )


def keys_of_subject(ids: Callable[[], Sequence[SubjectId]]) -> KeysOfSubject:
    """Keys for all ids of a subject. `ids` is called only if there is a folder. Keys that cannot be read are left out;
    `check_stores` reports why.
    """
    folder = key_folder()
    if folder is None:
        return KeysOfSubject()
    keys, is_any_destroyed = [], False
    for kind, key in ids():
        try:
            text = folder.existing_key(Subject(key, kind))
        except SubjectKeyDestroyed:
            is_any_destroyed = True
        except SubjectKeysUnavailable:
            continue
        else:
            keys += [SessionKey(SUBJECT_KEY, text)] if text else []
    return KeysOfSubject(tuple(keys), is_any_destroyed)


def keys_wrapped_with(name: str) -> int:
    """Number of subjects' keys that need this key of the keyring; 0 as well if they cannot be counted."""
    folder = key_folder()
    try:
        return folder.wrapped_with()[name] if folder else 0
    except SubjectKeysUnavailable:
        return 0


def folder_problems() -> list[str]:
    """Sentences about the folder; empty if it is in order, or none is set."""
    folder = key_folder()
    return folder.problems() if folder else []
