"""`worker`: runs background jobs, and the audit log's sequencer beside them, until it is asked to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections
from procrastinate import PsycopgConnector
from procrastinate.contrib.django import app
from procrastinate.contrib.django.utils import connector_params
from procrastinate.exceptions import ConnectorException
from procrastinate.job_context import JobContext
from procrastinate.worker import Worker

from memadmin import audit
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.settings import with_our_options
from memadmin.web.health import reasons_not_to_serve

logger = logging.getLogger(__name__)

PAUSES_SECONDS = (1, 2, 4, 8, 15, 30)
"""How long it waits before it begins anew, each time in a row that it loses its database: a restart or a failover."""

STEADY_SECONDS = 60
"""After working so long it counts anew."""


class Command(BaseCommand):
    help = (
        "Runs background jobs. Waits a minute for a database that went away. Ends with 0 when asked to stop (SIGINT,"
        " SIGTERM), else with 1: restart it then."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.WORKER_DATABASE:
            connections.settings["default"].update(with_our_options(settings.WORKER_DATABASE))
        connections["default"].ensure_connection()
        for reason in reasons_not_to_serve():
            raise CommandError(reason)
        self.stdout.write("The worker runs.")
        self.stdout.flush()
        asyncio.run(work_until_asked_to_stop())


async def work_until_asked_to_stop() -> None:
    """Begins anew when the database was lost. Raises CommandError when that does not help."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        asked.set()
        # Asked twice, it ends at once.
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)

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
        logger.warning("The worker stopped (%s) and begins anew in %s seconds.", problem, pause)
        with suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), pause)
    if not asked.is_set():
        raise CommandError(f"The worker stopped without being asked to ({problem}); the log above says why.")


async def work_once(asked: asyncio.Event) -> str:
    """Works until it is asked to stop, or cannot go on for the reason that it returns."""
    # Asked anew for each connection, so that the embedded server is started again after it was killed.
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
                    # Cancelled, it lets running jobs end, up to the limit in PROCRASTINATE_WORKER_DEFAULTS.
                    working_on.cancel()
                    await asyncio.wait([working_on])
                if not working_on.cancelled():
                    working_on.result()
    except (ConnectorException, OperationalError, psycopg.OperationalError) as problem:
        return f"its database is away: {problem.__cause__ or problem}".strip()
    # procrastinate's worker ends in this way, without an error, when its listener could not connect again.
    return "it lost its database"


async def act_as_job(run: Callable[[], Awaitable[Any]], context: JobContext, worker: Worker) -> Any:
    """What a job changes is the job's doing, in the audit log too."""
    with audit.acting(audit.Actor("job", str(context.job.task_name).rpartition(".")[2])):
        return await run()


@asynccontextmanager
async def sequencing(work: asyncio.Task[None]) -> AsyncIterator[None]:
    """Sequences audit events in a thread until the work is over, and once more then, for what the last jobs did.

    Without its sequencer a worker ends: what it does could not be proved.
    """
    stop = threading.Event()
    sequencer = asyncio.create_task(asyncio.to_thread(Sequencer().run, stop))
    sequencer.add_done_callback(lambda ended: work.cancel())
    try:
        yield
    finally:
        stop.set()
        await sequencer
