"""Proofs of events of the audit log. In a process of its own, on the bench's database."""

from __future__ import annotations

import random
import time

from memadmin.audit.models import AuditEvent, AuditLeaf
from memadmin.audit.transparency import proofs, tree_store

WARM_UP = 5


def milliseconds(count: int) -> list[float]:
    """For each of `count` proofs, of events in all parts of the log."""
    chance, times = random.Random(5), []
    for index in [chance.randrange(tree_store.size()) for _ in range(WARM_UP + count)]:
        event = AuditEvent.objects.get(number=AuditLeaf.objects.get(index=index).event_number)
        began = time.perf_counter()
        proof = proofs.proof_of(event)
        times.append((time.perf_counter() - began) * 1000)
        assert proof.holds
    return times[WARM_UP:]
