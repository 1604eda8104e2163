"""`sequence_audit`: sequences events into the audit log's tree, as the worker does beside its jobs."""

from __future__ import annotations

import json
import signal
import threading
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memadmin.audit.transparency.sequencer import POLL_SECONDS, STOPS, Sequencer


class Command(BaseCommand):
    help = (
        "Sequences events into the audit log's tree and signs checkpoints, until it is stopped. The worker does the"
        " same. Several may run; one of them works at a time."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="sequence and sign the waiting events, then exit")
        parser.add_argument("--json", action="store_true", dest="as_json", help="with --once: print one JSON object")

    def handle(self, *, once: bool, as_json: bool, **options: Any) -> None:
        if once:
            self.sequence_what_is_there(as_json=as_json)
            return
        stop = threading.Event()
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, lambda number, frame: stop.set())
        self.stdout.write("The sequencer is running.")
        self.stdout.flush()
        Sequencer().run(stop)

    def sequence_what_is_there(self, *, as_json: bool) -> None:
        sequencer, taken = Sequencer(), 0
        while True:
            try:
                batch = sequencer.step(is_last=True)
            except STOPS as problem:
                raise CommandError(str(problem)) from problem
            if batch is None:
                time.sleep(POLL_SECONDS)
                continue
            taken += len(batch.events)
            if not batch.is_full:
                break
        signed = batch.checkpoint.size if batch.checkpoint else None
        if as_json:
            self.stdout.write(json.dumps({"sequenced": taken, "size": batch.size, "checkpoint": signed}))
        else:
            self.stdout.write(f"Sequenced {taken:,} events; the log has {batch.size:,}.")
