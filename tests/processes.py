"""Processes of other programs, as tests end them and look whether they are gone."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import psutil


def kill(pid: int) -> None:
    """Returns when it is dead, or a zombie that its parent has not buried yet."""
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)


def kill_with_children(pid: int) -> None:
    """As `kill`, also the processes that it has started: what they were asked for before is not done afterwards."""
    children = psutil.Process(pid).children(recursive=True)
    kill(pid)
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    psutil.wait_procs(children)


def still_running(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended; a zombie has."""
    return [each for each in processes if not has_ended(each)]


def has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def called(process: psutil.Process) -> list[str]:
    """By which command and arguments; nothing of one that has ended meanwhile."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
