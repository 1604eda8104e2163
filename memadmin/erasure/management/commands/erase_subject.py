"""`erase_subject`: the erasure of a person from the command line, by the same services as the pages."""

from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from memadmin.accounts.approvals.services import ApprovalError, shown_now
from memadmin.accounts.commands import two_people
from memadmin.erasure import closing, services
from memadmin.erasure.exceptions import Left, OutOfReach
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.permissions import APPROVE, HANDLE
from memadmin.erasure.preview import Preview, preview_erasure
from memadmin.erasure.scope import scope_of
from memadmin.runs import engine
from sessions_app.models import Subject, SubjectKind
from sessions_app.services.subjects import SubjectError, known_subject

State = SubjectRequest.State

RECEIPT_SECONDS = 60
"""Time for which the command waits for the sequencer of the log, which a worker runs."""


class Command(BaseCommand):
    help = (
        "Erases a person, project or tenant everywhere. --preview counts and changes nothing. An erasure needs two"
        " people: --requested-by handles requests, --approved-by is another one who approves them. Stopped at any"
        " moment, the same command continues."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("key", help="ID of the subject in the host application")
        parser.add_argument("--kind", choices=SubjectKind.values, default="user", help="kind of the subject")
        parser.add_argument("--preview", action="store_true", help="count what would be erased, and change nothing")
        parser.add_argument("--requested-by", metavar="NAME", help="who requests the erasure")
        parser.add_argument("--approved-by", metavar="NAME", help="who approves it, another person")
        parser.add_argument("--reason", choices=SubjectRequest.Ground.values, help="ground, GDPR article 17 (1)")
        parser.add_argument("--receipt", metavar="FILE", type=Path, help="where to write the receipt")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, key: str, kind: str, preview: bool, as_json: bool, **given: Any) -> None:
        try:
            subject = known_subject(kind, key)
        except SubjectError as problem:
            raise CommandError(f"{problem} Nothing was changed.") from problem
        if preview:
            counted = preview_erasure(scope_of(subject))
            write_report(self.stdout, preview_report(str(subject.pk), counted), as_json=as_json)
            return
        requested_by, approved_by = two_people(given, HANDLE, APPROVE)
        if not given["reason"]:
            raise CommandError("An erasure needs a --reason. Nothing was changed.")
        refuse_unwritable(given["receipt"])
        try:
            refuse_before(subject, requested_by, approved_by)
            request = approved(subject, key, given["reason"], requested_by, approved_by)
        except (ApprovalError, services.RequestError) as problem:
            raise CommandError(str(problem)) from problem
        self.carry_out(request)
        request.refresh_from_db()
        write_report(self.stdout, self.outcome(request, given["receipt"]), as_json=as_json)
        if request.state not in (State.SCANNING, State.COMPLETE, State.COMPLETE_WITH_EXCEPTIONS):
            raise CommandError(f"{request} is not finished: {request.run.reason if request.run else ''}".strip())

    def carry_out(self, request: SubjectRequest) -> None:
        """Until it is scanned and has its receipt, or cannot continue now."""
        give_up_at = time.monotonic() + RECEIPT_SECONDS
        assert request.run is not None, "it is approved"
        run = engine.carry_out(request.run)
        while not run.is_finished and run.cursor.get("event") and time.monotonic() < give_up_at:
            request.refresh_from_db(fields=["receipt"])
            if request.receipt:
                return
            time.sleep(engine.WATCH_SECONDS)
            run = engine.carry_out(run)

    def outcome(self, request: SubjectRequest, file: Path | None) -> dict[str, Any]:
        path = ""
        if request.receipt:
            target = file or Path(f"{request}-receipt.json")
            target.write_text(request.receipt, encoding="utf-8")
            path = str(target)
        is_erased = request.state in (State.SCANNING, State.COMPLETE, State.COMPLETE_WITH_EXCEPTIONS)
        return {
            "request": str(request),
            "outcome": closing.outcome_of(request).value if is_erased else request.state,
            "erased": {step.holder: step.erased for step in ErasureStep.objects.filter(request=request)},
            "exceptions": [
                f"{row['place']}: {row['count']:,} rows. {Left(row['code']).label}"
                for row in closing.exceptions_of(request)
            ],
            "receipt": path,
        }


def write_report(out: OutputWrapper, report: dict[str, Any], *, as_json: bool) -> None:
    """Prints the values by name, and those within them, or one JSON object."""
    if as_json:
        out.write(json.dumps(report, indent=2))
        return
    for name, value in report.items():
        if isinstance(value, dict):
            for key, count in value.items():
                out.write(f"{name}  {key}: {count:,}")
        else:
            for sentence in value if isinstance(value, list) else [value]:
                out.write(f"{name}  {sentence}")


def preview_report(subject: str, preview: Preview) -> dict[str, Any]:
    return {
        "subject": subject,
        "counts": {holder.holder: holder.counted.rows for holder in preview.holders},
        "held": {holder.holder: holder.counted.held for holder in preview.holders if holder.counted.held},
        "out_of_reach": [OutOfReach(row["code"]).label for row in preview.out_of_reach],
        "problems": [
            f"{holder.title}: {holder.counted.problem}" for holder in preview.holders if holder.counted.problem
        ],
    }


def refuse_unwritable(receipt: Path | None) -> None:
    """Raises CommandError if the receipt could not be written afterwards."""
    folder = receipt.parent if receipt else Path()
    if (receipt and receipt.is_dir()) or not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"{receipt or folder.absolute()} cannot be written. Nothing was changed.")


def refuse_before(subject: Subject, *people: User) -> None:
    """Raises what would refuse the case when it is open already. Raises RequestError."""
    request = SubjectRequest(kind=SubjectRequest.Kind.ERASURE, subject=subject)
    for person in people:
        services.refuse_own(request, person)
    services.refuse_held(request)


def approved(subject: Any, key: str, ground: str, requested_by: User, approved_by: User) -> SubjectRequest:
    """The open erasure of the subject, brought to its approval. Raises RequestError."""
    request, _ = services.open_request(
        SubjectRequest.Kind.ERASURE,
        subject,
        by=requested_by,
        channel=SubjectRequest.Channel.COMMAND,
        ground=ground,
    )
    if request.state == State.RECEIVED:
        request = services.check_identity(request, note="", by=requested_by)
    if request.state == State.CHECKED:
        services.make_preview(request, by=requested_by)
        request = services.request_approval(request, by=requested_by)
    if request.state == State.AWAITING:
        shown = shown_now(request)
        request = services.approve_request(request, by=approved_by, typed=key, shown=shown, window=timedelta(0))
    return request
