"""Verification of consistency proofs, as a third party does it."""

from __future__ import annotations

from collections.abc import Sequence

from memadmin.audit.transparency.tree import node_hash


def is_consistent(old_root: bytes, old: int, root: bytes, size: int, proof: Sequence[bytes]) -> bool:
    """Whether the proof shows the old tree as the beginning of the new one (RFC 9162, 2.1.4.2)."""
    if not 0 < old <= size:
        return False
    if old == size:
        return old_root == root and not proof
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if not path:
        return False
    position, last = old - 1, size - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    old_hash = hash_ = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if position & 1 or position == last:
            old_hash, hash_ = node_hash(sibling, old_hash), node_hash(sibling, hash_)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            hash_ = node_hash(hash_, sibling)
        position, last = position >> 1, last >> 1
    return last == 0 and old_hash == old_root and hash_ == root
