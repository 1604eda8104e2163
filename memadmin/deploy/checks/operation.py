"""Checks of operation: the log, the worker, stores, backups and settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from django.conf import settings
from django.core import checks
from django.db import connection
from django.utils.timezone import now

from memadmin.audit.transparency import checkpoints, status
from memadmin.client.embedding import NONE
from memadmin.counting import counted
from memadmin.deploy.checks.finding import CheckFinding, Level
from memadmin.deploy.steps import fetch
from memadmin.erasure.data_map.checking import compare
from memadmin.erasure.data_map.places import places
from memadmin.retention.sweep.metrics import metrics_of, recent_runs
from memadmin.retention.sweep.pressure import hidden_replicas
from memadmin.retention.sweep.silence import silence
from memadmin.web import job_queue
from memadmin.web.poolers import is_pooled
from memories_app.vector_column import has_vectors, missing_vectors
from sessions_app import registry
from sessions_app.encryption.subject_keys import folder_problems
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreUnavailable

MANY_ITEMS = 100_000
"""Number of items from which a store should have a search index."""

LONGEST_SILENCE = "1 minute"
"""Age of a worker's last heartbeat; workers send one every five seconds."""


WHAT_TO_DO = {
    "not_anchored": "Set MEMADMIN_ANCHOR_PATH, MEMADMIN_ANCHOR_URL or MEMADMIN_ANCHOR_BUCKET for the workers.",
    "unanchored": "Check that a worker is running, and that it reaches the anchor.",
}
"""Remedies by code, of problems whose sentence has none because readers of the log's page cannot carry them out."""


def log() -> Iterator[CheckFinding]:
    """Audit log: events without a place, checkpoints without a signature or an anchor."""
    for problem in status.log_status().problems:
        hint = f"{problem.sentence} {WHAT_TO_DO.get(problem.code, '')}".strip()
        yield CheckFinding("error", f"log-{problem.code.replace('_', '-')}", hint)
    if checkpoints.latest() is None and not (settings.SIGNING_KEY or settings.SIGNING_KEY_KEPT):
        yield CheckFinding(
            "error",
            "log-signing-key",
            "No checkpoint of the audit log has been signed, and MEMADMIN_SIGNING_KEY is not set here. Set it for"
            " the workers: `openssl genpkey -algorithm ed25519` creates a key.",
        )
    verdict = status.latest_verdict()
    if verdict and verdict.verdict == "broken":
        hint = f"The audit log was found broken at {verdict.at:%Y-%m-%d %H:%M} UTC; see /audit/, or run verify_audit."
        yield CheckFinding("error", "log-broken", hint)
    elif verdict and verdict.verdict == "unsigned":
        hint = (
            f"Events of the audit log had no signature at {verdict.at:%Y-%m-%d %H:%M} UTC. Check that a worker with"
            " MEMADMIN_SIGNING_KEY is running, then run verify_audit."
        )
        yield CheckFinding("warning", "log-was-unsigned", hint)
    elif verdict is None or verdict.at < now() - 2 * settings.LOG_VERIFIED_EVERY:
        when = f"since {verdict.at:%Y-%m-%d %H:%M} UTC" if verdict else "yet"
        yield CheckFinding(
            "warning",
            "log-unverified",
            f"The audit log has not been verified {when}; a worker verifies it (MEMADMIN_VERIFY_LOG_HOURS).",
        )


def data_map() -> Iterator[CheckFinding]:
    """Data map: columns and arguments of jobs that are not classified."""
    comparison = compare(places())
    for found in comparison.unclassified.values():
        for name, columns in found.items():
            hint = (
                f"{name} has {', '.join(columns)}, and the data map does not say what that is or who erases it. Update"
                " memadmin to a version whose data map has it, or report it."
            )
            yield CheckFinding("warning", "data-map", hint)


def worker() -> Iterator[CheckFinding]:
    """Workers: without one nothing is sequenced, inspected or erased."""
    alive = "SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > clock_timestamp() - %s::interval"
    if not fetch(alive, [LONGEST_SILENCE])[0][0]:
        yield CheckFinding(
            "error",
            "worker",
            "No worker is running: audit events are not sequenced and jobs are not done. Start `worker`.",
        )
    for problem in job_queue.problems():
        yield CheckFinding("error", problem.check, problem.sentence)


def pooler() -> Iterator[CheckFinding]:
    """Problems with a pooler in front of the database, behind which each transaction may get another session."""
    if not is_pooled(connection):
        return
    if not connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        yield CheckFinding(
            "error",
            "pooler",
            "The database is reached through a pooler, behind which long lists and downloads fail: a cursor is unknown"
            " to the next server session. Append DISABLE_SERVER_SIDE_CURSORS=True to the query of DATABASE_URL.",
        )
    if not settings.WORKER_DATABASE:
        yield CheckFinding(
            "warning",
            "pooler",
            "The database is reached through a pooler, behind which workers are not notified of new jobs. Set"
            " MEMADMIN_WORKER_DATABASE_URL to an address without it.",
        )


def retention() -> Iterator[CheckFinding]:
    """Retention runs: whether they take place, keep up, and see the replicas for which they wait."""
    figures = metrics_of(recent_runs())
    for growth in figures.growing:
        yield CheckFinding("warning", "retention", f"{growth.sentence} See /retention/runs/.")
    if found := silence():
        yield CheckFinding("warning", "retention", f"{found.sentence} See /retention/runs/.")
    if count := hidden_replicas():
        yield CheckFinding(
            "warning",
            "retention",
            f"{counted(count, 'connections')} for replication cannot be seen by this role:"
            " retention runs do not wait for replicas that are behind. GRANT pg_read_all_stats to the worker's role.",
        )


