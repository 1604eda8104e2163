"""Signed checkpoints, as text in the note format of C2SP (tlog-checkpoint, signed-note). Pure.

A note is self-contained: it includes the public key that signed it, so that it can still be verified after ten years.
Trust in that key is a separate question: a reader pins one, and its successor is signed in by its predecessor, in a
note with both signatures.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ED25519 = b"\x01"
"""The signature type of the note format."""

NAME = re.compile(r"[^\s+]+")
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


class BadNote(Exception):
    """A text is not a checkpoint, or is not signed by an expected key."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key as the note format writes it: `name+hash+base64`."""

    name: str
    key: bytes

    @property
    def short_hash(self) -> bytes:
        return sha256(self.name.encode() + b"\n" + ED25519 + self.key).digest()[:4]

    @property
    def id(self) -> str:
        """Sixty-four characters, the same for every name of the key."""
        return sha256(self.key).hexdigest()

    def __str__(self) -> str:
        return f"{self.name}+{self.short_hash.hex()}+{_base64(ED25519 + self.key)}"

    @classmethod
    def parse(cls, text: str) -> PublicKey:
        """Raises BadNote."""
        name, _, rest = text.partition("+")
        short_hash, _, encoded = rest.partition("+")
        data = _bytes(encoded)
        found = cls(name, data[1:])
        if len(data) != 33 or data[:1] != ED25519 or found.short_hash.hex() != short_hash:
            raise BadNote(f"{text!r} is not a public key in the note format.")
        return found

    def has_signed(self, text: str, signature: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(self.key).verify(signature, text.encode())
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key with the name used in signatures, the origin of the log."""

    name: str
    seed: bytes = field(repr=False)

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.name, self._private().public_key().public_bytes_raw())

    def signature_line(self, text: str) -> str:
        return f"\N{EM DASH} {self.name} {_base64(self.public.short_hash + self.signature(text.encode()))}\n"

    def signature(self, data: bytes) -> bytes:
        """The Ed25519 signature. Data that is no checkpoint begins with a context that no checkpoint has."""
        return self._private().sign(data)

    def _private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The content of a note: this log had this root at this size."""

    origin: str
    size: int
    root: bytes
    at: datetime
    key: PublicKey
    epoch: int = 1
    """Number of the epoch: 1, plus the restores after which the log continued from an older state."""
    replaced: tuple[int, bytes] | None = None
    """In the first note of such an epoch: the largest anchored size, with its root."""

    @property
    def text(self) -> str:
        """The signed text."""
        lines = [
            self.origin,
            str(self.size),
            _base64(self.root),
            f"at {self.at.astimezone(UTC).strftime(TIME)}",
            f"epoch {self.epoch}",
            f"key {self.key}",
        ]
        if self.replaced:
            size, root = self.replaced
            lines.append(f"replaces {size} {_base64(root)}")
        return "\n".join(lines) + "\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Raises BadNote. Lines unknown to this version are ignored, and stay signed."""
        origin, size, root, *lines = text.removesuffix("\n").split("\n") if text.count("\n") >= 3 else [""] * 3
        if not NAME.fullmatch(origin) or not re.fullmatch("0|[1-9][0-9]{0,18}", size):
            raise BadNote("The text is not a checkpoint: it does not begin with an origin and a size.")
        values = dict(line.partition(" ")[::2] for line in lines)
        try:
            replaced_size, _, replaced_root = values.get("replaces", "").partition(" ")
            return cls(
                origin=origin,
                size=int(size),
                root=_hash(root),
                at=datetime.strptime(values["at"], TIME).replace(tzinfo=UTC),
                key=PublicKey.parse(values["key"]),
                epoch=int(values["epoch"]),
                replaced=(int(replaced_size), _hash(replaced_root)) if replaced_size else None,
            )
        except (KeyError, ValueError) as problem:
            raise BadNote("The text is not a checkpoint: it has no time, epoch or key.") from problem


@dataclass(frozen=True, slots=True)
class Note:
    """A text with its signatures, not yet verified."""

    text: str
    signatures: tuple[tuple[str, bytes, bytes], ...]
    """Name, short hash of the key, signature."""

    @classmethod
    def parse(cls, note: str) -> Note:
        """Raises BadNote."""
        text, gap, tail = note.rpartition("\n\n")
        if not gap or not tail.endswith("\n"):
            raise BadNote("The note has no signatures.")
        signatures = []
        for line in tail.removesuffix("\n").split("\n"):
            dash, _, rest = line.partition(" ")
            name, _, encoded = rest.partition(" ")
            data = _bytes(encoded)
            if dash != "\N{EM DASH}" or not NAME.fullmatch(name) or len(data) < 5:
                raise BadNote("A signature of the note is not in the note format.")
            signatures.append((name, data[:4], data[4:]))
        return cls(text + "\n", tuple(signatures))

    def is_signed_by(self, key: PublicKey) -> bool:
        return any(
            name == key.name and short_hash == key.short_hash and key.has_signed(self.text, signature)
            for name, short_hash, signature in self.signatures
        )


def sign(checkpoint: Checkpoint, *signers: SigningKey) -> str:
    """The signed note; the first signer is the key named in the checkpoint, the second the previous key."""
    checkpoint = replace(checkpoint, key=signers[0].public)
    return checkpoint.text + "\n" + "".join(signer.signature_line(checkpoint.text) for signer in signers)


def verified(note: str, trusted: Iterable[PublicKey] = ()) -> Checkpoint:
    """The checkpoint of a note, after the signature of its key was checked. Raises BadNote.

    With `trusted` keys, one of them must be that key or have signed too.
    """
    parsed = Note.parse(note)
    checkpoint = Checkpoint.parse(parsed.text)
    if not parsed.is_signed_by(checkpoint.key):
        raise BadNote(f"The checkpoint of size {checkpoint.size} is not signed by the key that it names.")
    wanted: Sequence[PublicKey] = list(trusted)
    if wanted and not any(key.key == checkpoint.key.key or parsed.is_signed_by(key) for key in wanted):
        raise BadNote(f"The checkpoint of size {checkpoint.size} is not signed by a trusted key.")
    return checkpoint


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    # The last character may have unused bits; each note has exactly one text.
    if not data or _base64(data) != text:
        raise BadNote(f"{text[:80]!r} is not base64.")
    return data


def _hash(text: str) -> bytes:
    data = _bytes(text)
    if len(data) != 32:
        raise BadNote(f"{text[:80]!r} is not a SHA-256 hash in base64.")
    return data
