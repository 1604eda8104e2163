"""Raw edits of memories, outside of the review queue. The gate protects approved texts here, too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection

from django.contrib.auth.models import User
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DataError, Error, transaction

from memadmin import audit
from memadmin.audit.audit_events import RAW_EDIT_MADE
from memories_app import audit_events
from memories_app.learning.proposing import check_proposal
from memories_app.models import Memory
from memories_app.services.refusals import NotApproved, Unproposable, gate_explained

EDITABLE = (
    *("kind", "key", "statement", "data", "agents"),
    *("confidence", "valid_from", "valid_until", "revalidate_on"),
)
"""The editable columns: states and hashes are written by verbs and triggers, the origin by the proposer."""

ONLY_PROPOSED = "Agents recall this memory in its approved wording. Propose a change instead."
NO_TEXT = "The database cannot store this text: it contains a NUL or half a surrogate pair."


def state_of(memory: Memory) -> str:
    """Hash of all values in the form. A form opened with another state is out of date."""
    shown = [memory.status, memory.version, *(getattr(memory, name) for name in EDITABLE)]
    return hashlib.blake2b(json.dumps(shown, cls=DjangoJSONEncoder).encode(), digest_size=16).hexdigest()


def show_memory(memory: Memory, *, purpose: str = "") -> None:
    """Records that this memory is shown, in the transaction of Django's admin, which commits before the page is sent.
    Raises audit.AuditUnavailable."""
    try:
        with transaction.atomic():
            audit.record(audit_events.MEMORY_VIEWED, target=memory, subject=memory.subject_id, reason_code=purpose)
    except Error as problem:
        raise audit.AuditUnavailable from problem


@transaction.atomic
def save_memory(memory: Memory, names: Collection[str], *, by: User, why: audit.Why) -> None:
    """Saves these columns of EDITABLE; the job screens a changed text again.

    Raises Unproposable for an invalid memory, and what the gate refuses: changes of approved text.
    """
    assert set(names) <= set(EDITABLE), "these columns are not to be changed by hand"
    check_proposal(
        *(memory.statement, memory.kind, memory.key, memory.source, memory.provenance, memory.confidence, memory.data),
        (),
    )
    if memory.valid_from and memory.valid_until and memory.valid_from >= memory.valid_until:
        raise Unproposable(memory, "The validity would end before it begins.")
    audit.record(
        RAW_EDIT_MADE,
        by=by,
        target=memory,
        subject=memory.subject_id,
        counters={"rows": 1},
        reason_code=why.code,
        details=why.details,
    )
    try:
        with gate_explained(memory):
            memory.save(update_fields=list(names))
    except NotApproved as problem:
        raise NotApproved(memory, ONLY_PROPOSED) from problem
    except DataError as problem:
        raise Unproposable(memory, NO_TEXT) from problem
