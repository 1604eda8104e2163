"""Verification of our own log and anchors by the stand-alone verifier, with stored results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from memadmin.audit.models import AuditAnchor, AuditCheckpoint, AuditVerdict
from memadmin.audit.transparency import anchors, keys, verifier
from memadmin.audit.transparency.anchors.base import NOWHERE, Anchor, AnchorConflict, AnchorFailed
from memadmin.audit.transparency.anchors.file import FileAnchor
from memadmin.audit.transparency.notes import BadNote, Checkpoint, Note
from memadmin.audit.transparency.verifier import AnchorStore, Key, Report

NOTES_FROM_AFAR = 50
"""Number of the newest notes fetched from an anchor on another machine."""


def verify(*, wait: Callable[[float], None] | None = None) -> Report:
    """The verifier's report on the current database, stored as the latest verdict.

    Reads the whole log: about 30 seconds for a million events, and up to ten more if older events have no index or no
    checkpoint.
    """
    anchored = read_anchors()
    options: dict[str, Any] = {"wait": wait} if wait else {}
    report = verifier.verify_database(
        _connect, anchors=anchored.notes, stores=anchored.stores, pinned=pinned_keys(), **options
    )
    anchored.add_problems(report)
    AuditVerdict.objects.create(
        verdict=report.verdict,
        size=report.size,
        root=bytes.fromhex(report.root) or None,
        findings=[finding.as_json() for finding in report.findings],
    )
    return report


@dataclass
class ConfiguredAnchors:
    """The notes of the anchors of this installation."""

    notes: list[str] = field(default_factory=list)
    """Notes that anchors which cannot be read back have accepted."""
    stores: list[AnchorStore] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add_problems(self, report: Report) -> None:
        for sentence in self.conflicts:
            report.add("rewrite", sentence)
        for sentence in self.failures:
            report.remark(sentence)


def read_anchors() -> ConfiguredAnchors:
    found = ConfiguredAnchors()
    for place in anchors.configured():
        try:
            if place.is_readable:
                found.stores.append(store_at(place))
            else:
                found.notes += sent_again(place)
        except AnchorConflict as problem:
            found.conflicts.append(str(problem))
        except AnchorFailed as problem:
            found.failures.append(str(problem))
    return found


def store_at(place: Anchor) -> AnchorStore:
    """The notes of an anchor that can be read, and the sizes recorded as stored there: of an anchor on another machine
    the newest. Raises AnchorFailed.
    """
    # Before the anchor: it may get more meanwhile.
    recorded = list(
        AuditAnchor.objects.filter(sink=place.name, outcome=anchors.ANCHORED)
        .order_by("-checkpoint_size")
        .values_list("checkpoint_size", flat=True)[: None if place.is_local else NOTES_FROM_AFAR + 1]
    )
    if isinstance(place, FileAnchor):
        # As an auditor reads it: with the lines that are no notes, which are stated.
        with place.lines() as lines:
            return AnchorStore(place.name, verifier.read_anchors(lines)[0], frozenset(recorded))
    if len(recorded) <= NOTES_FROM_AFAR:
        return AnchorStore(place.name, list(place.after(NOWHERE)), frozenset(recorded), is_lines=False)
    # The epoch of the oldest wanted note is unknown here; using the first epoch reads no more notes.
    *recorded, oldest = recorded
    return AnchorStore(place.name, list(place.after((1, oldest))), frozenset(recorded), is_lines=False)


def sent_again(place: Anchor) -> list[str]:
    """The newest note of a write-only anchor, which must accept it as the same.

    Raises AnchorFailed, or AnchorConflict if the anchor contradicts.
    """
    anchored = AuditAnchor.objects.filter(sink=place.name, outcome=anchors.ANCHORED).order_by("-checkpoint_size")
    newest = anchored.values_list("checkpoint_size", flat=True).first()
    row = AuditCheckpoint.objects.filter(size=newest).first() if newest is not None else None
    if row is None:
        return []
    try:
        checkpoint = Checkpoint.parse(Note.parse(row.note).text)
    except BadNote:  # the verifier reports it
        return []
    place.put(checkpoint, row.note)
    return [row.note]


def pinned_keys() -> list[Key]:
    """The keys that this process trusts, independent of the log: the signing key, its predecessor during a rotation,
    and those of the operator. Empty in a process without a signing key unless the operator lists some.

    The key that the log itself names is none of them: a rewritten log names another.
    """
    # A key is the same under every name; the log's own name may be forged.
    own = [keys.signing_key("memadmin"), keys.signing_key_before("memadmin")]
    return [*(Key.parse(str(key.public)) for key in own if key), *map(Key.parse, settings.TRUSTED_KEYS)]


def _connect() -> psycopg.Connection[Any]:
    """A new connection: Django's may be in a transaction, and the verifier changes its connection's settings."""
    params = connection.get_connection_params()
    params.pop("cursor_factory", None)
    params.pop("context", None)
    return psycopg.connect(**params)
