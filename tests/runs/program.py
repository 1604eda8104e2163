"""A worker for one run, as a program: `python -m tests.runs.program DATABASE RUN [VARIANT ...]`.

Prints each place that it comes to and waits for a line on its standard input before it continues. The variants are
ways to break the engine, or to shorten its lease.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta

import django
from django.conf import settings


def main(database: str, run_id: str, *variants: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    settings.DATABASES["default"]["NAME"] = database
    # What was committed must survive that PostgreSQL is killed.
    settings.DATABASES["default"]["OPTIONS"].pop("options")
    django.setup()

    from memadmin.runs import engine
    from memadmin.runs.models import Run
    from tests.runs import moving

    def wait_at(place: str) -> None:
        print(place, flush=True)
        sys.stdin.readline()

    def locked_without_a_look(lease: engine.Lease) -> Run:
        return Run.objects.get(pk=lease.run.pk)

    moving.come_to = wait_at
    if "short_lease" in variants:
        engine.LEASE = timedelta(seconds=2)
    if "without_token" in variants:
        setattr(engine.Lease, "_locked", locked_without_a_look)  # noqa: B010  # a broken variant
    if "without_timeout" in variants:
        setattr(engine.Lease, "_limit_idle_time", lambda lease: None)  # noqa: B010  # a broken variant
    run = engine.carry_on(Run.objects.get(pk=run_id))
    print("end", run.state, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
