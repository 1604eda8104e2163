"""Parts of the system with their state, each from a few rows of the database or a call of the operating system.

None contacts a store or an anchor, and one that fails is shown as unknown, beside the others.
"""

from __future__ import annotations

import logging
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from math import inf
from pathlib import Path
from typing import Any, Literal, TypeVar

import django
from django.conf import settings
from django.db import Error
from django.db.models import Count, Max
from django.utils.timezone import now
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob, ProcrastinatePeriodicDefer

from memadmin import __version__, replica
from memadmin.audit.transparency import status
from memadmin.deploy.checks.replica import problem_of
from memadmin.deploy.counts.requests import BOUNDS
from memadmin.deploy.counts.responses import responses
from memadmin.deploy.steps import fetch
from memadmin.deploy.system import figures
from memadmin.web import job_queue
from memadmin.web.health import reasons_not_to_serve
from sessions_app import registry
from sessions_app.models import SessionStore

Line = TypeVar("Line")

logger = logging.getLogger(__name__)

State = Literal["ok", "degraded", "down", "unknown"]

MOST_STORES = 20

FULL, ALMOST_FULL = 95, 85
"""Percent of a disk."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of a part: words, an instant, or a filled disk in percent."""

    name: str
    words: str = ""
    at: datetime | None = None
    percent: int | None = None
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class SystemPart:
    """A part of the system."""

    key: str
    title: str
    state: State
    facts: list[Fact] = field(default_factory=list)


def web() -> SystemPart:
    began = time.monotonic()
    fetch("SELECT 1")
    took = (time.monotonic() - began) * 1_000
    reasons, pages = reasons_not_to_serve(), responses()
    facts = [
        Fact("This process", f"{platform.node()}, process {os.getpid()}"),
        Fact("Running since", at=pages.began_at),
        Fact("Requests", f"{pages.answered:,}, {pages.per_minute(now()):.1f} a minute"),
        *([Fact("Response", response_in_words(pages.within))] if pages.within else []),
        Fact("Failed requests", f"{pages.failed:,}"),
        Fact("Database", f"answers in {took:.0f} ms"),
        *(Fact("Problem", reason, is_bad=True) for reason in reasons),
    ]
    return SystemPart("web", "Web", "down" if reasons else "ok", facts)


def response_in_words(bound: float) -> str:
    if bound == inf:
        return f"more than 5 % take over {BOUNDS[-1]} s"
    return "95 % within " + (f"{bound:g} s" if bound >= 1 else f"{bound * 1_000:g} ms")


def worker() -> SystemPart:
    workers, waiting = figures.workers(), figures.waiting_jobs()
    failed = job_queue.failed_jobs().count()
    processes = f"{workers.running} running" + (f", {workers.silent} silent" if workers.silent else "")
    facts = [
        Fact("Processes", processes, is_bad=not workers.running or bool(workers.silent)),
        *([Fact("Last heartbeat", at=workers.last_heartbeat)] if workers.last_heartbeat else []),
        Fact("Waiting jobs", f"{waiting.count:,}"),
        *([Fact("Oldest waits since", at=waiting.oldest_at)] if waiting.oldest_at else []),
        Fact("Failed, 24 h", f"{failed:,}", is_bad=bool(failed)),
    ]
    is_degraded = workers.silent or failed or job_queue.has_problems()
    state: State = "down" if not workers.running else "degraded" if is_degraded else "ok"
    return SystemPart("worker", "Worker", state, facts)


def sequencer() -> SystemPart:
    log = status.log_status()
    behind = log.oldest_unsequenced
    facts = [
        Fact("Events in the log", f"{log.size:,}"),
        Fact("Waiting events", f"{log.unsequenced:,}"),
        Fact("Behind", f"{behind.total_seconds():.0f} s" if behind else "nothing waits"),
        Fact("Last checkpoint", at=log.checkpoint.at)
        if log.checkpoint
        else Fact("Last checkpoint", "none", is_bad=True),
    ]
    verdict = status.latest_verdict()
    facts.append(Fact("Last verification", at=verdict.at) if verdict else Fact("Last verification", "none yet"))
    is_broken = bool(verdict and verdict.verdict == "broken")
    if is_broken:
        facts.append(Fact("Result", "broken", is_bad=True))
    return SystemPart("sequencer", "Sequencer", "down" if is_broken else "degraded" if log.problems else "ok", facts)


