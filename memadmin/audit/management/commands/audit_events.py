"""`audit_events`: the reference of audit event types."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memadmin.audit.log import types
from memadmin.audit.log.event_reference import document


class Command(BaseCommand):
    help = "Prints every audit event type with its fields."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--write", action="store_true", help="write it to docs/audit-events.md of the checkout instead"
        )

    def handle(self, *, write: bool, **options: Any) -> None:
        page = document(types.declared())
        if write:
            Path(settings.CHECKOUT_DIR, "docs", "audit-events.md").write_text(page)
        else:
            self.stdout.write(page, ending="")
