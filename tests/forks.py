"""Processes that are forked from one which has imported Django, and need none of the seconds that this takes."""

from __future__ import annotations

import os
from multiprocessing import get_context
from pathlib import Path

import django
from django.conf import settings

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()

PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.forks"])


def use_database(name: str, data_dir: Path) -> None:
    """For the forked process: a database of an embedded server, on which commits are durable."""
    settings.DATABASES["default"] |= {"NAME": name, "DATA_DIR": data_dir}
    settings.DATABASES["default"]["OPTIONS"].pop("options", None)
