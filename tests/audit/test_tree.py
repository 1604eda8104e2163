"""The tree against the vectors of Certificate Transparency, and against the RFC's own definition, naively written."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memadmin.audit.transparency import tree
from memadmin.audit.transparency.tree import Frontier, Span, leaf_hash, node_hash
from tests.audit.consistency import is_consistent

REFERENCE_INPUTS = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
REFERENCE_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def naive_root(leaves: Sequence[bytes]) -> bytes:
    """MTH of RFC 9162, 2.1.1, over leaf hashes."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    cut = cut_of(len(leaves))
    return node_hash(naive_root(leaves[:cut]), naive_root(leaves[cut:]))


def naive_path(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """PATH of 2.1.3.1."""
    if len(leaves) == 1:
        return []
    cut = cut_of(len(leaves))
    if index < cut:
        return [*naive_path(index, leaves[:cut]), naive_root(leaves[cut:])]
    return [*naive_path(index - cut, leaves[cut:]), naive_root(leaves[:cut])]


def naive_subproof(old: int, leaves: Sequence[bytes], *, is_whole: bool = True) -> list[bytes]:
    """SUBPROOF of 2.1.4.1."""
    if old == len(leaves):
        return [] if is_whole else [naive_root(leaves)]
    cut = cut_of(len(leaves))
    if old <= cut:
        return [*naive_subproof(old, leaves[:cut], is_whole=is_whole), naive_root(leaves[cut:])]
    return [*naive_subproof(old - cut, leaves[cut:], is_whole=False), naive_root(leaves[:cut])]


def cut_of(size: int) -> int:
    cut = 1
    while cut * 2 < size:
        cut *= 2
    return cut


class StoredTree:
    """A tree as the tables keep it: leaves, and the nodes of each eighth level."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self.levels: dict[int, list[bytes]] = {0: list(leaves)}
        self.frontier = Frontier()
        for leaf in leaves:
            for node in self.frontier.append(leaf):
                level = self.levels.setdefault(node.level, [])
                assert node.index == len(level)
                level.append(node.hash)

    def read(self, spans: Sequence[Span]) -> Sequence[Sequence[bytes]]:
        found = [self.levels[span.level][span.start : span.stop] for span in spans]
        assert [len(hashes) for hashes in found] == [span.stop - span.start for span in spans]
        return found


def leaves(count: int) -> list[bytes]:
    return [leaf_hash(b"%d" % number) for number in range(count)]


LEAVES = leaves(70_000)
BIG = StoredTree(LEAVES)
"""Large enough for two stored levels above the leaves."""

# Around the edges of the stored levels, and anywhere.
sizes = st.one_of(st.integers(1, 600), st.sampled_from([65_535, 65_536, 65_537, 65_792, 70_000]))


@pytest.mark.parametrize(("count", "expected"), list(enumerate(REFERENCE_ROOTS, 1)))
def test_roots_of_the_reference_tree(count: int, expected: str) -> None:
    stored = StoredTree([leaf_hash(data) for data in REFERENCE_INPUTS[:count]])
    assert stored.frontier.root().hex() == expected
    assert tree.root(count, stored.read).hex() == expected


def test_root_of_nothing_is_the_hash_of_nothing() -> None:
    assert tree.root(0, BIG.read) == Frontier().root() == sha256(b"").digest()


@given(st.integers(0, 600))
def test_root_is_what_the_definition_says(size: int) -> None:
    assert tree.root(size, BIG.read) == naive_root(LEAVES[:size])


@given(st.integers(0, 600), st.integers(0, 600))
def test_tree_grows_from_where_it_was_stored(before: int, more: int) -> None:
    frontier = Frontier.of(before, BIG.read)
    completed = [node for leaf in LEAVES[before : before + more] for node in frontier.append(leaf)]
    assert frontier.root() == naive_root(LEAVES[: before + more])
    assert [node.index for node in completed] == list(range(before // 256, (before + more) // 256))


@given(st.data(), st.integers(1, 300))
def test_proofs_are_those_of_the_definition(data: st.DataObject, size: int) -> None:
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
    assert tree.inclusion_proof(index, size, BIG.read) == naive_path(index, LEAVES[:size])
    assert tree.consistency_proof(old, size, BIG.read) == naive_subproof(old, LEAVES[:size])


@given(st.data(), sizes)
def test_inclusion_proof_verifies_and_a_changed_one_does_not(data: st.DataObject, size: int) -> None:
    index = data.draw(st.integers(0, size - 1))
    proof, root, leaf = tree.inclusion_proof(index, size, BIG.read), tree.root(size, BIG.read), LEAVES[index]
    assert tree.includes(root, size, index, leaf, proof)
    assert not tree.includes(root, size, index, changed(data, leaf), proof)
    assert not tree.includes(changed(data, root), size, index, leaf, proof)
    assert not tree.includes(root, size, index, leaf, changed_list(data, proof))
    other = data.draw(st.integers(-2, size + 2).filter(lambda number: number != index))
    assert not tree.includes(root, size, other, leaf, proof)


@given(st.data(), sizes)
def test_consistency_proof_verifies_and_a_changed_one_does_not(data: st.DataObject, size: int) -> None:
    old = data.draw(st.integers(1, size))
    old_root, root = tree.root(old, BIG.read), tree.root(size, BIG.read)
    proof = tree.consistency_proof(old, size, BIG.read)
    assert is_consistent(old_root, old, root, size, proof)
    assert not is_consistent(changed(data, old_root), old, root, size, proof)
    assert not is_consistent(old_root, old, changed(data, root), size, proof)
    assert not is_consistent(old_root, old, root, size, changed_list(data, proof))
    assert not is_consistent(old_root, 0, root, size, proof)
    assert not is_consistent(root, size + 1, root, size, proof)


def changed(data: st.DataObject, hash_: bytes) -> bytes:
    bit = data.draw(st.integers(0, 255))
    return (int.from_bytes(hash_) ^ (1 << bit)).to_bytes(32)


def changed_list(data: st.DataObject, proof: list[bytes]) -> list[bytes]:
    """One hash changed, taken away, put in, or put twice."""
    place = data.draw(st.integers(0, len(proof)))
    if place == len(proof):
        return [*proof, data.draw(st.sampled_from([bytes(32), *proof]))]
    kind = data.draw(st.sampled_from(["change", "drop", "insert", "repeat"]))
    middle = {
        "change": [changed(data, proof[place])],
        "drop": [],
        "insert": [bytes(32), proof[place]],
        "repeat": [proof[place]] * 2,
    }
    return proof[:place] + middle[kind] + proof[place + 1 :]


@pytest.mark.parametrize(("index", "size"), [(0, 0), (-1, 5), (5, 5)])
def test_nothing_is_proved_of_a_leaf_that_is_not_there(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="is not among the first"):
        tree.inclusion_proof(index, size, BIG.read)


@pytest.mark.parametrize(("old", "size"), [(0, 5), (6, 5)])
def test_nothing_is_said_about_sizes_that_cannot_be_compared(old: int, size: int) -> None:
    with pytest.raises(ValueError, match="no consistency proof"):
        tree.consistency_proof(old, size, BIG.read)


def test_a_proof_reads_little_of_a_large_tree() -> None:
    asked: list[Span] = []

    def read(spans: Sequence[Span]) -> Sequence[Sequence[bytes]]:
        asked.extend(spans)
        return BIG.read(spans)

    tree.inclusion_proof(12_345, 70_000, read)
    assert sum(span.stop - span.start for span in asked) <= 4 * 256
    assert all(span.level % 8 == 0 for span in asked)


def test_a_node_cannot_be_shown_as_a_leaf() -> None:
    assert tells_a_node_from_a_leaf()


def test_without_the_prefixes_it_could(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken variant: leaves and nodes hashed alike."""
    monkeypatch.setattr(tree, "leaf_hash", lambda data: sha256(data).digest())
    monkeypatch.setattr(tree, "node_hash", lambda left, right: sha256(left + right).digest())
    assert not tells_a_node_from_a_leaf()


def tells_a_node_from_a_leaf() -> bool:
    """Whether two leaves can be told from one leaf that holds their hashes."""
    left, right = tree.leaf_hash(b"left"), tree.leaf_hash(b"right")
    frontier = Frontier()
    frontier.append(left)
    frontier.append(right)
    return not tree.includes(frontier.root(), 1, 0, tree.leaf_hash(left + right), [])
