"""Checks of operation: the log, the worker, stores, backups and settings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.core import checks
from django.template.defaultfilters import pluralize
from django.utils.timezone import now

from memadmin.audit.transparency import checkpoints, status
from memadmin.deploy.checks.finding import CheckFinding, Level
from memadmin.deploy.steps import fetch
from sessions_app import registry

VERDICT_LASTS = timedelta(days=2)
LONGEST_SILENCE = "1 minute"
"""Of workers, who give a sign every five seconds."""


def log() -> Iterator[CheckFinding]:
    """Whether events get their place, checkpoints their signature and a place out of reach."""
    for problem in status.log_status().problems:
        yield CheckFinding("error", f"log-{problem.code.replace('_', '-')}", problem.sentence)
    if checkpoints.latest() is None and not (settings.SIGNING_KEY or settings.SIGNING_KEY_KEPT):
        yield CheckFinding(
            "error",
            "log-signing-key",
            "No checkpoint of the audit log was ever signed, and MEMADMIN_SIGNING_KEY is not set here. Set it for the"
            " workers: `openssl genpkey -algorithm ed25519` makes one.",
        )
    verdict = status.latest_verdict()
    if verdict and verdict.verdict == "broken":
        hint = f"The audit log was found broken at {verdict.at:%Y-%m-%d %H:%M} UTC; /audit/ and verify_audit say where."
        yield CheckFinding("error", "log-broken", hint)
    elif verdict is None or verdict.at < now() - VERDICT_LASTS:
        when = f"since {verdict.at:%Y-%m-%d %H:%M} UTC" if verdict else "yet"
        yield CheckFinding(
            "warning", "log-unverified", f"Nobody verified the audit log {when}: a worker does so every day."
        )


def worker() -> Iterator[CheckFinding]:
    """Without one nothing is sequenced, inspected or erased."""
    alive = "SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > clock_timestamp() - %s::interval"
    if not fetch(alive, [LONGEST_SILENCE])[0][0]:
        yield CheckFinding(
            "error", "worker", "No worker runs: audit events get no place, and no job is done. Start `worker`."
        )
    ((failed,),) = fetch("SELECT count(*) FROM procrastinate_jobs WHERE status = 'failed'")
    if failed:
        hint = f"{failed:,} job{pluralize(failed)} failed: the worker's own log has the reasons."
        yield CheckFinding("warning", "worker", hint)


def stores() -> Iterator[CheckFinding]:
    for store in registry.known_stores():
        health = registry.health(store)
        level: Level = "error" if health.state == "down" or health.fence == "off" else "warning"
        for problem in health.problems:
            yield CheckFinding(level, f"store-{store}", problem.sentence)
        for hint in health.hints:
            yield CheckFinding("warning", f"store-{store}", hint)


ARCHIVING = """
SELECT current_setting('archive_mode'), last_failed_time > coalesce(last_archived_time, '-infinity'), last_failed_time,
       EXISTS (SELECT FROM pg_stat_replication)
FROM pg_stat_archiver
"""


def backups() -> Iterator[CheckFinding]:
    """As far as the database itself can tell; dumps and snapshots of a disk it does not see."""
    ((mode, is_failing, failed_at, has_replica),) = fetch(ARCHIVING)
    if mode != "off" and is_failing:
        hint = f"PostgreSQL could not archive its log at {failed_at:%Y-%m-%d %H:%M} UTC; backups end there."
        yield CheckFinding("error", "backups", hint)
    elif mode == "off" and not has_replica:
        yield CheckFinding(
            "warning",
            "backups",
            "PostgreSQL archives no log and has no replica: what was written since the last dump would be lost.",
        )


def sign_in() -> Iterator[CheckFinding]:
    if not settings.SECOND_FACTOR_REQUIRED:
        hint = "A password alone opens everything: MEMADMIN_SECOND_FACTOR is optional. Leave it out."
        yield CheckFinding("error", "second-factor", hint)


OF_HTTPS = {"security.W004", "security.W008", "security.W012", "security.W016"}
"""Django's words for what one setting of ours does."""


def transport() -> Iterator[CheckFinding]:
    if settings.DEBUG:
        yield CheckFinding("error", "debug", "MEMADMIN_DEBUG is on: errors show settings and content. Turn it off.")
    if not settings.IS_HTTPS:
        hint = "MEMADMIN_HTTPS is off: sessions and what people read travel in the clear. Turn it on, behind TLS."
        yield CheckFinding("error", "https", hint)
    if settings.DATABASES["default"]["ENGINE"] == "memadmin.embedded":
        hint = (
            "The embedded PostgreSQL trusts every program of its system user: it is for trying out. Set DATABASE_URL."
        )
        yield CheckFinding("warning", "database", hint)


def django() -> Iterator[CheckFinding]:
    """What `check --deploy` says."""
    for message in checks.run_checks(include_deployment_checks=True, databases=["default"]):
        if message.is_silenced() or message.id in OF_HTTPS or message.id == "security.W018":
            continue
        level: Level = "error" if message.level >= checks.ERROR else "warning"
        yield CheckFinding(level, str(message.id), f"{message.msg} {message.hint or ''}".strip())
