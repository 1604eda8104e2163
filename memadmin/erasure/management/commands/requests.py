"""`requests`: the requests of people, for scripts and for the night shift."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from memadmin.erasure.models import SubjectRequest


class Command(BaseCommand):
    help = "Lists the open requests of people by due date: erasure, access and restriction."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--all", action="store_true", dest="with_closed", help="also the last 100 closed requests")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, with_closed: bool, as_json: bool, **_: Any) -> None:
        requests = list(SubjectRequest.objects.open())
        if with_closed:
            requests += SubjectRequest.objects.closed()[:100]
        rows = [row_of(request) for request in requests]
        if as_json:
            self.stdout.write(json.dumps({"requests": rows}, indent=2))
            return
        for row in rows:
            self.stdout.write(f"{row['request']}  {row['kind']}  {row['state']}  due {row['due_on']}")
        if not rows:
            self.stdout.write("No request is open.")


def row_of(request: SubjectRequest) -> dict[str, Any]:
    """One request for scripts, without personal data: output may be logged."""
    return {
        "request": str(request),
        "id": str(request.id),
        "kind": request.kind,
        "state": request.get_state_display(),
        "subject": str(request.subject_id),
        "received_on": request.received_on.isoformat(),
        "due_on": request.due_on.isoformat(),
        "reason": request.run.reason if request.run else "",
    }
