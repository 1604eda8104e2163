"""Keys of subjects, one for each id of a subject, in a folder outside of every database.

Whoever restores a dump of the agents' database without this folder restores envelopes that nothing opens. The console
uses the same class as agents do: to read, and to destroy the keys of an erased subject.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memadmin.client.master_key import KEY_BYTES, master_key
from memadmin.client.subjects import Subject

DERIVED_FOR = b"memadmin.subject-keys.wrap.v1"
NONCE_BYTES = 12
LONGEST_ID = 512
"""Characters of a subject's id, as the console stores it."""

NAMES = "names"
"""The file with the key of the digests that all other files are named by."""

LOCK = "lock"
_DIGEST = re.compile(r"[0-9a-f]{64}")


class SubjectKeyDestroyed(Exception):
    """The key of this subject was destroyed: what it encrypted is unreadable for ever."""

    def __init__(self) -> None:
        super().__init__("The key of this subject was destroyed, and no new one is made for the same id.")


class SubjectKeysUnavailable(Exception):
    """A key can be neither read nor made; the message is a sentence for an operator and names no subject."""


class _DamagedKeyFile(SubjectKeysUnavailable):
    pass


class SubjectKeys(Protocol):
    """A place of keys, as `GovernedSession` uses it."""

    def key_for(self, subject: Subject) -> str:
        """The subject's key, in the form of an `encryption_key` of the SDK. Made when there is none, once for all
        processes. Raises SubjectKeyDestroyed and SubjectKeysUnavailable.
        """

    def is_destroyed(self, subject: Subject) -> bool:
        """True if the key was destroyed. Raises SubjectKeysUnavailable."""


@dataclass(frozen=True, slots=True)
class _KeyFile:
    """Content of a file: a wrapped key, or the note that there was one."""

    wrapped_with: str = ""
    wrapped: bytes = b""
    destroyed_at: str = ""


