"""Anchors: copies of the log's checkpoints outside of the database, so that rewriting the log is detected.

The owner of the database can, with the signing key, write and sign a whole new log. Only a checkpoint of the old log
that they cannot change shows the difference.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from itertools import islice

from django.conf import settings
from django.utils.timezone import now

from memadmin.audit.models import AuditAnchor, AuditCheckpoint
from memadmin.audit.transparency.anchors.base import Ahead, Anchor, AnchorConflict, AnchorFailed, Position, position_of
from memadmin.audit.transparency.anchors.bucket import BucketAnchor
from memadmin.audit.transparency.anchors.file import FileAnchor
from memadmin.audit.transparency.anchors.webhook import WebhookAnchor
from memadmin.audit.transparency.notes import BadNote, Checkpoint, Note, PublicKey, verified

ANCHORED, FAILED, AHEAD = "anchored", "failed", Ahead.outcome

PAUSE = timedelta(minutes=5)
"""Time between two attempts at an anchor that is on another machine, or failed."""

MOST_READ = 1000
"""Newest notes of an anchor among which a trusted one is looked for."""

logger = logging.getLogger(__name__)


def configured() -> list[Anchor]:
    """The anchors in this installation's settings."""
    places: list[Anchor] = []
    if settings.ANCHOR_PATH:
        places.append(FileAnchor(settings.ANCHOR_PATH))
    if settings.ANCHOR_URL:
        places.append(WebhookAnchor(settings.ANCHOR_URL, settings.ANCHOR_TOKEN))
    if settings.ANCHOR_BUCKET:
        bucket, _, prefix = settings.ANCHOR_BUCKET.partition("/")
        places.append(BucketAnchor(bucket, prefix, settings.ANCHOR_KEEP_DAYS))
    return places


def publish(*, at_once: bool = False) -> list[AuditAnchor]:
    """Sends the newest checkpoint to every anchor without it, and stores the results.

    Anchors on other machines, and those that failed, are tried every five minutes, unless `at_once`.
    """
    newest = AuditCheckpoint.objects.order_by("-size").first()
    tried = []
    for place in configured() if newest else ():
        assert newest
        last = AuditAnchor.objects.filter(sink=place.name).order_by("-pk").first()
        if last and last.outcome == ANCHORED and last.checkpoint_size == newest.size:
            continue
        is_quick = place.is_local and last is not None and last.outcome == ANCHORED
        if last and not is_quick and not at_once and now() < last.at + PAUSE:
            continue
        outcome, receipt = _put(place, newest)
        tried.append(
            AuditAnchor.objects.create(checkpoint_size=newest.size, sink=place.name, outcome=outcome, receipt=receipt)
        )
    return tried


def newest_beyond(
    own: Checkpoint | None, trusted: Sequence[PublicKey], *, is_quick: bool = False
) -> tuple[Anchor, Checkpoint] | None:
    """The newest checkpoint of this log in an anchor that the database lacks: an older state was restored.

    Checkpoints without a trusted signature are ignored, else anyone with write access to an anchor could stop the log.
    Unreadable anchors are skipped; may wait for the network, unless `is_quick`.
    """
    position: Position = position_of(own) if own else (0, 0)
    found: list[tuple[Position, Anchor, Checkpoint]] = []
    for place in configured():
        if is_quick and not place.is_local:
            continue
        try:
            notes = place.after(position)
        except AnchorFailed as problem:
            logger.warning("Could not check whether the audit log was restored from an older state: %s", problem)
            continue
        for note in notes:
            try:
                known = verified(note, trusted)
            except BadNote:
                continue
            if own is None or known.origin == own.origin:
                found.append((position_of(known), place, known))
    if not found:
        return None
    _, place, known = max(found, key=lambda each: each[0])
    return place, known


def newest_local(origin: str, trusted: Sequence[PublicKey]) -> list[tuple[Anchor, Checkpoint]]:
    """The newest trusted checkpoint of a log in each anchor on this machine; unreadable anchors are skipped."""
    found: list[tuple[Anchor, Checkpoint]] = []
    for place in configured():
        if not isinstance(place, FileAnchor):
            continue
        try:
            found += [(place, known) for known in _newest_in(place, origin, trusted)]
        except AnchorFailed as problem:
            logger.warning("Could not compare the audit log with its anchor: %s", problem)
    return found


def _newest_in(place: FileAnchor, origin: str, trusted: Sequence[PublicKey]) -> list[Checkpoint]:
    for note in islice(place.newest_first(), MOST_READ):
        try:
            known = verified(note, trusted)
        except BadNote:
            continue
        if known.origin == origin:
            return [known]
    return []


def _put(place: Anchor, row: AuditCheckpoint) -> tuple[str, str]:
    try:
        return ANCHORED, place.put(Checkpoint.parse(Note.parse(row.note).text), row.note)
    except AnchorConflict as problem:
        logger.error("An anchor refused the audit log's checkpoint of size %s: %s", row.size, problem)
        return problem.outcome, str(problem)
    except AnchorFailed as problem:
        logger.warning("The audit log's checkpoint of size %s is not anchored: %s", row.size, problem)
        return FAILED, str(problem)
