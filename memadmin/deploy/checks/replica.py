"""Checks of the streaming replica from which pages read, and of the primary's settings for it."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import Error, connections

from memadmin import replica as reading
from memadmin.deploy.checks.finding import CheckFinding
from memadmin.deploy.steps import fetch
from memadmin.replica import REPLICA, ReplicaState

FAR_BEHIND = 64 * 2**20
"""Bytes of the log from which a replica counts as far behind."""

MEANWHILE = "Pages read from the primary, and erasures wait for an hour before they end with an exception."

WITHOUT_LIMIT = """
SELECT slot_name FROM pg_replication_slots
WHERE slot_type = 'physical' AND current_setting('max_slot_wal_keep_size') = '-1' ORDER BY slot_name
"""


def is_standby() -> bool:
    return bool(fetch("SELECT pg_is_in_recovery()")[0][0])


def primary() -> Iterator[CheckFinding]:
    """An error if the database is a standby, on which every page fails because its audit event cannot be stored."""
    if is_standby():
        hint = "DATABASE_URL names a standby, which takes no changes. Set it to the primary."
        yield CheckFinding("error", "primary", hint)


def replica() -> Iterator[CheckFinding]:
    """Problems of the replica, if one is configured: no response, another cluster, no replay, or a risk for others."""
    # With a standby as the primary, findings about the replica would mislead.
    if not reading.is_configured() or is_standby():
        return
    try:
        state = reading.state_at(reading.position_now())
        ((delay,),) = ask_replica("SELECT setting FROM pg_settings WHERE name = 'max_standby_streaming_delay'")
    except Error as problem:
        reason = str(problem).strip().splitlines()[0].rstrip(".")
        hint = f"The replica does not respond: {reason}. {MEANWHILE} Start it, or correct MEMADMIN_REPLICA_URL."
        yield CheckFinding("error", "replica", hint)
        return
    if sentence := problem_of(state):
        yield CheckFinding("error", "replica", f"{sentence} {MEANWHILE}")
    elif state.behind_bytes > FAR_BEHIND:
        hint = f"The replica is {state.behind_bytes // 2**20:,} MB behind. Pages read from the primary until it is not."
        yield CheckFinding("warning", "replica", hint)
    if delay == "-1":
        hint = (
            "On the replica max_standby_streaming_delay is -1: one long query there stops the replay for all, and"
            " erasures with it. Set it to 30s in the replica's configuration."
        )
        yield CheckFinding("warning", "replica", hint)
    if slots := [name for (name,) in fetch(WITHOUT_LIMIT)]:
        hint = (
            f"The replication slot {slots[0]} has no limit: a replica that stays away fills the primary's disk. Set"
            " max_slot_wal_keep_size on the primary."
        )
        yield CheckFinding("warning", "replica", hint)


def problem_of(state: ReplicaState) -> str:
    """Why a replica that responds is not read from, with the remedy; empty if it only has to catch up."""
    if not state.is_replica:
        return "MEMADMIN_REPLICA_URL names a server that is no standby. Set it to a standby of the primary."
    if not state.is_of_cluster:
        return "MEMADMIN_REPLICA_URL names a standby of another cluster. Set it to a standby of the primary."
    if not state.is_on_timeline:
        return (
            "The replica is not on the primary's timeline: it follows a server that is not the primary any more, or"
            " has followed the primary for a few minutes only. Let it follow the primary of DATABASE_URL."
        )
    if state.is_paused:
        return "The replica's replay is paused. Run SELECT pg_wal_replay_resume(); there."
    return ""


def ask_replica(query: str) -> list[tuple[str, ...]]:
    with connections[REPLICA].cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())