class KeyFolder:
    """Implements `SubjectKeys` with one small file for each id of a subject.

    `keyring` has the keys that wrap those in the folder, by their names; new keys are wrapped with the first. A file is
    named by a keyed digest of the id, so that the folder alone does not reveal whose keys it has.

    The folder is shared by agents and console, on a file system with hard links, and is never made by a program: a
    volume that is not mounted would be taken for an empty folder, and its keys made again.
    """

    def __init__(self, path: Path | str, keyring: Mapping[str, str]) -> None:
        self.path = Path(path)
        self._wrapping = {name: _wrapping_key(text) for name, text in keyring.items()}
        self._digest_key = b""

    def __repr__(self) -> str:
        return f"<keys of subjects in {self.path}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Keys of subjects cannot be serialised.")

    def key_for(self, subject: Subject) -> str:
        name = self._name_of(subject, makes=True)
        return _as_text(self._unwrapped(name, self._read(name) or self._made(name)))

    def existing_key(self, subject: Subject) -> str | None:
        """As `key_for`; None if there is no key, and none is made."""
        name = self._name_of(subject)
        found = self._read(name) if name else None
        return _as_text(self._unwrapped(name, found)) if found else None

    def is_destroyed(self, subject: Subject) -> bool:
        name = self._name_of(subject)
        found = self._read(name) if name else None
        return found is not None and bool(found.destroyed_at)

    def destroy(self, subject: Subject) -> bool:
        """Destroys the key of an id, and keeps a note so that no new one is made; True if there was a key until now.

        Raises SubjectKeysUnavailable; then it may be repeated. Nothing is noted in a folder that never had a key.
        """
        name = self._name_of(subject)
        if not name:
            return False
        with self._changing("A key cannot be destroyed"):
            try:
                found = self._read(name)
            except _DamagedKeyFile:
                found = _KeyFile()  # such as after a destruction that was interrupted
            if found and found.destroyed_at:
                return False
            if found:
                _overwrite(self.path / name)
            note = {"v": 1, "destroyed_at": datetime.now(UTC).isoformat(timespec="seconds")}
            # The note takes the key's own name: a process that makes a key at this moment finds the name taken.
            self._written_beside(name, note).replace(self.path / name)
            for left in self.path.glob(f".{name}.*"):
                left.unlink(missing_ok=True)
            self._sync()
        return found is not None

    def allow_new_key(self, subject: Subject) -> bool:
        """Removes the note about a destroyed key, for a person who comes back; True if there was one.

        The next key is a new one: what the old key encrypted stays unreadable.
        """
        with self._changing("The note about a destroyed key cannot be removed"):
            if not self.is_destroyed(subject):
                return False
            (self.path / self._name_of(subject)).unlink()
            self._sync()
        return True

    def wrap_with(self, name: str) -> int:
        """Wraps all keys with another key of the keyring; returns how many had another one. The keys stay the same.

        Raises SubjectKeysUnavailable; keys before the one that failed are wrapped then, and it may be repeated.
        """
        if name not in self._wrapping:
            raise SubjectKeysUnavailable(f"The key {name!r} is not in the keyring here.")
        count = 0
        with self._changing("Keys of subjects cannot be wrapped with another key"):
            for file in (NAMES, *self._digests()):
                with suppress(_DamagedKeyFile):
                    found = self._read(file)
                    if found is None or found.destroyed_at or found.wrapped_with == name:
                        continue
                    content = self._wrapped(file, self._unwrapped(file, found), name)
                    self._written_beside(file, content).replace(self.path / file)
                    count += file != NAMES
            self._sync()
        return count

    def wrapped_with(self) -> Counter[str]:
        """Number of keys by the name of the key that wraps them; of destroyed ones under an empty name."""
        counts = Counter[str]()
        for file in self._digests():
            with suppress(_DamagedKeyFile):
                if found := self._read(file):
                    counts[found.wrapped_with] += 1
        return counts

    def problems(self) -> list[str]:
        """Problems of the folder, as sentences for an operator; empty if agents and console can use it."""
        if not self.path.is_dir():
            return [f"The folder of subjects' keys, {self.path}, does not exist. Mount or create it, with mode 0700."]
        found = []
        try:
            mode = self.path.stat().st_mode
            if mode & 0o077:
                found.append(
                    f"The folder of subjects' keys, {self.path}, is open to other users. Set its mode to 0700."
                )
            if not self._wrapping:
                found.append("The keyring has no usable key, so keys of subjects cannot be opened.")
            elif not self._has_digest_key() and self._digests():
                found.append(f"The file {NAMES!r} is missing in {self.path}, so no key can be found.")
        except SubjectKeysUnavailable as problem:
            found.append(str(problem))
        except OSError as problem:
            found.append(str(self._unavailable("The folder of subjects' keys cannot be read", problem)))
        return found

    # --- files --------------------------------------------------------------------------------------------------------

    def _name_of(self, subject: Subject, *, makes: bool = False) -> str:
        """Name of the file of an id; empty if the folder never had a key, unless `makes`."""
        if not 0 < len(subject.key) <= LONGEST_ID or "\0" in subject.key:
            raise ValueError(f"The id of a subject has 1 to {LONGEST_ID} characters.")
        if not self._has_digest_key():
            if self._digests() and not self._has_digest_key():
                raise SubjectKeysUnavailable(f"The file {NAMES!r} is missing in {self.path}, so no key can be found.")
            if not makes:
                return ""
            self._digest_key = self._unwrapped(NAMES, self._made(NAMES))
        told = f"{subject.kind}\0{subject.key}".encode("utf-8", "surrogatepass")
        return hmac.new(self._digest_key, told, hashlib.sha256).hexdigest()

    def _has_digest_key(self) -> bool:
        if not self._digest_key and (found := self._read(NAMES)):
            self._digest_key = self._unwrapped(NAMES, found)
        return bool(self._digest_key)

    def _read(self, name: str) -> _KeyFile | None:
        try:
            if not self.path.is_dir():
                raise SubjectKeysUnavailable(f"The folder of subjects' keys, {self.path}, does not exist.")
            content: Any = json.loads((self.path / name).read_bytes())
            return _KeyFile(
                content.get("wrapped_with", ""),
                base64.b64decode(content.get("key", "")),
                content.get("destroyed_at", ""),
            )
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise self._unavailable("A key of a subject cannot be read", problem) from None
        except (ValueError, AttributeError, TypeError):
            raise _DamagedKeyFile(f"A file in {self.path} is damaged, and the key in it is lost.") from None

    def _made(self, name: str) -> _KeyFile:
        """A new key, or that of the process that was faster: a link, other than a renamed file, replaces none."""
        if not self._wrapping:
            raise SubjectKeysUnavailable("The keyring has no usable key to wrap keys of subjects with.")
        content = self._wrapped(name, secrets.token_bytes(KEY_BYTES), next(iter(self._wrapping)))
        try:
            fresh = self._written_beside(name, content)
            try:
                (self.path / name).hardlink_to(fresh)
            except (FileExistsError, FileNotFoundError):
                pass  # another process made it, or destroyed it
            finally:
                fresh.unlink(missing_ok=True)
            self._sync()
        except OSError as problem:
            raise self._unavailable("No key of a subject can be made", problem) from None
        found = self._read(name)
        if found is None:
            raise SubjectKeysUnavailable(f"A key of a subject was removed from {self.path} while it was made.")
        return found

    def _wrapped(self, name: str, key: bytes, wrapped_with: str) -> Mapping[str, Any]:
        nonce = secrets.token_bytes(NONCE_BYTES)
        # Bound to the file's name, so that nobody gives a subject the key of another one.
        sealed = AESGCM(self._wrapping[wrapped_with]).encrypt(nonce, key, name.encode())
        return {"v": 1, "wrapped_with": wrapped_with, "key": base64.b64encode(nonce + sealed).decode()}

    def _unwrapped(self, name: str, found: _KeyFile) -> bytes:
        if found.destroyed_at:
            raise SubjectKeyDestroyed
        wrapping = self._wrapping.get(found.wrapped_with)
        if wrapping is None:
            raise SubjectKeysUnavailable(
                f"Keys of subjects in {self.path} are wrapped with the key {found.wrapped_with!r}, which is not in the"
                " keyring here."
            )
        try:
            return AESGCM(wrapping).decrypt(found.wrapped[:NONCE_BYTES], found.wrapped[NONCE_BYTES:], name.encode())
        except (InvalidTag, ValueError):
            raise SubjectKeysUnavailable(
                f"A key of a subject in {self.path} cannot be unwrapped: the key {found.wrapped_with!r} of the keyring"
                " is another one than where it was made, or the file was changed."
            ) from None

    def _written_beside(self, name: str, content: Mapping[str, Any]) -> Path:
        """A complete file under another name, which nobody reads."""
        path = self.path / f".{name}.{secrets.token_hex(8)}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(json.dumps(content).encode())
            file.flush()
            os.fsync(file.fileno())
        return path

    @contextmanager
    def _changing(self, what: str) -> Iterator[None]:
        """Nobody else changes a file meanwhile; keys are still made and read. Explains errors of the file system."""
        import fcntl  # not on Windows, where agents may run

        try:
            if not self.path.is_dir():
                raise SubjectKeysUnavailable(f"The folder of subjects' keys, {self.path}, does not exist.")
            with os.fdopen(os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as problem:
            raise self._unavailable(what, problem) from None

    def _digests(self) -> list[str]:
        """Names of the files of all ids."""
        try:
            return sorted(file.name for file in self.path.iterdir() if _DIGEST.fullmatch(file.name))
        except OSError as problem:
            raise self._unavailable("Keys of subjects cannot be counted", problem) from None

    def _sync(self) -> None:
        """Makes names of files durable."""
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _unavailable(self, what: str, problem: OSError) -> SubjectKeysUnavailable:
        # The message of the error itself contains the name of a file.
        return SubjectKeysUnavailable(f"{what} in {self.path}: {problem.strerror or type(problem).__name__}.")


def _wrapping_key(text: str) -> bytes:
    """Raises UnusableKey."""
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=DERIVED_FOR).derive(master_key(text))


def _as_text(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode()


def _overwrite(file: Path) -> None:
    """Also what is left of the key under the temporary name of a process that was killed: it is the same file."""
    with file.open("r+b", buffering=0) as opened:
        opened.write(bytes(os.fstat(opened.fileno()).st_size))
        os.fsync(opened.fileno())
