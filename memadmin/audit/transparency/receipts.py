"""Signed receipts of requests of subjects: what was done, as text that anyone can verify without memadmin.

A receipt is one object of canonical JSON (RFC 8785): `format`, `id`, `payload`, the `event` of the audit log that names
the id, with its proof up to a checkpoint (`index`, `path`, `checkpoint`), the public `key` and its `signature` of all
other members. `verifier.check_payload` defines the payload. An event contains no free text, so it names the payload by
an id that is derived from it: record it with `shown=[id_of(payload)]`, and issue the receipt when the log is signed.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from itertools import chain
from typing import Any
from uuid import UUID

import rfc8785

from memadmin.audit.log import ids
from memadmin.audit.models import AuditCheckpoint, AuditEvent
from memadmin.audit.transparency import checkpoints, keys, tree, tree_store, verifier
from memadmin.audit.transparency.canonical import body_of
from memadmin.audit.transparency.keys import NoSigningKey
from memadmin.audit.transparency.proofs import NotProvableYet, proof_of
from memadmin.audit.transparency.verification import pinned_keys, read_anchors
from memadmin.audit.transparency.verifier import CannotRead, Key, ReceiptReport

FORMAT = "memadmin-receipt/1"
CONTEXT = FORMAT.encode() + b"\x00"
"""Prefix of the signed bytes: the key also signs checkpoints. Canonical JSON contains no line break, and the text of a
checkpoint has several, so that no signature is valid for both.
"""


class InvalidReceipt(Exception):
    """A payload with a value that the format does not allow, or an event that does not prove it. The message is a
    sentence, and contains no value of the payload.
    """


class NotYetSequenced(Exception):
    """No checkpoint covers the event yet: try again in a minute. The message is a sentence."""

    def __init__(self, problem: NotProvableYet) -> None:
        super().__init__(f"The receipt cannot be issued yet. {problem}")


def id_of(payload: Mapping[str, Any]) -> UUID:
    """The id by which an event names this payload. Raises InvalidReceipt for a payload that is not in the format."""
    try:
        verifier.check_payload("payload", dict(payload))
    except verifier.InvalidReceiptValue as problem:
        raise InvalidReceipt(str(problem)) from problem
    # 122 bits of SHA-256 are enough: the log fixes the id, so that a forger needs a second payload with the same id.
    return ids.ref(FORMAT, rfc8785.dumps(dict(payload)).decode())


def issue(payload: Mapping[str, Any], *, event: UUID) -> str:
    """The signed receipt of a payload, for the event that names it.

    Issued again later, it contains an anchored checkpoint. About eight queries. Raises InvalidReceipt, NotYetSequenced,
    NoSigningKey, or `tree_store.TreeDamaged` if hashes are missing.
    """
    own_id = id_of(payload)
    newest = checkpoints.latest()
    key = keys.signing_key(newest.origin if newest else "memadmin")
    if key is None:
        raise NoSigningKey("A receipt")
    recorded = AuditEvent.objects.filter(id=event).first()
    if recorded is None:
        raise InvalidReceipt(f"The audit log has no event {event}.")
    try:
        # Of the current key: then a reader needs to trust one key only.
        proof = proof_of(recorded, key=key.public)
    except NotProvableYet as problem:
        raise NotYetSequenced(problem) from problem
    receipt: dict[str, Any] = {
        "format": FORMAT,
        "id": str(own_id),
        "payload": dict(payload),
        "event": body_of(recorded),
        "index": proof.index,
        "path": [hash_.hex() for hash_ in proof.path],
        "checkpoint": proof.note,
        "key": str(key.public),
    }
    signature = base64.b64encode(key.signature(CONTEXT + rfc8785.dumps(receipt))).decode()
    text = rfc8785.dumps(receipt | {"signature": signature}).decode()
    # A receipt that the verifier refuses is not handed out: the event may name another payload, or the log be changed.
    report = verifier.verify_receipt(text, pinned=[Key.parse(str(key.public))])
    if report.findings:
        raise InvalidReceipt(f"The receipt cannot be issued: {report.findings[0].detail}")
    return text


def verify(text: bytes) -> ReceiptReport:
    """The verifier's report on a receipt, by the keys and anchors of this installation, and whether its event is in the
    log of this database. Raises CannotRead, also if the log has no checkpoint.
    """
    newest = checkpoints.latest()
    if newest is None:
        raise CannotRead("The audit log has no checkpoint yet, so it confirms no receipt.")
    pinned = pinned_keys()
    # Keys of this installation are the same under every name, and its receipts belong to this log.
    known = [Key(newest.origin, key.data) for key in pinned] or [Key.parse(str(newest.key))]
    anchored = read_anchors()
    notes = [*anchored.notes, *chain.from_iterable(store.notes for store in anchored.stores)]
    # The first checkpoint of each key carries the signature of the previous key.
    handovers = AuditCheckpoint.objects.order_by("key_id", "size").distinct("key_id").values_list("note", flat=True)
    report = verifier.verify_receipt(text, pinned=known, anchors=notes, handovers=list(handovers))
    anchored.add_problems(report)
    if not pinned:
        report.remark(f"This process has no signing key and no trusted keys; the log itself names {newest.key}.")
    if report.receipt is not None and report.root:
        _compare_with_log(report, report.receipt)
    return report


def _compare_with_log(report: ReceiptReport, receipt: dict[str, Any]) -> None:
    """Compares the event and the checkpoint of a receipt with this database."""
    id_ = receipt["event"]["id"]
    event = AuditEvent.objects.filter(id=id_).first()
    # That a leaf of the log is the hash of this event follows from the proof in the receipt and the root below.
    if event is None or body_of(event) != receipt["event"]:
        report.add("bad_proof", "The event of the receipt is not in the log of this database.", id_)
    size = tree_store.size()
    if report.size > size:
        report.add(
            "restored_backup",
            f"The receipt is of a log with {report.size:,} events, and the log of this database has {size:,}.",
        )
        return
    try:
        root = tree.root(report.size, tree_store.read).hex()
    except tree_store.TreeDamaged as problem:
        report.add("damaged_node", str(problem))
        return
    if root != report.root:
        report.add("rewrite", f"The log of this database has another root for size {report.size:,}.")
