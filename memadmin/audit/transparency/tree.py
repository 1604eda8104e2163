"""The Merkle tree of RFC 9162, section 2.1: roots, inclusion and consistency proofs. Pure: hashes in, hashes out.

A node `(level, index)` is the hash of the complete subtree over leaves `index * 2**level` up to the next one's first.
Leaves are level 0. Only every eighth level is stored; levels between are computed from at most 128 hashes of the
stored level below, so a proof reads a few hundred short rows however large the tree is, and one row is written per 256
leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from hashlib import sha256

EMPTY_ROOT = sha256(b"").digest()
STORED_LEVELS = 8
"""Levels 8, 16, 24 … are stored besides the leaves."""


@dataclass(frozen=True, slots=True)
class Node:
    """A complete subtree with its hash."""

    level: int
    index: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring nodes of one stored level, from `start` to before `stop`."""

    level: int
    start: int
    stop: int


Read = Callable[[Sequence[Span]], Sequence[Sequence[bytes]]]
"""Returns the hashes of each span in order. Called once for each root or proof."""

Range = tuple[int, int]
"""Leaves from the first to before the second, a part of the RFC's recursion."""


def leaf_hash(data: bytes) -> bytes:
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


@dataclass(slots=True)
class Frontier:
    """The right edge of a growing tree: one hash for each set bit of its size, enough to compute the root."""

    size: int = 0
    _edge: list[tuple[int, bytes]] = field(default_factory=list)
    """Complete subtrees from left to right, each as level and hash."""

    @classmethod
    def of(cls, size: int, read: Read) -> Frontier:
        """The edge of a stored tree. One read."""
        pieces = complete_parts((0, size))
        hashes = _hashes(pieces, read)
        return cls(size, [(level, hashes[level, index]) for level, index in pieces])

    def copy(self) -> Frontier:
        return Frontier(self.size, [*self._edge])

    def append(self, leaf: bytes) -> list[Node]:
        """Appends one leaf hash; returns the completed nodes to store, lowest first."""
        level, index, hash_, completed = 0, self.size, leaf, []
        while self._edge and self._edge[-1][0] == level:
            hash_ = node_hash(self._edge.pop()[1], hash_)
            level, index = level + 1, index >> 1
            if level % STORED_LEVELS == 0:
                completed.append(Node(level, index, hash_))
        self._edge.append((level, hash_))
        self.size += 1
        return completed

    def root(self) -> bytes:
        return _joined([hash_ for _, hash_ in self._edge])


def root(size: int, read: Read) -> bytes:
    return _range_hashes([(0, size)], read)[0] if size else EMPTY_ROOT


def inclusion_proof(index: int, size: int, read: Read) -> list[bytes]:
    """Sibling hashes on the path from leaf `index` to the root of the first `size` leaves, from the leaf upwards."""
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} is not among the first {size}")
    start, stop, beside = 0, size, []
    while stop - start > 1:
        middle = start + _left_size(stop - start)
        if index < middle:
            beside.append((middle, stop))
            stop = middle
        else:
            beside.append((start, middle))
            start = middle
    return _range_hashes(beside[::-1], read)


def consistency_proof(old: int, size: int, read: Read) -> list[bytes]:
    """Hashes that prove that the tree of `size` leaves begins with the tree of `old` leaves."""
    if not 0 < old <= size:
        raise ValueError(f"no consistency proof exists for {old} leaves of {size}")
    start, stop, parts = 0, size, []
    while old != stop:
        middle = start + _left_size(stop - start)
        if old <= middle:
            parts.append((middle, stop))
            stop = middle
        else:
            parts.append((start, middle))
            start = middle
    if start:  # else the old tree is a subtree of the new one, and the verifier has its root
        parts.append((start, stop))
    return _range_hashes(parts[::-1], read)


def includes(root: bytes, size: int, index: int, leaf: bytes, proof: Sequence[bytes]) -> bool:
    """Whether the proof leads from this leaf hash at this index to this root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    position, last, hash_ = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if position & 1 or position == last:
            hash_ = node_hash(sibling, hash_)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            hash_ = node_hash(hash_, sibling)
        position, last = position >> 1, last >> 1
    return last == 0 and hash_ == root


def complete_parts(leaves: Range) -> list[tuple[int, int]]:
    """The complete subtrees of a range of the RFC's recursion, as level and index, from left to right."""
    start, stop = leaves
    parts = []
    while start < stop:
        level = (stop - start).bit_length() - 1
        parts.append((level, start >> level))
        start += 1 << level
    return parts


def _left_size(size: int) -> int:
    """The largest power of two below `size`: where the RFC splits a tree."""
    return 1 << ((size - 1).bit_length() - 1)


def _joined(parts: Sequence[bytes]) -> bytes:
    return reduce(lambda right, left: node_hash(left, right), reversed(parts)) if parts else EMPTY_ROOT


def _range_hashes(ranges: Sequence[Range], read: Read) -> list[bytes]:
    parts = [complete_parts(each) for each in ranges]
    hashes = _hashes([part for each in parts for part in each], read)
    return [_joined([hashes[part] for part in each]) for each in parts]


def _hashes(parts: Sequence[tuple[int, int]], read: Read) -> dict[tuple[int, int], bytes]:
    if not parts:
        return {}
    spans = [_stored_below(level, index) for level, index in parts]
    return {part: _folded(hashes) for part, hashes in zip(parts, read(spans), strict=True)}


def _stored_below(level: int, index: int) -> Span:
    rise = level % STORED_LEVELS
    return Span(level - rise, index << rise, (index + 1) << rise)


def _folded(hashes: Sequence[bytes]) -> bytes:
    while len(hashes) > 1:
        hashes = list(_pairs(hashes))
    return hashes[0]


def _pairs(hashes: Sequence[bytes]) -> Iterator[bytes]:
    for left, right in zip(hashes[::2], hashes[1::2], strict=True):
        yield node_hash(left, right)
