"""`distil`: proposes memories from sessions."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize
from django.utils.timezone import now

from memories_app.learning.distillation import Distilled, awaiting_distillation, distil_session, with_unread_notes
from memories_app.learning.distillers.types import OmissionReason
from memories_app.models import Distillation
from sessions_app.models import SessionRecord
from sessions_app.stores.base import StoreUnavailable

AT_ALL_TIMES = datetime(1970, 1, 1, tzinfo=UTC)


class Command(BaseCommand):
    help = (
        "Reads sessions and proposes memories from them: the named sessions from their start, or else the new items"
        " of all sessions that were written to since the last distillation and are quiet now. MEMADMIN_DISTILLER"
        " selects the distiller. Reviewers decide on the proposals. Run it with the worker's database address."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "session",
            nargs="*",
            type=UUID,
            metavar="SESSION_UUID",
            help="UUID of a session, as in the address of its timeline",
        )
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="print one JSON object per line, for scripts"
        )

    def handle(self, *, session: Sequence[UUID], as_json: bool, **options: Any) -> None:
        if settings.DISTILLER == "none":
            raise CommandError("MEMADMIN_DISTILLER is none: distillation is disabled.")
        failed = 0
        for record in self.records(session):
            try:
                distilled = distil_session(record, from_start=bool(session))
            except StoreUnavailable as away:
                self.stderr.write(f"{record.pk}: {away}")
                failed += 1
                continue
            self.print_report(record, distilled, as_json=as_json)
            failed += distilled.row.outcome not in (Distillation.Outcome.DONE, Distillation.Outcome.REFUSED)
        if failed:
            sys.exit(1)

    def records(self, named: Sequence[UUID]) -> Iterable[SessionRecord]:
        if not named:
            quiet_since = now() - settings.DISTIL_AFTER
            reasons = (
                awaiting_distillation(quiet_since=quiet_since, active_since=AT_ALL_TIMES),
                with_unread_notes(quiet_since=quiet_since, given_since=AT_ALL_TIMES),
            )
            # One after the other: what was read for the first reason has no unread notes any more.
            return chain.from_iterable(
                waiting.select_related("store", "subject").iterator(chunk_size=500) for waiting in reasons
            )
        known = SessionRecord.objects.on_record().select_related("store", "subject").in_bulk(list(named))
        if missing := [str(one) for one in named if one not in known]:
            raise CommandError(f"There is no session {', '.join(missing)}, or it was erased.")
        return [known[one] for one in dict.fromkeys(named)]

    def print_report(self, record: SessionRecord, distilled: Distilled, *, as_json: bool) -> None:
        row = distilled.row
        if as_json:
            report = {
                "session": str(record.pk),
                "distiller": row.distiller,
                "outcome": row.outcome,
                "proposed": row.proposal_count,
                "known": distilled.known,
                "left_out": distilled.left_out,
                "reasons": row.left_out,
                "model_calls": row.model_calls,
                "input_tokens": row.input_tokens,
                "output_tokens": row.output_tokens,
            }
            self.stdout.write(json.dumps(report))
            return
        words = f"{record.pk}: {row.get_outcome_display()}"
        if row.outcome == Distillation.Outcome.DONE:
            words += f", {row.proposal_count} proposed, {distilled.known} known, {distilled.left_out} left out"
            if row.left_out:
                reasons = (f"{count}: {OmissionReason(reason).label}" for reason, count in row.left_out.items())
                words += f" ({'; '.join(reasons)})"
        if row.model_calls:
            words += (
                f"; {row.model_calls} call{pluralize(row.model_calls)},"
                f" {row.input_tokens:,} tokens in, {row.output_tokens:,} out"
            )
        self.stdout.write(words)
