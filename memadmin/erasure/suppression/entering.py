"""Entries of the ledger, made before the first row is erased, and the comparison with this database."""

from __future__ import annotations

import time
from datetime import datetime

from django.db.models.functions import Now

from memadmin.counting import counted
from memadmin.erasure.models import SubjectRequest, SuppressionEntry
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.suppression.ledger import (
    Entry,
    Ledger,
    LedgerError,
    own_ledger,
    session_digests,
    subject_digests,
)
from memadmin.runs.models import Run
from sessions_app.models import SubjectAlias

CHECK_SECONDS = 30
"""A database that is replaced under a running console is noticed after this time."""


def enter(request: SubjectRequest, scope: SubjectScope) -> Entry | None:
    """Writes an erasure to the ledger; None without a ledger. Safe to repeat.

    Raises LedgerError, also while this database does not know every other entry.
    """
    ledger = own_ledger()
    if ledger is None:
        return None
    known = known_numbers()
    if problem := difference(ledger, known, besides=request):
        raise LedgerError(problem)
    keys = SubjectAlias.objects.filter(subject_id__in=scope.group).values_list("kind", "key")
    sessions = scope.records().filter(is_forgotten=False)
    return ledger.append(
        request.id,
        subjects=[subject_digests(kind, key)[0] for kind, key in keys],
        sessions=[session_digests(*row)[0] for row in sessions.values_list("store__name", "session_id")],
        after=max(known, default=0),
    )


def may_be_entered(request: SubjectRequest) -> bool:
    """True if the ledger has this erasure, or cannot be read: then it must not be cancelled."""
    ledger = own_ledger()
    try:
        return ledger is not None and any(entry.request == request.id for entry in ledger.entries())
    except LedgerError:
        return True


def note_entry(entry: Entry) -> None:
    """Notes in this database that it has carried out an entry, in the caller's transaction."""
    SuppressionEntry.objects.get_or_create(
        number=entry.number,
        defaults={"request_id": entry.request, "entered_at": datetime.fromisoformat(entry.at)},
    )


def known_numbers() -> set[int]:
    """Numbers of the entries that this database has carried out. One query."""
    return set(SuppressionEntry.objects.values_list("number", flat=True))


def difference(ledger: Ledger, known: set[int], *, besides: SubjectRequest | None = None) -> str:
    """A sentence about a difference between the ledger and this database; empty if there is none.

    The entry of `besides`, and those of erasures that a worker is just beginning, do not count. Raises LedgerError.
    """
    entries = ledger.entries()
    if missing := known - {entry.number for entry in entries}:
        return f"The suppression ledger has lost {len(missing)} of its entries, or it is the one of another console."
    unknown = {entry.request for entry in entries if entry.number not in known}
    if besides is not None:
        unknown.discard(besides.id)
    if unknown:
        # Written, and not committed here yet. A restored database has no such lease: it expires within minutes.
        begun = SubjectRequest.objects.filter(id__in=unknown, run__state=Run.State.RUNNING, run__lease_until__gt=Now())
        unknown -= set(begun.values_list("id", flat=True))
    if not unknown:
        return ""
    return (
        f"This database is older than {counted(len(unknown), 'erasures')} of the"
        " suppression ledger: it was restored from a backup. Run `memadmin replay_suppressions`."
    )


_next_check, _problem = 0.0, ""


def reason_not_to_serve() -> str:
    """Why this database must not be shown: a sentence, empty if it may. At most one query every 30 seconds."""
    global _next_check, _problem
    if time.monotonic() >= _next_check:
        _problem, _next_check = _compare(), time.monotonic() + CHECK_SECONDS
    return _problem


def check_again() -> None:
    """The next `reason_not_to_serve` compares again."""
    global _next_check
    _next_check = 0.0


def _compare() -> str:
    ledger = own_ledger()
    if ledger is None:
        return ""
    try:
        return difference(ledger, known_numbers())
    except LedgerError as problem:
        return f"{problem} It names the erasures that a restored database must repeat, so no content is shown."
