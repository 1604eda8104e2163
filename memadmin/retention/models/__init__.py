"""Tables of retention: legal holds, policies with their versions, and the results of sweeps."""

from memadmin.retention.models.holds import HoldLock, LegalHold
from memadmin.retention.models.policies import PolicyVersion, RetentionPolicy
from memadmin.retention.models.sweeps import SweepAlert, SweepResult, SweptTable, UnfinishedExpiry

__all__ = [
    "HoldLock",
    "LegalHold",
    "PolicyVersion",
    "RetentionPolicy",
    "SweepAlert",
    "SweepResult",
    "SweptTable",
    "UnfinishedExpiry",
]
