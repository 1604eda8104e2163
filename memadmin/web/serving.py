"""The command line of the web server, for `memadmin serve` and the demo."""

from __future__ import annotations

import socket
import sys
from datetime import timedelta

STOP_WITHIN = timedelta(seconds=30)
"""Requests that run when the server is asked to stop may take this long."""


def web_command(
    *, port: int, host: str = "127.0.0.1", workers: int = 1, threads: int = 4, recycle: timedelta | None = None
) -> list[str]:
    """Arguments of a process that serves the console until SIGTERM or SIGINT.

    Its `workers` are child processes that are started again when they end, for instance for lack of memory; each
    answers `threads` requests at once, and is replaced after `recycle`.
    """
    command = [
        *(sys.executable, "-m", "granian", "memadmin.wsgi:application", "--interface", "wsgi"),
        *("--host", host, "--port", str(port), "--log-level", "warning"),
        *("--workers", str(workers), "--blocking-threads", str(threads), "--respawn-failed-workers"),
        *("--workers-kill-timeout", str(int(STOP_WITHIN.total_seconds()))),
    ]
    if recycle is not None:
        command += ["--workers-lifetime", str(int(recycle.total_seconds()))]
    return command


def reason_not_to_listen(host: str, port: int) -> str | None:
    """Why nothing can listen at that address, in the words of the operating system."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As the web server does: closing connections of a previous server do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as problem:
            return problem.strerror or str(problem)
        except OverflowError:
            return "a port is a number up to 65535"
    return None
