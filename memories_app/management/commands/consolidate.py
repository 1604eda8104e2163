"""`consolidate`: expires, revalidates and deduplicates memories."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from memories_app.dedup import consolidation


class Command(BaseCommand):
    help = (
        "Ends memories that have expired, and uncertain ones that only a rule approved and no run has used; returns"
        " memories that are due for revalidation to the review queue; marks proposals that duplicate or contradict"
        " another memory; and proposes to end the weaker of two approved memories that do. The worker does this once"
        " an hour. After an interruption the next run continues. Run it with the worker's database address."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--preview", action="store_true", help="report what would be done, without changing anything"
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, preview: bool, as_json: bool, **options: Any) -> None:
        done = consolidation.preview() if preview else consolidation.consolidate()
        if as_json:
            self.stdout.write(json.dumps({"is_preview": preview, **asdict(done)}, indent=2))
            return
        would = "would be " if preview else ""
        self.stdout.write(f"{would}ended because they expired: {done.over:,}")
        self.stdout.write(f"{would}ended because no run used them: {done.unused:,}")
        self.stdout.write(f"{would}returned to the review queue: {done.to_revalidate:,}")
        self.stdout.write(f"{would}newly marked as duplicate or contradicting: {done.marked:,}")
        self.stdout.write(f"{would}proposed to end as a duplicate or a contradiction: {done.to_end:,}")
