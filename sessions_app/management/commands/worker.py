"""`worker`: runs background jobs, and the audit log's sequencer beside them, until it is asked to stop."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from procrastinate import PsycopgConnector
from procrastinate.contrib.django import app
from procrastinate.contrib.django.utils import connector_params
from procrastinate.exceptions import ConnectorException
from procrastinate.job_context import JobContext
from procrastinate.worker import Worker

from memadmin import audit
from memadmin.audit.sequencer import Sequencer
from memadmin.settings import with_our_options
from memadmin.web.health import reasons_not_to_serve


class Command(BaseCommand):
    help = "Runs background jobs. Ends with 0 when asked to stop (SIGINT, SIGTERM), else with 1: restart it then."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.WORKER_DATABASE:
            connections.settings["default"].update(with_our_options(settings.WORKER_DATABASE))
        connections["default"].ensure_connection()
        for reason in reasons_not_to_serve():
            raise CommandError(reason)
        self.stdout.write("The worker runs.")
        self.stdout.flush()
        try:
            was_asked = asyncio.run(work_until_asked_to_stop())
        except ConnectorException as problem:
            raise CommandError(f"The worker lost its database: {problem.__cause__ or problem}") from problem
        if not was_asked:
            raise CommandError("The worker stopped without being asked to; the log above says why.")


async def work_until_asked_to_stop() -> bool:
    """Whether somebody asked. procrastinate's own runner ends in the same way when its connection is lost."""
    loop, was_asked = asyncio.get_running_loop(), False
    # Asked anew for each connection, so that the embedded server is started again after it was killed.
    connector = PsycopgConnector(kwargs=connector_params)
    with app.replace_connector(connector) as working:
        async with working.open_async():
            work = asyncio.create_task(
                working.run_worker_async(install_signal_handlers=False, worker_middleware=[act_as_job])
            )

            def stop() -> None:
                nonlocal was_asked
                was_asked = True
                # Asked twice, it ends at once.
                loop.remove_signal_handler(signal.SIGINT)
                loop.remove_signal_handler(signal.SIGTERM)
                work.cancel()

            loop.add_signal_handler(signal.SIGINT, stop)
            loop.add_signal_handler(signal.SIGTERM, stop)
            # Cancelled, it lets running jobs end, up to the limit in PROCRASTINATE_WORKER_DEFAULTS.
            async with sequencing(work):
                await asyncio.wait([work])
            if not work.cancelled():
                work.result()
    return was_asked


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
