"""Clears up what agents know."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from memories_app.dedup import consolidation


class Command(BaseCommand):
    help = (
        "Ends memories whose time is over, and uncertain ones that only a rule approved and no run was ever told;"
        " sends those back to the review queue that are to be looked at again; marks proposals that say what another"
        " memory says, or the opposite, and proposes to end the weaker of two approved ones that do. The worker does it"
        " once an hour. What is stopped goes on with the next call. Run it with the database address of the worker."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--preview", action="store_true", help="only say what would be done")
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object, for scripts")

    def handle(self, *, preview: bool, as_json: bool, **options: Any) -> None:
        done = consolidation.preview() if preview else consolidation.consolidate()
        if as_json:
            self.stdout.write(json.dumps({"is_preview": preview, **asdict(done)}, indent=2))
            return
        would = "would be " if preview else ""
        self.stdout.write(f"{would}ended because their time is over: {done.over:,}")
        self.stdout.write(f"{would}ended because no run was ever told of them: {done.unused:,}")
        self.stdout.write(f"{would}sent back to the review queue: {done.to_revalidate:,}")
        self.stdout.write(f"{would}marked anew as alike or contradicting: {done.marked:,}")
        self.stdout.write(f"{would}proposed to end, because another one says the same or the opposite: {done.to_end:,}")