def anchors() -> SystemPart:
    places = status.log_status().places
    facts = []
    for place in places:
        facts.append(Fact(place.name, at=place.anchored_at) if place.anchored_at else Fact(place.name, "nothing yet"))
        if place.failure:
            facts.append(Fact("Last attempt failed", place.failure, is_bad=True))
    if not places:
        return SystemPart(
            "anchors", "Anchors", "degraded", [Fact("Places", "none: the log could be replaced unnoticed", is_bad=True)]
        )
    return SystemPart("anchors", "Anchors", "degraded" if any(place.failure for place in places) else "ok", facts)


def stores() -> SystemPart:
    """Results of the worker's last checks; no store is asked."""
    all_stores = list(SessionStore.objects.order_by("name")[: MOST_STORES + 1])
    facts, worst = [], "ok"
    for store in all_stores[:MOST_STORES]:
        health = registry.last_health(store)
        state = health.state if health else "not checked yet"
        words = {"ok": "healthy", "down": "unreachable"}.get(state, state)
        if health and health.answered_in_ms is not None:
            words += f", {health.answered_in_ms:.0f} ms"
        facts.append(Fact(store.name, words, is_bad=state not in ("ok", "not checked yet")))
        worst = max(worst, state if health else "ok", key=["ok", "degraded", "down"].index)
    if len(all_stores) > MOST_STORES:
        facts.append(Fact("Others", "on the page of stores"))
    return SystemPart("stores", "Stores", worst if facts else "ok", facts or [Fact("Stores", "none connected")])  # type: ignore[arg-type]


def disk() -> SystemPart:
    """Disks of this machine, and the size of the database."""
    facts, worst = [], 0
    for name, path in folders():
        usage = DiskUsage.of(path)
        percent = round(100 * usage.share)
        free = f"{percent} % of {file_size(usage.total)}, {file_size(usage.free)} free"
        facts.append(Fact(name, free, percent=percent, is_bad=percent >= ALMOST_FULL))
        worst = max(worst, percent)
    ((size,),) = fetch("SELECT pg_database_size(current_database())")
    facts.append(Fact("Database", file_size(size)))
    return SystemPart("disk", "Disk", "down" if worst >= FULL else "degraded" if worst >= ALMOST_FULL else "ok", facts)


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Bytes of a disk as `df` has them: without what is reserved for the system."""

    used: int
    free: int

    @classmethod
    def of(cls, path: Path) -> DiskUsage:
        usage = shutil.disk_usage(path)
        return cls(usage.used, usage.free)

    @property
    def total(self) -> int:
        return self.used + self.free or 1

    @property
    def share(self) -> float:
        """The used share, from 0 to 1."""
        return self.used / self.total


def folders() -> Iterator[tuple[str, Path]]:
    """Folders of this machine that memadmin writes to, one for each disk."""
    seen = set()
    for name, path in (
        ("Data", settings.DATA_DIR),
        ("Anchors", settings.ANCHOR_PATH),
        ("Ledger", settings.SUPPRESSION_LEDGER),
    ):
        there = next((each for each in (Path(path), *Path(path).parents) if each.is_dir()), None) if path else None
        if there and (device := there.stat().st_dev) not in seen:
            seen.add(device)
            yield name, there


def file_size(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"


def reading_replica() -> SystemPart:
    """The replica from which lists are read. Raises an Error while the primary is away."""
    position = replica.position_now()
    try:
        state = replica.state_at(position)
    except Error:
        facts = [Fact("Replica", "does not respond", is_bad=True), Fact("Lists and searches", "read from the primary")]
        return SystemPart("replica", "Replica", "down", facts)
    problem = problem_of(state).partition(". ")[0].removesuffix(".")
    facts = [
        Fact("Behind", f"{state.behind_bytes:,} bytes" if state.behind_bytes else "nothing"),
        *([Fact("Problem", problem, is_bad=True)] if problem else []),
        Fact("Lists and searches", "read from the primary" if problem else "read here while it has everything"),
    ]
    return SystemPart("replica", "Replica", "degraded" if problem else "ok", facts)


PARTS: tuple[tuple[str, str, Callable[[], SystemPart]], ...] = (
    ("web", "Web", web),
    ("worker", "Worker", worker),
    ("sequencer", "Sequencer", sequencer),
    ("stores", "Stores", stores),
    ("anchors", "Anchors", anchors),
    ("disk", "Disk", disk),
)


def parts() -> list[SystemPart]:
    """All parts. About thirty queries of a few rows each, however much is stored; one for each store."""
    own = (("replica", "Replica", reading_replica),) if replica.is_configured() else ()
    return [answered(key, title, look) for key, title, look in PARTS + own]


def answered(key: str, title: str, look: Callable[[], SystemPart]) -> SystemPart:
    """A part, or that it is unknown: one that fails must not hide the others."""
    try:
        return look()
    except (Error, OSError) as problem:
        logger.warning("The state of %s is unknown: %s", title, problem)
        return SystemPart(key, title, "unknown", [Fact("Problem", str(problem).splitlines()[0], is_bad=True)])


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A periodic job: when it was last queued, when it is next, and how many failed within a day."""

    name: str
    about: str
    schedule: str
    last_at: datetime | None
    next_at: datetime
    failed: int


