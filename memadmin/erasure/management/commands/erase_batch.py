"""`erase_batch`: erasures from a CSV file from the command line, by the same services as the pages."""

from __future__ import annotations

import hashlib
import time
from argparse import ArgumentParser
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils.timezone import now

from memadmin.accounts.approvals.services import ApprovalError, shown_now
from memadmin.accounts.commands import two_people
from memadmin.erasure.batches import outcomes, services
from memadmin.erasure.batches.checking import check_lines
from memadmin.erasure.batches.outcomes import LineOutcome
from memadmin.erasure.batches.parsing import MOST_BYTES, BadFile, parse
from memadmin.erasure.management.commands.erase_subject import RECEIPT_SECONDS, write_report
from memadmin.erasure.models import BatchLine, RequestBatch, SubjectRequest
from memadmin.erasure.permissions import APPROVE, HANDLE
from memadmin.erasure.services import RequestError
from memadmin.runs import engine
from memadmin.runs.models import Run
from memadmin.runs.progress_bar import progress_bar

State = RequestBatch.State


STANDING = (
    *(LineOutcome.TO_SCAN, LineOutcome.WAITING, LineOutcome.HELD),
    *(LineOutcome.FAILED, LineOutcome.RUNNING, LineOutcome.TO_DO),
)
"""Outcomes of lines with which the command has not reached its end."""


class Command(BaseCommand):
    help = (
        "Erases every person, project or tenant of a CSV file with the columns key, kind and note. Needs two people:"
        " --requested-by handles requests, --approved-by is another one who approves them. Lines with a problem are"
        " reported and left out. Stopped at any moment, the same command with the same file continues."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="CSV file, at most 5,000 lines")
        parser.add_argument("--requested-by", metavar="NAME", help="who requests the erasures")
        parser.add_argument("--approved-by", metavar="NAME", help="who approves them, another person")
        parser.add_argument(
            "--reason", choices=SubjectRequest.Ground.values, required=True, help="ground, GDPR article 17 (1)"
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, file: Path, reason: str, as_json: bool, **given: Any) -> None:
        requested_by, approved_by = two_people(given, HANDLE, APPROVE)
        try:
            with file.open("rb") as opened:
                data = opened.read(MOST_BYTES + 1)
        except OSError as problem:
            raise CommandError(f"{file} cannot be read: {problem.strerror}. Nothing was changed.") from problem
        try:
            batch = approved(data, file.name, reason, requested_by, approved_by)
        except BadFile as problem:
            raise CommandError(f"{problem} Nothing was changed.") from problem
        except (ApprovalError, RequestError) as problem:
            raise CommandError(str(problem)) from problem
        self.carry_out(batch)
        batch = RequestBatch.objects.select_related("run").get(pk=batch.pk)
        counts = outcomes.counts(batch)
        write_report(self.stdout, report_of(batch, counts), as_json=as_json)
        if unfinished := outcomes.in_words(counts, STANDING):
            raise CommandError(f"Batch {batch} is not finished: {unfinished}. The same command continues.")

    def carry_out(self, batch: RequestBatch) -> None:
        """Until each case is scanned and has its receipt, or cannot continue now."""
        give_up_at = time.monotonic() + RECEIPT_SECONDS
        assert batch.run is not None, "it is approved"
        run = batch.run
        with progress_bar("Erasing", " subjects") as watch:
            while True:
                run = engine.carry_out(run, watch=watch)
                at_log = Run.objects.filter(
                    state=Run.State.WAITING,
                    cursor__has_key="event",
                    subject_request__receipt="",
                    subject_request__batch_lines__batch=batch,
                )
                if run.is_finished or not at_log.exists() or time.monotonic() > give_up_at:
                    return
                if run.state == Run.State.WAITING and run.retry_at and run.retry_at - now() > timedelta(minutes=1):
                    return
                time.sleep(engine.WATCH_SECONDS)
                run.refresh_from_db()


def approved(data: bytes, name: str, ground: str, requested_by: User, approved_by: User) -> RequestBatch:
    """The batch of this file, brought to its approval: the open one, or a new one. Raises BadFile and RequestError."""
    batch = services.open_batch_of(hashlib.sha256(data).hexdigest())
    if batch is None:
        if all(line.problem for line in check_lines(parse(data))):
            raise services.NothingAccepted
        batch = services.upload(data, name=name, ground=ground, note="", by=requested_by)
    if batch.state == State.UPLOADED:
        if batch.previewed_at is None and batch.preview_run is not None:
            engine.carry_out(batch.preview_run)
            batch.refresh_from_db()
        batch = services.request_approval(batch, by=requested_by)
    if batch.state == State.AWAITING:
        count = services.accepted_lines(batch).count()
        typed = services.confirmation(count)
        batch = services.approve(batch, by=approved_by, typed=typed, shown=shown_now(batch), window=timedelta(0))
    return batch


def report_of(batch: RequestBatch, counts: Counter[str]) -> dict[str, Any]:
    """Numbers and codes, without keys: the output of a command ends up in logs."""
    return {
        "batch": str(batch),
        "state": batch.state,
        "subjects": {LineOutcome(outcome).value: count for outcome, count in sorted(counts.items())},
        "broken": [
            f"line {line.number}: {BatchLine.Problem(line.problem).label}" for line in services.broken_lines(batch)
        ],
    }
