"""Models of memories: proposals, versions, evidence, reviews, rules, recalls and signals."""

from memories_app.models.digests import Digest, NoDigest
from memories_app.models.evidence import Evidence
from memories_app.models.learning import Distillation, LearningStop, Signal
from memories_app.models.memories import Memory, VectorNote
from memories_app.models.recalls import Recall, RecalledMemory
from memories_app.models.reviews import ApprovalRule, Review
from memories_app.models.versions import MemoryVersion

__all__ = [
    "ApprovalRule",
    "Digest",
    "Distillation",
    "Evidence",
    "LearningStop",
    "Memory",
    "MemoryVersion",
    "NoDigest",
    "Recall",
    "RecalledMemory",
    "Review",
    "Signal",
    "VectorNote",
]