def stores() -> Iterator[CheckFinding]:
    for store in registry.known_stores():
        health = registry.health(store)
        level: Level = "error" if health.state == "down" or health.fence == "off" else "warning"
        for problem in health.problems:
            yield CheckFinding(level, f"store-{store}", problem.sentence)
        for hint in health.hints:
            yield CheckFinding("warning", f"store-{store}", hint)


def search_index() -> Iterator[CheckFinding]:
    """Stores of so many items that a search without an index ends before it has read them."""
    for store in registry.known_stores():
        with suppress(StoreUnavailable):  # `stores` reports it.
            index = backend_for(store).word_index
            state = index.state() if index else None
            if state and state.is_missing and state.item_count >= MANY_ITEMS:
                hint = (
                    f"{store} has about {state.item_count:,} items and no search index: a search for a rare word stops"
                    f" after {settings.SEARCH_SCAN_SECONDS} seconds with a part of the results. Run `memadmin"
                    f" search_index {store} --create` as the owner of its tables."
                )
                yield CheckFinding("warning", "search-index", hint)


def vectors() -> Iterator[CheckFinding]:
    """Vectors of memories: without pgvector recall goes by words alone."""
    if settings.EMBEDDER == NONE or has_vectors():
        return
    hint = missing_vectors() or (
        "The database was migrated without pgvector, which it has now: recall uses words alone. Run `memadmin migrate`"
        " as the migrator."
    )
    yield CheckFinding("warning", "vectors", hint)


def subject_keys() -> Iterator[CheckFinding]:
    """The folder of subjects' keys, if there is one."""
    for problem in folder_problems():
        yield CheckFinding("error", "subject-keys", problem)


ARCHIVING = """
SELECT current_setting('archive_mode'), last_failed_time > coalesce(last_archived_time, '-infinity'), last_failed_time,
       EXISTS (SELECT FROM pg_stat_replication)
FROM pg_stat_archiver
"""


def backups() -> Iterator[CheckFinding]:
    """Backups that the database knows of; it cannot see dumps or disk snapshots."""
    ((mode, is_failing, failed_at, has_replica),) = fetch(ARCHIVING)
    if mode != "off" and is_failing:
        hint = (
            f"PostgreSQL could not archive its write-ahead log at {failed_at:%Y-%m-%d %H:%M} UTC; backups"
            " contain nothing newer. PostgreSQL's own log has the reason: correct archive_command, and reload the"
            " settings."
        )
        yield CheckFinding("error", "backups", hint)
    elif mode == "off" and not has_replica:
        yield CheckFinding(
            "warning",
            "backups",
            "PostgreSQL has no archive of its write-ahead log and no replica: everything written since the last"
            " dump would be lost. Set archive_mode and archive_command, as docs/backup.md has them, or make a replica.",
        )


# The statements that Django and psycopg send contain the values.
LOGGED = """
SELECT string_agg(format('ALTER DATABASE %I SET %s = %L;', current_database(), name, quiet), ' ' ORDER BY name)
FROM pg_settings JOIN (VALUES
    ('log_min_error_statement', 'panic'), ('log_statement', 'none'),
    ('log_min_duration_statement', '-1'), ('log_min_duration_sample', '-1')
) AS wanted(name, quiet) USING (name)
WHERE setting <> quiet AND NOT (name = 'log_statement' AND setting = 'ddl')
  AND NOT (name = 'log_min_error_statement' AND setting IN ('fatal', 'log'))
"""


def statements_in_logs() -> Iterator[CheckFinding]:
    """PostgreSQL's own log, which no erasure reaches."""
    ((statements,),) = fetch(LOGGED)
    if statements:
        yield CheckFinding(
            "warning",
            "statements-in-logs",
            "PostgreSQL writes failed, slow or all statements to its own log, with the texts and IDs in them, and no"
            f" erasure reaches it. As an administrator of the database, run {statements}",
        )


def sign_in() -> Iterator[CheckFinding]:
    if not settings.SECOND_FACTOR_REQUIRED:
        hint = "Sign-in needs a password only: MEMADMIN_SECOND_FACTOR is optional. Remove that setting."
        yield CheckFinding("error", "second-factor", hint)


OF_HTTPS = {"security.W004", "security.W008", "security.W012", "security.W016"}
"""Django's own checks that correspond to one of our settings."""


def transport() -> Iterator[CheckFinding]:
    if settings.DEBUG:
        yield CheckFinding(
            "error", "debug", "MEMADMIN_DEBUG is on: error pages show settings and content. Turn it off."
        )
    if not settings.IS_HTTPS:
        hint = "MEMADMIN_HTTPS is off: sessions and content are sent unencrypted. Turn it on, behind TLS."
        yield CheckFinding("error", "https", hint)
    if settings.DATABASES["default"]["ENGINE"] == "memadmin.embedded":
        hint = (
            "The embedded PostgreSQL accepts every program of its system user and is for trials only. Set DATABASE_URL."
        )
        yield CheckFinding("warning", "database", hint)


def django() -> Iterator[CheckFinding]:
    """Messages of `check --deploy`."""
    for message in checks.run_checks(include_deployment_checks=True, databases=["default"]):
        if message.is_silenced() or message.id in OF_HTTPS or message.id == "security.W018":
            continue
        level: Level = "error" if message.level >= checks.ERROR else "warning"
        yield CheckFinding(level, str(message.id), f"{message.msg} {message.hint or ''}".strip())
