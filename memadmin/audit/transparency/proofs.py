"""Proofs that one event is in the log, without the other events."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memadmin.audit.models import AuditAnchor, AuditCheckpoint, AuditDetail, AuditEvent, AuditLeaf
from memadmin.audit.transparency import anchors, tree, tree_store
from memadmin.audit.transparency.canonical import body_of, leaf_of
from memadmin.audit.transparency.notes import Checkpoint, Note, PublicKey

FORMAT = "memadmin-audit-event/1"


class NotProvableYet(Exception):
    """The event is too new for a proof. The message is a sentence."""


class NotSequenced(NotProvableYet):
    def __init__(self) -> None:
        super().__init__("The event has no index in the log yet; this takes a few seconds.")


class NotSigned(NotProvableYet):
    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__("No checkpoint covers the event yet; one is signed within a minute.")


@dataclass(frozen=True, slots=True)
class EventProof:
    """An event with its path to a signed root."""

    event: AuditEvent
    index: int
    leaf: bytes
    """Hash of the event in its current state."""
    path: Sequence[bytes]
    """From the leaf upwards."""
    checkpoint: Checkpoint
    note: str
    signed_at: datetime
    """When a checkpoint covered the event for the first time; `checkpoint` may be a later one that is anchored."""
    anchors: Sequence[AuditAnchor]
    """Anchors with this checkpoint; empty if there are none yet."""

    @property
    def holds(self) -> bool:
        """Whether the path leads to the root. False means that the event or the tree was changed."""
        return tree.includes(self.checkpoint.root, self.checkpoint.size, self.index, self.leaf, self.path)

    def as_json(self, *, with_details: bool = False) -> dict[str, Any]:
        """Input for the stand-alone verifier. Details may contain personal data and are left out unless requested."""
        found: dict[str, Any] = {
            "format": FORMAT,
            "event": body_of(self.event),
            "index": self.index,
            "path": [hash_.hex() for hash_ in self.path],
            "checkpoint": self.note,
            "anchors": [
                {"sink": anchor.sink, "at": anchor.at.isoformat(), "receipt": anchor.receipt} for anchor in self.anchors
            ],
        }
        if with_details and (detail := AuditDetail.objects.filter(event=self.event).first()):
            found["details"] = {"salt": bytes(detail.salt).hex(), "text": detail.details}
        return found

    @property
    def file_name(self) -> str:
        return f"event-{self.event.id}.json"

    @property
    def command(self) -> str:
        """The command for a shell that verifies the file with the downloaded verifier, both in the current folder."""
        return shlex.join(["python3", "verifier.py", self.file_name, "--key", str(self.checkpoint.key)])

    def as_file(self, *, with_details: bool = False) -> bytes:
        return json.dumps(self.as_json(with_details=with_details), indent=1, ensure_ascii=False).encode() + b"\n"


def proof_of(event: AuditEvent, *, key: PublicKey | None = None) -> EventProof:
    """A proof up to the first anchored checkpoint over the event, else up to the first checkpoint. Six short queries.

    With `key`, only checkpoints that name it count. Raises NotSequenced or NotSigned, and `tree_store.TreeDamaged` if
    hashes are missing.
    """
    index = AuditLeaf.objects.filter(event_number=event.number).values_list("index", flat=True).first()
    if index is None:
        raise NotSequenced
    covering = AuditCheckpoint.objects.filter(size__gt=index).order_by("size")
    if key:
        covering = covering.filter(key_id=key.id)
    first = covering.first()
    if first is None:
        raise NotSigned(index)
    known = AuditAnchor.objects.filter(outcome=anchors.ANCHORED)
    anchored = known.filter(checkpoint_size__gt=index).order_by("checkpoint_size").first()
    row = (covering.filter(size=anchored.checkpoint_size).first() if anchored else None) or first
    return EventProof(
        event=event,
        index=index,
        leaf=leaf_of(event),
        path=tree.inclusion_proof(index, row.size, tree_store.read),
        checkpoint=Checkpoint.parse(Note.parse(row.note).text),
        note=row.note,
        signed_at=first.at,
        anchors=list(known.filter(checkpoint_size=row.size).order_by("pk")),
    )


def consistency_of(old: AuditCheckpoint, new: AuditCheckpoint) -> dict[str, Any]:
    """Consistency proof between two checkpoints for the stand-alone verifier. One query."""
    return {
        "format": "memadmin-audit-consistency/1",
        "old": old.note,
        "new": new.note,
        "path": [hash_.hex() for hash_ in tree.consistency_proof(old.size, new.size, tree_store.read)],
    }
