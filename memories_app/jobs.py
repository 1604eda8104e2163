"""Background jobs of memories. A job is only a wake-up: each searches for due work, so a lost job loses nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from procrastinate.contrib.django import app

from memadmin.web.periodic import is_stale
from memories_app.dedup import consolidation
from memories_app.learning import distillation, evidence_linking, screening
from memories_app.recall import indexing
from memories_app.recall.vectors import IndexAway
from memories_app.review import digest, proposal_expiry, rules

logger = logging.getLogger(__name__)


@app.periodic(cron="* * * * * */2")
@app.task(queueing_lock="screen_memories", lock="screen_memories")
def screen_memories(timestamp: int) -> None:
    """Detects risks in new texts, which can only be approved afterwards."""
    if not is_stale(timestamp):
        while screening.screen_memories() == screening.BATCH:
            pass


@app.periodic(cron="* * * * * */5")
@app.task(queueing_lock="embed_memories", lock="embed_memories")
def embed_memories(timestamp: int) -> None:
    """Computes the vectors for recall and similarity search."""
    if not is_stale(timestamp):
        while screening.embed_memories() == screening.BATCH:
            pass


@app.periodic(cron="* * * * * */5")
@app.task(queueing_lock="carry_vectors", lock="vectors")
def carry_vectors(timestamp: int) -> None:
    """Updates an external vector index, if any, after approvals and retirements."""
    if not is_stale(timestamp):
        with away_logged():
            while indexing.carry_vectors() == indexing.BATCH:
                pass


@app.periodic(cron="41 3 * * *")
@app.task(queueing_lock="compare_vectors", lock="vectors")
def compare_vectors(timestamp: int) -> None:
    """Compares an external vector index with the database, and corrects differences."""
    if not is_stale(timestamp):
        with away_logged(), suppress(indexing.NoOtherIndex):
            compared = indexing.compare_vectors(mend=True)
            if not compared.is_alike:
                logger.warning("The vector index differed from the database and was corrected: %s", compared)


@contextmanager
def away_logged() -> Iterator[None]:
    """Logs an unavailable index; the next call retries."""
    try:
        yield
    except IndexAway as problem:
        logger.warning("The vector index is not responding (%s).", problem)


@app.periodic(cron="* * * * * */10")
@app.task(queueing_lock="place_evidence", lock="place_evidence")
def place_evidence(timestamp: int) -> None:
    """Links quotes of agents to the quoted items."""
    if not is_stale(timestamp):
        evidence_linking.place_evidence(
            within=evidence_linking.LATE if timestamp % 60 < 10 else evidence_linking.RECENT
        )


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="distil_quiet_sessions", lock="distil_quiet_sessions")
def distil_quiet_sessions(timestamp: int) -> None:
    """Distils quiet sessions into proposals."""
    if not is_stale(timestamp):
        is_full_hour = timestamp % 3600 < 60
        distillation.distil_quiet_sessions(within=distillation.LOOKED_BACK if is_full_hour else distillation.RECENTLY)


@app.periodic(cron="* * * * * */10")
@app.task(queueing_lock="apply_approval_rules", lock="apply_approval_rules")
def apply_approval_rules(timestamp: int) -> None:
    """Approves proposals by approval rules."""
    if not is_stale(timestamp):
        while rules.apply_rules() >= rules.BATCH:
            pass


@app.periodic(cron="43 * * * *")
@app.task(queueing_lock="lapse_proposals", lock="lapse_proposals")
def lapse_proposals(timestamp: int) -> None:
    """Expires proposals without a decision in time."""
    if not is_stale(timestamp):
        while proposal_expiry.lapse_proposals() == proposal_expiry.BATCH:
            pass


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="send_digest", lock="send_digest")
def send_digest(timestamp: int) -> None:
    """Sends the daily digest of the queue to reviewers."""
    if not is_stale(timestamp):
        digest.send_digest()


@app.periodic(cron="23 * * * *")
@app.task(queueing_lock="consolidate_memories", lock="consolidate_memories")
def consolidate_memories(timestamp: int) -> None:
    """Expires unused memories, sends old ones to re-validation, and marks duplicates and contradictions.

    Hourly for recent changes, and once a day for all proposals, because merged subjects and late vectors have no time.
    """
    if not is_stale(timestamp):
        is_first_hour = timestamp % 86_400 < 3_600
        consolidation.consolidate(within=None if is_first_hour else consolidation.LATELY)
