"""Wait for the replica at the end of an erasure: until the replica has replayed it, the text can be read there."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta

from django.db import Error
from django.utils.timezone import now

from memadmin import replica
from memadmin.audit.transparency.canonical import utc
from memadmin.erasure.exceptions import Left
from memadmin.erasure.models import SubjectRequest
from memadmin.runs.engine import Lease, Wait

KEY = "replica"
"""Key of the run's cursor: the position in the log that the replica must reach, for which number of scans, and since
when."""

PATIENCE = timedelta(hours=1)
"""Time after which an erasure ends with an exception: a replica that is away must not hold up the answer for ever."""

RETRY_BEHIND = timedelta(seconds=5)
"""Time until a replica that is behind is asked again."""

RETRY_AWAY = timedelta(minutes=1)
"""The same for one that does not respond or replay: the cases of a batch would keep workers busy with connecting."""


def wait_for_replica(lease: Lease, request: SubjectRequest) -> None:
    """Returns when the replica has replayed everything that was committed before the first call after a scan.

    Raises Wait until then, for PATIENCE; after that the replica becomes an exception of the case. Without a replica it
    returns at once.
    """
    if not replica.is_configured():
        return
    noted, at_present = lease.run.cursor.get(KEY, {}), replica.position_now()
    is_noted = noted.get("scans") == len(request.scans)
    # Positions in the log of an earlier primary mean nothing.
    if not is_noted or noted["position"]["timeline"] != at_present.timeline:
        began = noted["at"] if is_noted else utc(now())
        noted = {"scans": len(request.scans), "at": began, "position": asdict(at_present)}
        with lease.chunk() as run:
            run.cursor = {**run.cursor, KEY: noted}
    retry_after = RETRY_AWAY
    try:
        state = replica.state_at(replica.LogPosition(**noted["position"]))
    except Error:
        sentence = "Erased. The replica does not respond: it may still show what was erased."
    else:
        if state.has_all:
            return
        if state.is_paused or not state.is_usable:
            sentence = "Erased. The replica does not replay changes at present: it still shows what was erased."
        else:
            sentence, retry_after = "Erased. The replica has not replayed it yet.", RETRY_BEHIND
    if now() - datetime.fromisoformat(noted["at"]) < PATIENCE:
        raise Wait(sentence, retry_after=retry_after)
    note_exception(lease, request)


def note_exception(lease: Lease, request: SubjectRequest) -> None:
    """Adds the replica to what the last scan has found, once."""
    with lease.chunk():
        locked = SubjectRequest.objects.select_for_update(of=("self",)).get(pk=request.pk)
        *before, last = locked.scans
        places = [row for row in last["places"] if row["code"] != Left.ON_REPLICA]
        places.append({"place": replica.REPLICA, "code": Left.ON_REPLICA.value, "found": 1})
        SubjectRequest.objects.filter(pk=locked.pk).update(scans=[*before, {**last, "places": places}])
    request.refresh_from_db()
