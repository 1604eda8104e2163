"""`serve`: the web server."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from memadmin.web.serving import reason_not_to_listen, web_command


class Command(BaseCommand):
    help = (
        "Serves the console until it is stopped (SIGINT, SIGTERM); requests that are running are finished first."
        " Collects the static files at the start. Encrypted connections end at a proxy before it: see docs/install.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: %(default)s)")
        parser.add_argument("--port", type=int, default=8000, help="default: %(default)s")
        for option, default, meaning in (
            ("--workers", 1, "processes; one per core"),
            ("--threads", 4, "requests at once per worker"),
            ("--recycle-hours", 24, "the age at which a worker is replaced"),
        ):
            parser.add_argument(
                option, type=at_least_one, default=default, help=f"{meaning} (default: %(default)s)", metavar="NUMBER"
            )

    def handle(
        self, *args: Any, host: str, port: int, workers: int, threads: int, recycle_hours: int, **options: Any
    ) -> None:
        if reason := reason_not_to_listen(host, port):
            raise CommandError(f"Cannot listen at {host}, port {port}: {reason}.")
        try:
            call_command("collectstatic", interactive=False, verbosity=0)
        except OSError as problem:
            raise CommandError(
                f"The static files cannot be written to {settings.STATIC_ROOT} ({problem.strerror})."
                " Let MEMADMIN_DATA_DIR name a folder that this user may write to."
            ) from problem
        self.stdout.write(f"The web server listens at {host}, port {port}, with {workers} workers.")
        self.stdout.flush()
        recycle = timedelta(hours=recycle_hours)
        command = web_command(host=host, port=port, workers=workers, threads=threads, recycle=recycle)
        # It takes the place of this process, so signals to this process reach it.
        os.execv(command[0], command)


def at_least_one(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text} is not a whole number from 1")
    return int(text)
