"""Encrypted files: whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from memadmin.erasure.access_copy.sealed_files import (
    CHUNK_BYTES,
    HEAD_BYTES,
    TAG_BYTES,
    FileDamaged,
    SealedWriter,
    unsealed,
)

KEY, OTHER_KEY = bytes(32), bytes([1]) * 32
SEALED_CHUNK = CHUNK_BYTES + TAG_BYTES


def write(path: Path, content: bytes, key: bytes = KEY) -> None:
    with path.open("wb") as file:
        writer = SealedWriter(file, key)
        for start in range(0, len(content), 100_000):
            writer.write(content[start : start + 100_000])
        writer.close()


def read(path: Path, key: bytes = KEY) -> bytes:
    return b"".join(unsealed(path, key))


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 3_500_000])
def test_what_was_written_is_read(tmp_path: Path, size: int) -> None:
    content = (b"0123456789" * (size // 10 + 1))[:size]
    write(tmp_path / "file", content)
    assert read(tmp_path / "file") == content


def test_two_files_of_one_key_share_no_byte_of_their_chunks(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, b"same" * 1000)
    first, second = ((tmp_path / name).read_bytes()[HEAD_BYTES:] for name in ("a", "b"))
    assert first != second


def changed_byte(sealed: bytes) -> bytes:
    return sealed[:-1] + bytes([sealed[-1] ^ 1])


def cut_at_a_chunk(sealed: bytes) -> bytes:
    return sealed[: HEAD_BYTES + SEALED_CHUNK]


def chunks_exchanged(sealed: bytes) -> bytes:
    first, second = HEAD_BYTES + SEALED_CHUNK, HEAD_BYTES + 2 * SEALED_CHUNK
    return sealed[:HEAD_BYTES] + sealed[first:second] + sealed[HEAD_BYTES:first] + sealed[second:]


def last_chunk_doubled(sealed: bytes) -> bytes:
    return sealed + sealed[HEAD_BYTES + 2 * SEALED_CHUNK :]


def without_salt(sealed: bytes) -> bytes:
    return sealed[: HEAD_BYTES - 1]


def of_another_salt(sealed: bytes) -> bytes:
    return sealed[: HEAD_BYTES - 1] + bytes([sealed[HEAD_BYTES - 1] ^ 1]) + sealed[HEAD_BYTES:]


@pytest.mark.parametrize(
    "damage",
    [changed_byte, cut_at_a_chunk, chunks_exchanged, last_chunk_doubled, without_salt, of_another_salt],
)
def test_damage_is_found(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "file"
    write(path, bytes(2 * CHUNK_BYTES + 5))
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(FileDamaged):
        read(path)


def test_another_key_opens_nothing(tmp_path: Path) -> None:
    write(tmp_path / "file", b"text")
    with pytest.raises(FileDamaged):
        read(tmp_path / "file", OTHER_KEY)


def test_a_file_that_was_not_closed_cannot_be_read(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        writer = SealedWriter(file, KEY)
        writer.write(bytes(2 * CHUNK_BYTES))
        writer.give_up()
        writer.write(b"ignored")
    with pytest.raises(FileDamaged):
        read(tmp_path / "file")
