"""Pauses of a sweep while the database is behind: replicas that lag, tables full of dead rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta

from django.conf import settings
from django.db import connection

from memadmin.retention.sweep.tables import is_in_upkeep, swept_tables, with_too_many_dead
from memadmin.retention.vacuum import TIMEOUT, vacuum
from memadmin.runs.engine import Lease, Wait, stoppable

ASK_EVERY_SECONDS = 5.0
"""Chunks take a quarter of a second: most of them do not ask."""

RETRY_AFTER = timedelta(minutes=1)

BEHIND_BYTES = 64 * 2**20
"""Bytes of log not replayed yet from which a replica counts as behind, if its lag is unknown."""

# A receiver that only stores the log, such as an archive, replays nothing. Without the right to see other roles'
# connections all columns are NULL.
REPLICAS = """
SELECT coalesce(nullif(application_name, ''), 'without a name'), replay_lag,
       pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)
FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn IS NOT NULL
ORDER BY replay_lag DESC NULLS LAST, 3 DESC
"""

HIDDEN = "SELECT count(*) FROM pg_stat_replication WHERE state IS NULL"

ACCEPTED = "accepted"
"""Key of the run's cursor: numbers of dead rows, by table, with which the run went on because VACUUM did not help."""

_ask_at = 0.0


class TooManyDeadRows(Exception):
    """A table needs VACUUM before the sweep deletes more. Nothing of this chunk was changed."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table


def wait_for_database(cursor: Mapping[str, object]) -> None:
    """Raises Wait while a replica is behind, and TooManyDeadRows for a table that needs VACUUM; before a chunk's work.

    Asks the database every ASK_EVERY_SECONDS at most: three short queries. `cursor` is the run's.
    """
    global _ask_at
    if time.monotonic() < _ask_at:
        return
    wait_for_replicas()
    accepted = cursor.get(ACCEPTED)
    for table, dead in with_too_many_dead(swept_tables()).items():
        known = accepted.get(table, 0) if isinstance(accepted, dict) else 0
        if dead > known + (settings.RETENTION_DEAD_ROWS if known else 0):
            raise TooManyDeadRows(table)
    _ask_at = time.monotonic() + ASK_EVERY_SECONDS


def ask_again() -> None:
    """Lets the next chunk ask the database, however recently it was asked."""
    global _ask_at
    _ask_at = 0.0


def wait_for_replicas() -> None:
    """Raises Wait if a streaming replica is further behind than MEMADMIN_RETENTION_REPLICA_SECONDS."""
    limit = settings.RETENTION_REPLICA_LAG
    if not limit:
        return
    with connection.cursor() as cursor:
        cursor.execute(REPLICAS)
        for name, lag, behind in cursor.fetchall():
            # NULL if it has replayed everything, but also if it is too far behind to be measured.
            if lag is None and behind > BEHIND_BYTES:
                raise Wait(
                    f"The replica {name} has not replayed {behind // 2**20:,} MB of changes. The run goes on when it"
                    " has.",
                    retry_after=RETRY_AFTER,
                )
            if lag is not None and lag > limit:
                raise Wait(
                    f"The replica {name} is more than {limit.total_seconds():.0f} seconds behind. The run goes on when"
                    " it is not.",
                    retry_after=RETRY_AFTER,
                )


def hidden_replicas() -> int:
    """Number of connections of replicas whose lag this role may not see."""
    with connection.cursor() as cursor:
        cursor.execute(HIDDEN)
        return int(cursor.fetchone()[0])


def clear_dead_rows(lease: Lease, table: str) -> None:
    """Vacuums a table with too many dead rows, between chunks. Raises Wait while others vacuum it.

    If that does not help, the run goes on and its log says so: rows of old transactions stay dead until these end, and
    the role may lack the right.
    """
    if is_in_upkeep(table):
        raise Wait(f"The table {table} is being vacuumed. The run goes on after that.", retry_after=RETRY_AFTER)
    lease.extend(TIMEOUT)
    with stoppable():
        is_vacuumed = vacuum(table, analyze=True)
    dead = with_too_many_dead([table]).get(table, 0)
    with lease.chunk() as run:
        if not dead:
            run.note(f"Vacuumed {table}, which had many dead rows.")
            return
        run.cursor = {**run.cursor, ACCEPTED: {**run.cursor.get(ACCEPTED, {}), table: dead}}
        why = (
            "VACUUM could not remove them: a transaction has been open for long"
            if is_vacuumed
            else "VACUUM was not possible: the role may not, or it took too long"
        )
        run.note(f"{table} has {dead:,} dead rows. {why}. The run goes on.")
