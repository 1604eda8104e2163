"""A worker in a process that kills itself at one of its moments: before or after one of its statements or chunks."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db.backends.signals import connection_created
from procrastinate import PsycopgConnector
from procrastinate.contrib.django import app
from procrastinate.contrib.django.utils import connector_params

from tests.forks import use_database
from tests.runs import moving

ITS_END = -1
"""No moment: the worker does all jobs and ends."""


def main(database: str, data_dir: Path, moment: int) -> None:
    use_database(database, data_dir)
    moments = itertools.count(1)

    def pass_moment(place: str = "") -> None:
        if next(moments) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def execute(execute: Callable[..., Any], *statement: Any) -> Any:
        pass_moment()
        result = execute(*statement)
        pass_moment()
        return result

    def watch(connection: Any, **more: Any) -> None:
        connection.execute_wrappers.append(execute)

    connection_created.connect(watch)
    moving.come_to = pass_moment
    asyncio.run(work(pass_moment))


async def work(pass_moment: Callable[[], None]) -> None:
    """The jobs of the queue, as the worker does them, until there are none."""

    class Connector(PsycopgConnector):
        async def execute_query_async(self, query: Any, **arguments: Any) -> None:
            pass_moment()
            await super().execute_query_async(query, **arguments)
            pass_moment()

        async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
            pass_moment()
            row: dict[str, Any] = await super().execute_query_one_async(query, **arguments)
            pass_moment()
            return row

        async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
            pass_moment()
            rows: list[dict[str, Any]] = await super().execute_query_all_async(query, **arguments)
            pass_moment()
            return rows

    with app.replace_connector(Connector(kwargs=connector_params)) as working:
        async with working.open_async():
            await working.run_worker_async(install_signal_handlers=False, listen_notify=False, wait=False)
