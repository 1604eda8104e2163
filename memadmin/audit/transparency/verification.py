"""Verification of our own log and anchors by the stand-alone verifier, with stored results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from memadmin.audit.models import AuditAnchor, AuditCheckpoint, AuditVerdict
from memadmin.audit.transparency import anchors, verifier
from memadmin.audit.transparency.anchors.base import NOWHERE, Anchor, AnchorConflict, AnchorFailed
from memadmin.audit.transparency.notes import Checkpoint, Note
from memadmin.audit.transparency.verifier import Key, Report

NOTES_FROM_AFAR = 50
"""Number of the newest notes fetched from an anchor on another machine."""


def verify(*, wait: Callable[[float], None] | None = None) -> Report:
    """The verifier's report on the current database, stored as the latest verdict.

    Reads the whole log: about 30 seconds for a million events, and ten more if an event has no index.
    """
    problems: list[str] = []
    kept: list[str] = []
    notes: list[str] = []
    for place in anchors.configured():
        try:
            kept += notes_at(place)
        except AnchorConflict as problem:
            problems.append(str(problem))
        except AnchorFailed as problem:
            notes.append(str(problem))
    options: dict[str, Any] = {"wait": wait} if wait else {}
    report = verifier.verify_database(_connect, anchors=kept, pinned=_pinned(), **options)
    for sentence in problems:
        report.add("rewrite", sentence)
    report.notes += notes
    AuditVerdict.objects.create(
        verdict=report.verdict,
        size=report.size,
        root=bytes.fromhex(report.root) or None,
        findings=[finding.as_json() for finding in report.findings],
    )
    return report


def notes_at(place: Anchor) -> list[str]:
    """Notes of an anchor. A write-only anchor is sent its newest note again and must accept it as the same.

    Raises AnchorFailed, or AnchorConflict if the anchor contradicts.
    """
    anchored = AuditAnchor.objects.filter(sink=place.name, outcome=anchors.ANCHORED).order_by("-checkpoint_size")
    if place.is_local:
        kept = list(place.after(NOWHERE))
        if not kept and anchored.exists():
            raise AnchorFailed(f"{place.name} has none of the checkpoints that were sent to it.")
        return kept
    # The epoch of the oldest wanted note is unknown here; using the first epoch reads no more notes.
    oldest = anchored.values_list("checkpoint_size", flat=True)[NOTES_FROM_AFAR:].first()
    if notes := list(place.after((1, oldest) if oldest else NOWHERE)):
        return notes
    newest = anchored.values_list("checkpoint_size", flat=True).first()
    row = AuditCheckpoint.objects.filter(size=newest).first() if newest is not None else None
    if row is None:
        return []
    place.put(Checkpoint.parse(Note.parse(row.note).text), row.note)
    return [row.note]


def _pinned() -> list[Key]:
    """The log's first key, and the keys that an operator trusts although they were not signed in."""
    first = AuditCheckpoint.objects.order_by("size").first()
    if first is None or not settings.TRUSTED_KEYS:
        return []
    return [Key.parse(str(Checkpoint.parse(Note.parse(first.note).text).key)), *map(Key.parse, settings.TRUSTED_KEYS)]


def _connect() -> psycopg.Connection[Any]:
    """A new connection: Django's may be in a transaction, and the verifier changes its connection's settings."""
    params = connection.get_connection_params()
    params.pop("cursor_factory", None)
    params.pop("context", None)
    return psycopg.connect(**params)
