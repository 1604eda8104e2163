"""Encrypted files of any size in bounded memory: AES-GCM in chunks.

A file begins with a marker and a random salt, from which and from the key of the copy its own key is derived: two files
never share one, however often an interrupted build begins again. The number of each chunk is its nonce; number and
`is last` are authenticated, so chunks cannot be changed, moved, left out or appended.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

MARKER = b"memadmin sealed file 1\n"
SALT_BYTES = 32
CHUNK_BYTES = 1024 * 1024
TAG_BYTES = 16
HEAD_BYTES = len(MARKER) + SALT_BYTES


class FileDamaged(Exception):
    """The file was changed or cut off, or the key is another one."""

    def __init__(self) -> None:
        super().__init__("The file is damaged, or was encrypted with another key.")


class SealedWriter:
    """Writer of an encrypted file. Without `close` the file cannot be read.

    `size` and `digest` are those of the plain content.
    """

    def __init__(self, file: IO[bytes], key: bytes) -> None:
        salt = os.urandom(SALT_BYTES)
        self._file, self._cipher = file, _cipher(key, salt)
        self.size, self.digest = 0, hashlib.sha256()
        self._buffer = bytearray()
        self._number = 0
        self._is_open = True
        file.write(MARKER + salt)

    def write(self, data: bytes) -> int:
        # A ZipFile that is given up writes its directory when it is collected.
        if self._is_open:
            self.size += len(data)
            self.digest.update(data)
            self._buffer += data
            while len(self._buffer) > CHUNK_BYTES:
                self._write_chunk(CHUNK_BYTES, is_last=False)
        return len(data)

    def flush(self) -> None:
        """Nothing: only whole chunks are written."""

    def close(self) -> None:
        self._write_chunk(len(self._buffer), is_last=True)
        self._is_open = False

    def give_up(self) -> None:
        """Ignores everything that is still written."""
        self._is_open = False
        self._buffer.clear()

    def _write_chunk(self, size: int, *, is_last: bool) -> None:
        sealed = self._cipher.encrypt(_nonce(self._number), bytes(self._buffer[:size]), _bound(self._number, is_last))
        del self._buffer[:size]
        self._number += 1
        self._file.write(sealed)


def unsealed(path: Path, key: bytes) -> Iterator[bytes]:
    """The plain content, a chunk at a time. Raises FileDamaged, perhaps after some chunks, and OSError."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        if len(head) != HEAD_BYTES or not head.startswith(MARKER):
            raise FileDamaged
        cipher = _cipher(key, head[len(MARKER) :])
        number = 0
        sealed = file.read(CHUNK_BYTES + TAG_BYTES)
        while True:
            following = file.read(CHUNK_BYTES + TAG_BYTES)
            try:
                yield cipher.decrypt(_nonce(number), sealed, _bound(number, not following))
            except (InvalidTag, ValueError) as problem:
                raise FileDamaged from problem
            if not following:
                return
            sealed, number = following, number + 1


def _cipher(key: bytes, salt: bytes) -> AESGCM:
    return AESGCM(HKDF(hashes.SHA256(), length=32, salt=salt, info=b"memadmin sealed file").derive(key))


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")


def _bound(number: int, is_last: bool) -> bytes:
    return number.to_bytes(8, "big") + bytes([is_last])
