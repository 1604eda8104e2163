"""`worker`: runs background jobs and the audit log's sequencer until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections
from opentelemetry.trace import SpanKind
from procrastinate import PsycopgConnector
from procrastinate.contrib.django import app
from procrastinate.contrib.django.utils import connector_params
from procrastinate.exceptions import ConnectorException
from procrastinate.job_context import JobContext
from procrastinate.worker import Worker

from memadmin import audit, tracing
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.log_context import LogContext, within
from memadmin.process_metrics import counting_job
from memadmin.runs import engine
from memadmin.settings import with_our_options
from memadmin.web.health import reasons_not_to_serve
from memadmin.web.metrics_port import serve_metrics
from memadmin.web.poolers import is_pooled

logger = logging.getLogger(__name__)

PAUSES_SECONDS = (1, 2, 4, 8, 15, 30)
"""Pauses before each restart in a row after a lost database connection: a restart or a failover."""

STEADY_SECONDS = 60
"""After this time of work the restarts are counted from zero."""


class Command(BaseCommand):
    help = (
        "Runs background jobs and the audit log's sequencer. Reconnects for about a minute when the database"
        " connection is lost. Exits with 0 when stopped (SIGINT, SIGTERM), otherwise with 1: then restart it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--metrics-port",
            type=int,
            metavar="PORT",
            help="answer Prometheus at this port with MEMADMIN_METRICS_TOKEN; each worker of a machine needs its own",
        )
        parser.add_argument(
            "--metrics-host", default="127.0.0.1", metavar="HOST", help="the address for it (default: %(default)s)"
        )

    def handle(self, *args: Any, metrics_port: int | None, metrics_host: str, **options: Any) -> None:
        if settings.WORKER_DATABASE:
            connections.settings["default"].update(with_our_options(settings.WORKER_DATABASE))
        connections["default"].ensure_connection()
        for reason in reasons_not_to_serve("worker"):
            raise CommandError(reason)
        if is_pooled(connections["default"]):
            logger.warning(
                "The worker reaches the database through a pooler, which loses notifications: jobs start seconds late."
                " Set MEMADMIN_WORKER_DATABASE_URL to an address without it."
            )
        if metrics_port is not None:
            report_metrics(metrics_host, metrics_port)
        tracing.start("memadmin-worker")
        self.stdout.write("The worker is running.")
        self.stdout.flush()
        asyncio.run(work_until_asked_to_stop())


def report_metrics(host: str, port: int) -> None:
    """Answers Prometheus until the process ends. Raises CommandError."""
    if not settings.METRICS_TOKEN:
        logger.warning("The worker reports no metrics, because MEMADMIN_METRICS_TOKEN is not set.")
        return
    try:
        serve_metrics(host, port, settings.METRICS_TOKEN)
    except (OSError, OverflowError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise CommandError(f"Cannot report metrics at {host}, port {port}: {reason}.") from problem


async def work_until_asked_to_stop() -> None:
    """Works, and restarts after a lost database connection. Raises CommandError when that does not help."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        asked.set()
        engine.stopping.set()
        # A second signal ends it at once.
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)

    engine.stopping.clear()
    loop.add_signal_handler(signal.SIGINT, stop)
    loop.add_signal_handler(signal.SIGTERM, stop)
    pauses = iter(PAUSES_SECONDS)
    while True:
        began = time.monotonic()
        problem = await work_once(asked)
        if time.monotonic() - began > STEADY_SECONDS:
            pauses = iter(PAUSES_SECONDS)
        pause = None if asked.is_set() else next(pauses, None)
        if pause is None:
            break
        logger.warning("The worker stopped (%s) and restarts in %s seconds.", problem, pause)
        with suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), pause)
    if not asked.is_set():
        raise CommandError(f"The worker stopped unexpectedly ({problem}); see the log above.")


async def work_once(asked: asyncio.Event) -> str:
    """Works until it is stopped, or returns the reason why it cannot continue."""
    # Parameters are read again for each connection, so that the embedded server is restarted after it was killed.
    connector = PsycopgConnector(kwargs=connector_params)
    try:
        with app.replace_connector(connector) as working:
            async with working.open_async():
                working_on = asyncio.create_task(
                    working.run_worker_async(install_signal_handlers=False, worker_middleware=[act_as_job])
                )
                asking = asyncio.create_task(asked.wait())
                async with sequencing(working_on):
                    await asyncio.wait([working_on, asking], return_when=asyncio.FIRST_COMPLETED)
                    asking.cancel()
                    # When cancelled, it lets running jobs end, up to the limit in PROCRASTINATE_WORKER_DEFAULTS.
                    working_on.cancel()
                    await asyncio.wait([working_on])
                if not working_on.cancelled():
                    working_on.result()
    except (ConnectorException, OperationalError, psycopg.OperationalError) as problem:
        return f"the database is not responding: {problem.__cause__ or problem}".strip()
    # procrastinate's worker ends without an error when its listener could not reconnect.
    return "the database connection was lost"


async def act_as_job(run: Callable[[], Awaitable[Any]], context: JobContext, worker: Worker) -> Any:
    """Makes the job the actor of what it changes, in the audit log too, and names it in log lines."""
    name = str(context.job.task_name).rpartition(".")[2]
    named: dict[str, str | int] = {"memadmin.job": name, "memadmin.job_id": context.job.id or 0}
    with (
        audit.acting(audit.Actor("job", name)),
        within(LogContext(job=name, job_id=context.job.id)),
        tracing.span(f"job {name}", named, kind=SpanKind.CONSUMER),
        counting_job(name),
    ):
        return await run()


@asynccontextmanager
async def sequencing(work: asyncio.Task[None]) -> AsyncIterator[None]:
    """Sequences audit events in a thread until the work is over, and once more after that for the last jobs.

    A worker without its sequencer ends: its changes could not be proved.
    """
    stop = threading.Event()
    sequencer = asyncio.create_task(asyncio.to_thread(Sequencer().run, stop))
    sequencer.add_done_callback(lambda ended: work.cancel())
    try:
        yield
    finally:
        stop.set()
        await sequencer
