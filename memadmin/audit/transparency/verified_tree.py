"""The tree as one process has verified it: the only tree that it signs.

The owner of the database can change leaves, nodes and checkpoints, and the signature of the worker must not confirm
that. So a process hashes all leaves in its first turn and compares the roots with the newest checkpoint, and with the
newest one of an anchor on this machine. From then on it keeps the tree in memory and only appends to it. Hashing all
leaves again for each checkpoint would cost seconds for a million events and find no more: leaves that are changed later
do not reach the tree in memory, and before each signature its root is compared with the one that the tables yield.

Leaves beyond the newest checkpoint have no signature yet, and the worker's role can insert rows. Those that another
process wrote are compared with their events before this one signs them.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from memadmin.audit.models import AuditCheckpoint, AuditVerdict
from memadmin.audit.transparency import anchors, canonical, checkpoints, tree_store
from memadmin.audit.transparency.canonical import EventText
from memadmin.audit.transparency.notes import BadNote, Checkpoint
from memadmin.audit.transparency.tree import Frontier

MOST_LEAVES = 10_000
"""Leaves that are read at once: 320 kB."""

MOST_EVENTS = 1000
"""Leaves that are compared with their events at once."""

LEAVES_WITH_EVENTS = f"""
SELECT leaf.index, leaf.hash, {canonical.COLUMNS}
FROM audit_leaf AS leaf JOIN audit_event AS event ON event.number = leaf.event_number
WHERE leaf.index >= %s AND leaf.index < %s
ORDER BY leaf.index
"""

STOPPED = "stopped"
"""Verdict of a sequencer that signs nothing more."""

REMEDY = "Nothing is signed until this is resolved. Run verify_audit, and restore the log if it was changed."


class TreeRewritten(Exception):
    """The stored log contradicts a signed root. Events wait, and nothing is signed; an operator has to act."""


@dataclass(frozen=True, slots=True)
class VerifiedTree:
    """A tree whose leaves yield the root of a checkpoint."""

    tree: Frontier
    last_leaf: bytes
    checkpoint: Checkpoint | None
    """The newest when the tree was verified."""


def newest_of_ours() -> Checkpoint | None:
    """The newest checkpoint, signed by a key of this installation, and its row as it was signed. One query.

    A process without a signing key knows no keys; it signs nothing, and checks no signature. Raises TreeRewritten.
    """
    row = AuditCheckpoint.objects.order_by("-size").first()
    if row is None:
        return None
    try:
        newest = checkpoints.signed_by_us(row.note)
    except BadNote as problem:
        raise TreeRewritten(
            f"{problem} It is the newest checkpoint of the audit log. If the previous signing key was lost, list its"
            f" public key in MEMADMIN_TRUSTED_KEYS. {REMEDY}"
        ) from problem
    if (newest.size, newest.root) != (row.size, bytes(row.root)):
        raise TreeRewritten(
            f"The newest checkpoint of the audit log is stored with size {row.size}, and was signed for size"
            f" {newest.size} or another root. {REMEDY}"
        )
    return newest


def bring_up_to_date(known: VerifiedTree | None, before: Checkpoint | None) -> VerifiedTree:
    """The verified tree with all stored leaves. One query, one more for each 10,000 leaves that are new to it, and one
    for each 1,000 of them that are not signed.

    `before` is the newest checkpoint, its signature already verified. Without `known`, and after a restore that began
    an epoch, all leaves are read. Raises TreeRewritten, and `tree_store.TreeDamaged` if leaves are missing.
    """
    size, last_leaf = tree_store.last_leaf()
    if known and known.checkpoint and before and before.epoch > known.checkpoint.epoch:
        known = None
    if known and (known.tree.size, known.last_leaf, known.checkpoint) == (size, last_leaf, before):
        return VerifiedTree(known.tree.copy(), last_leaf, before)
    expected = _roots_to_find(before) if known is None else _roots_to_continue(known, before, size, last_leaf)
    tree = known.tree.copy() if known else Frontier()
    if any(wanted > size for wanted in expected):
        raise TreeRewritten(f"The audit log has {size} leaves, and a checkpoint of {max(expected)}. {REMEDY}")
    while tree.size < size:
        for leaf in tree_store.leaves(tree.size, min(tree.size + MOST_LEAVES, size)):
            tree.append(leaf)
            wanted = expected.get(tree.size)
            if wanted is not None and wanted != tree.root():
                raise TreeRewritten(
                    f"The leaves of the audit log do not yield the signed root of size {tree.size}. {REMEDY}"
                )
    _compare_with_events(max(known.tree.size if known else 0, before.size if before else 0), size)
    return VerifiedTree(tree, last_leaf, before)


def check_stored(tree: Frontier) -> None:
    """Raises TreeRewritten unless leaves and nodes in the tables yield the same root. One query."""
    if tree_store.edge().root() != tree.root():
        raise TreeRewritten(
            f"The stored hashes of the audit log's first {tree.size} events have changed since they were verified."
            f" {REMEDY}"
        )


def note_stop(problem: TreeRewritten) -> None:
    """Stores that nothing is signed, and why, for the log page and `check_deploy`; once until it is signed again."""
    newest = checkpoints.latest()
    if not why_stopped(newest):
        AuditVerdict.objects.create(
            verdict=STOPPED,
            size=newest.size if newest else 0,
            findings=[{"kind": "signing_stopped", "event": "", "detail": str(problem)}],
        )


def why_stopped(newest: Checkpoint | None) -> str:
    """The sentence of the last stop; empty if a checkpoint is newer. One query."""
    stop = AuditVerdict.objects.filter(verdict=STOPPED).order_by("-at", "-pk").first()
    if stop is None or (newest and stop.at < newest.at <= checkpoints.database_now()):
        return ""
    return str(stop.findings[0]["detail"])


def _compare_with_events(start: int, stop: int) -> None:
    """Raises TreeRewritten unless each leaf from `start` to before `stop` is the hash of its event."""
    for first in range(start, stop, MOST_EVENTS):
        last = min(first + MOST_EVENTS, stop)
        with connection.cursor() as cursor:
            cursor.execute(LEAVES_WITH_EVENTS, [first, last])
            rows = cursor.fetchall()
        found = (index for index, hash_, *event in rows if tree_store.leaf_of(EventText._make(event)) == bytes(hash_))
        for wanted in range(first, last):
            if next(found, None) != wanted:
                raise TreeRewritten(
                    f"The leaf of the audit log at {wanted} is not signed yet, and is not the hash of its event."
                    f" {REMEDY}"
                )


def _roots_to_find(before: Checkpoint | None) -> dict[int, bytes]:
    """Signed roots by size: of the newest checkpoint, and of the newest in anchors on this machine."""
    if before is None:
        # What anchors contain in this case is newer than the database, and stops the sequencer before.
        return {}
    roots = {before.size: before.root}
    for place, anchored in anchors.newest_local(before.origin, checkpoints.trusted_keys(before)):
        # After a restore, checkpoints of lost events are in the anchors, too.
        if (anchored.epoch, anchored.size) > (before.epoch, before.size) or anchored.epoch < before.epoch:
            continue
        if roots.setdefault(anchored.size, anchored.root) != anchored.root:
            raise TreeRewritten(f"{place.name} has another root for size {anchored.size}. {REMEDY}")
    return roots


def _roots_to_continue(known: VerifiedTree, before: Checkpoint | None, size: int, last_leaf: bytes) -> dict[int, bytes]:
    """The signed root by its size if it is new to this process; checks that the log goes on where it was."""
    was = known.tree.size
    if size < was or (size == was and last_leaf != known.last_leaf):
        raise TreeRewritten(
            f"The audit log had {was} leaves, and some have been removed or changed. {REMEDY} If you restored the"
            " database and the log has no anchor, restart the workers."
        )
    if before == known.checkpoint:
        return {}
    if before is None or before.size < was:
        raise TreeRewritten(
            f"A checkpoint of the audit log was removed or replaced below size {was}. {REMEDY} If you restored the"
            " database and the log has no anchor, restart the workers."
        )
    if before.size == was and before.root != known.tree.root():
        raise TreeRewritten(f"The leaves of the audit log do not yield the signed root of size {was}. {REMEDY}")
    return {before.size: before.root}
