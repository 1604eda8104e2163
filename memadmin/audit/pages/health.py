"""Health of the log for the head of its page: one colour, one symbol, sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from memadmin.audit.jobs import VerificationState, queue_verification_of_old_log, verification_state
from memadmin.audit.models import AuditVerdict
from memadmin.audit.transparency import status
from memadmin.audit.transparency.status import LogStatus
from memadmin.audit.transparency.verified_tree import STOPPED

BROKEN, UNSIGNED, EPOCH = "broken", "unsigned", "epoch"
SHOWN_FINDINGS = 5


@dataclass(frozen=True)
class AuditHealth:
    status: LogStatus
    verdict: AuditVerdict | None
    verification: VerificationState = ""

    @property
    def is_broken(self) -> bool:
        return self.verdict is not None and self.verdict.verdict == BROKEN

    @property
    def is_old(self) -> bool:
        return status.is_old(self.verdict)

    @property
    def is_unsigned(self) -> bool:
        """True if older events had no signature when the log was verified."""
        return self.verdict is not None and self.verdict.verdict == UNSIGNED

    @property
    def is_restored(self) -> bool:
        """True if the log continues from an older state, which stays visible for ever."""
        return self.verdict is not None and self.verdict.verdict == EPOCH

    @property
    def is_alarming(self) -> bool:
        is_stopped = any(problem.code == STOPPED for problem in self.status.problems)
        return self.is_broken or is_stopped or any(place.is_refused for place in self.status.places)

    @property
    def colour(self) -> str:
        if self.is_alarming:
            return "danger"
        if self.status.problems or self.is_unsigned:
            return "warning"
        return "success" if self.verdict and not self.is_restored else "info"

    @property
    def symbol(self) -> str:
        if self.is_alarming:
            return "alert-octagon"
        if self.status.problems or self.is_unsigned:
            return "alert-triangle"
        return "rosette-discount-check" if self.verdict and not self.is_restored else "shield-check"

    @cached_property
    def findings(self) -> list[str]:
        """The first findings of the verification, as sentences."""
        found = self.verdict.findings if self.verdict else []
        return [sentence(finding) for finding in found[:SHOWN_FINDINGS]]

    @property
    def more_findings(self) -> int:
        return max(0, len(self.verdict.findings) - SHOWN_FINDINGS) if self.verdict else 0

    @property
    def waiting(self) -> int:
        """Events that no checkpoint covers yet."""
        return self.status.unsequenced + self.status.unsigned

    @property
    def root(self) -> str:
        return self.status.checkpoint.root.hex() if self.status.checkpoint else ""


def sentence(finding: object) -> str:
    if isinstance(finding, dict):
        kind, detail = str(finding.get("kind", "")).replace("_", " "), str(finding.get("detail", ""))
        return f"{kind}: {detail}" if detail else kind
    return str(finding)


def health() -> AuditHealth:
    """The current health; a verification is queued if the last one is old. About fourteen queries of one row each,
    however long the log is.
    """
    verdict = status.latest_verdict()
    verification = verification_state()
    if not verification and status.is_old(verdict):
        verification = queue_verification_of_old_log()
    return AuditHealth(status.log_status(), verdict, verification)
