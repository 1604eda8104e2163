"""Folder in which the processes of one web server keep their counts, so that each of them can report the sum of all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil
from django.core.exceptions import ImproperlyConfigured

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Read by prometheus_client when it is imported."""


def share_counts(folder: Path) -> None:
    """Makes this process count in files under `folder`. Call it before prometheus_client is imported.

    The processes of a web server have the same parent, whose id names their folder. Counts of processes that were
    replaced are merged there, because a sum must not shrink (`processes.py`); folders of earlier web servers are
    removed. Raises ImproperlyConfigured.
    """
    own = folder / str(os.getppid())
    try:
        own.mkdir(parents=True, exist_ok=True)
        for other in folder.iterdir():
            if other.name.isdecimal() and not psutil.pid_exists(int(other.name)):
                shutil.rmtree(other, ignore_errors=True)
    except OSError as problem:
        raise ImproperlyConfigured(
            f"MEMADMIN_METRICS_DIR: {folder} cannot be written to: {problem.strerror}. Name a writable folder."
        ) from problem
    os.environ[VARIABLE] = str(own)
