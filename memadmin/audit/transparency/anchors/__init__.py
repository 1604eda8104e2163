"""Places outside of the database that know the log's checkpoints, so that it cannot be rewritten unseen.

Whoever owns the database and has the signing key can write a whole new log and sign it. That it is not the old one
shows only where a checkpoint of the old one is kept that they cannot reach.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

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
"""Between two tries at a place that is on another machine, or failed."""

logger = logging.getLogger(__name__)


def configured() -> list[Anchor]:
    """The places of this installation's settings."""
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
    """Brings the newest checkpoint to every place that lacks it, and writes down what became of it.

    Places on other machines are asked every five minutes, and so are those that failed, unless `at_once`.
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
    """The newest checkpoint of this log that some place knows and we do not: an older state was restored.

    What none of the trusted keys has signed is ignored, else whoever writes to a place could stop the log. Places that
    cannot be read are passed over; may wait for the network, unless `is_quick`.
    """
    position: Position = position_of(own) if own else (0, 0)
    found: list[tuple[Position, Anchor, Checkpoint]] = []
    for place in configured():
        if is_quick and not place.is_local:
            continue
        try:
            notes = place.after(position)
        except AnchorFailed as problem:
            logger.warning("It is not known whether the audit log was restored from an older state: %s", problem)
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


def _put(place: Anchor, row: AuditCheckpoint) -> tuple[str, str]:
    try:
        return ANCHORED, place.put(Checkpoint.parse(Note.parse(row.note).text), row.note)
    except AnchorConflict as problem:
        logger.error("The audit log's checkpoint of size %s was refused: %s", row.size, problem)
        return problem.outcome, str(problem)
    except AnchorFailed as problem:
        logger.warning("The audit log's checkpoint of size %s is not anchored: %s", row.size, problem)
        return FAILED, str(problem)