def known_jobs() -> list[ScheduledJob]:
    """The scheduled jobs; none if they cannot be read."""
    return lines_of("scheduled jobs", scheduled_jobs)


def known_versions() -> list[Fact]:
    """The versions; none if they cannot be read."""
    return lines_of("versions", versions)


def lines_of(title: str, look: Callable[[], list[Line]]) -> list[Line]:
    """Lines of a section, or none: one that fails must not hide the others."""
    try:
        return look()
    except (Error, OSError) as problem:
        logger.warning("The %s are unknown: %s", title, problem)
        return []


def scheduled_jobs() -> list[ScheduledJob]:
    """The periodic jobs of the worker, those with failures first. Two queries."""
    queued = dict(
        ProcrastinatePeriodicDefer.objects.values("task_name")
        .annotate(at=Max("defer_timestamp"))
        .values_list("task_name", "at")
    )
    failed = dict(
        ProcrastinateJob.objects.filter(pk__in=job_queue.failed_jobs().values("pk"))
        .values("task_name")
        .annotate(count=Count("pk"))
        .values_list("task_name", "count")
    )
    jobs = []
    for task in app.periodic_registry.periodic_tasks.values():
        name, last = task.task.name, queued.get(task.task.name)
        jobs.append(
            ScheduledJob(
                name=name.rpartition(".")[2].replace("_", " ").capitalize(),
                about=(task.task.func.__doc__ or "").partition(".")[0],
                schedule=schedule_in_words(task.cron),
                last_at=datetime.fromtimestamp(last, tz=UTC) if last else None,
                next_at=datetime.fromtimestamp(task.croniter.get_next(ret_type=float, start_time=time.time()), tz=UTC),
                failed=failed.get(name, 0),
            )
        )
    return sorted(jobs, key=lambda job: (-job.failed, job.name))


def schedule_in_words(cron: str) -> str:
    """A schedule of the forms that our jobs have: "each 5 s", "each minute", "hourly at :17", "daily at 03:23 UTC"."""
    match cron.split():
        case ["*", "*", "*", "*", "*", seconds]:
            return f"each {seconds.removeprefix('*/')} s"
        case ["*", "*", "*", "*", "*"]:
            return "each minute"
        case [minutes, "*", "*", "*", "*"] if minutes.startswith("*/"):
            return f"each {minutes.removeprefix('*/')} min"
        case [minute, "*", "*", "*", "*"]:
            return f"hourly at :{minute:0>2}"
        case [minute, hour, "*", "*", "*"]:
            return f"daily at {hour:0>2}:{minute:0>2} UTC"
    return cron


def versions() -> list[Fact]:
    """Versions of what runs here. Three queries."""
    missing = [reason for reason in reasons_not_to_serve() if reason.startswith("Migrations")]
    ((server,),) = fetch("SHOW server_version")
    vector: list[tuple[Any, ...]] = fetch("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    return [
        Fact("memadmin", __version__),
        Fact("Migrations", missing[0] if missing else "all applied", is_bad=bool(missing)),
        Fact("PostgreSQL", server),
        Fact("pgvector", vector[0][0] if vector else "not installed"),
        Fact("Python", platform.python_version()),
        Fact("Django", django.get_version()),
        Fact("Agents SDK", installed("openai-agents")),
        Fact("psycopg", installed("psycopg")),
    ]


def installed(package: str) -> str:
    try:
        return version_of(package)
    except PackageNotFoundError:
        return "not installed here"
