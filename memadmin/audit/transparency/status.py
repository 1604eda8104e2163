"""Status of the log: for the head of its page, `check_deploy` and health checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.utils.timezone import now

from memadmin.audit.models import AuditAnchor, AuditEvent, AuditLeaf, AuditPending, AuditVerdict
from memadmin.audit.transparency import anchors, checkpoints, sequencer, tree_store, verified_tree
from memadmin.audit.transparency.notes import Checkpoint

LONGEST_UNSEQUENCED = timedelta(seconds=10)
LONGEST_UNSIGNED = timedelta(minutes=3)
LONGEST_UNANCHORED = timedelta(minutes=15)
MOST_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class AuditProblem:
    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class PlaceStatus:
    """Status of one anchor."""

    name: str
    anchored_at: datetime | None
    """Time of the last checkpoint stored there."""
    anchored_size: int
    failure: str
    """Why the last attempt failed; empty when it did not."""
    is_refused: bool


@dataclass(frozen=True, slots=True)
class LogStatus:
    size: int
    """Events with an index."""
    unsequenced: int
    """Events without an index yet, counted up to 1,000."""
    oldest_unsequenced: timedelta | None
    checkpoint: Checkpoint | None
    """The newest."""
    places: Sequence[PlaceStatus]
    problems: Sequence[AuditProblem] = ()

    @property
    def unsigned(self) -> int:
        """Events with an index but without a checkpoint yet."""
        return self.size - (self.checkpoint.size if self.checkpoint else 0)

    @property
    def anchored_size(self) -> int:
        return max((place.anchored_size for place in self.places), default=0)

    @property
    def anchored_at(self) -> datetime | None:
        return max((place.anchored_at for place in self.places if place.anchored_at), default=None)


def log_status() -> LogStatus:
    """The current status. About ten queries of one row each, however long the log is; contacts no anchor."""
    status = LogStatus(
        size=tree_store.size(),
        unsequenced=AuditPending.objects.all()[:MOST_COUNTED].count(),
        oldest_unsequenced=sequencer.oldest_unsequenced(),
        checkpoint=checkpoints.latest(),
        places=[_status_of(place.name) for place in anchors.configured()],
    )
    return replace(status, problems=_problems(status))


def latest_verdict() -> AuditVerdict | None:
    """Result of the last verification. One query."""
    return AuditVerdict.objects.exclude(verdict=verified_tree.STOPPED).order_by("-at", "-pk").first()


def is_old(verdict: AuditVerdict | None) -> bool:
    """Whether the log has to be verified again; no verdict is an old one."""
    return verdict is None or now() > verdict.at + settings.LOG_VERIFIED_EVERY


def _problems(status: LogStatus) -> list[AuditProblem]:
    problems = []
    if why := verified_tree.why_stopped(status.checkpoint):
        problems.append(AuditProblem(verified_tree.STOPPED, why))
    if any(place.is_refused for place in status.places):
        problems += [AuditProblem("refused", place.failure) for place in status.places if place.is_refused]
    if status.oldest_unsequenced and status.oldest_unsequenced > LONGEST_UNSEQUENCED:
        seconds = int(status.oldest_unsequenced.total_seconds())
        problems.append(
            AuditProblem(
                "unsequenced",
                f"Events have waited {seconds:,} s for an index in the log. Check that a worker is running.",
            )
        )
    unsigned_for = _age_of_leaf(status.checkpoint.size if status.checkpoint else 0)
    if unsigned_for and unsigned_for > LONGEST_UNSIGNED:
        problems.append(
            AuditProblem(
                "unsigned",
                "Events have no signed checkpoint. Check that a worker is running and MEMADMIN_SIGNING_KEY is set.",
            )
        )
    if not status.places:
        problems.append(AuditProblem("not_anchored", "Not anchored: the database owner could rewrite this log."))
        return problems
    unanchored_for = _age_of_leaf(status.anchored_size)
    if unanchored_for and unanchored_for > LONGEST_UNANCHORED:
        minutes = int(unanchored_for.total_seconds() // 60)
        why = next((f" {place.failure}" for place in status.places if place.failure and not place.is_refused), "")
        problems.append(
            AuditProblem(
                "unanchored", f"Not anchored for {minutes:,} min: the database owner could rewrite newer events.{why}"
            )
        )
    return problems


def _status_of(name: str) -> PlaceStatus:
    tries = AuditAnchor.objects.filter(sink=name)
    last = tries.order_by("-pk").first()
    best = tries.filter(outcome=anchors.ANCHORED).order_by("-checkpoint_size").first()
    failed = last is not None and last.outcome != anchors.ANCHORED
    return PlaceStatus(
        name=name,
        anchored_at=best.at if best else None,
        anchored_size=best.checkpoint_size if best else 0,
        failure=last.receipt if last and failed else "",
        is_refused=last is not None and last.outcome not in (anchors.ANCHORED, anchors.FAILED),
    )


def _age_of_leaf(index: int) -> timedelta | None:
    """Age of the event at this index; None if the index does not exist yet."""
    number = AuditLeaf.objects.filter(index=index).values_list("event_number", flat=True).first()
    at = AuditEvent.objects.filter(number=number).values_list("at", flat=True).first() if number is not None else None
    return now() - at if at else None
