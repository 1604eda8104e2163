"""`hold`: legal holds from the command line, by the same services as the pages."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils.timezone import now

from memadmin.accounts.approvals.services import ApprovalError, shown_now
from memadmin.accounts.commands import acting_person
from memadmin.retention.holds import services
from memadmin.retention.holds.extensions import deletions_of
from memadmin.retention.holds.forms import LABEL, REVIEW_AFTER, SESSION, target_of
from memadmin.retention.models import LegalHold
from sessions_app.models import SubjectKind

PLACE = "retention.place_hold"


class Command(BaseCommand):
    help = (
        "Lists, places and releases legal holds: data that must not be deleted. `place` and `request-release` need a"
        " person who may place holds, `release` another one who may release them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["list", "place", "request-release", "release"], help="what to do")
        parser.add_argument("number", nargs="?", type=int, help="number of a hold, such as 31 of H-31")
        parser.add_argument("--subject", metavar="KEY", help="place: ID of a subject in the host application")
        parser.add_argument("--kind", choices=SubjectKind.values, default="user", help="place: kind of the subject")
        parser.add_argument("--session", metavar="ID", help="place: ID or UUID of a session")
        parser.add_argument("--label", help="place: label of sessions")
        parser.add_argument("--reason", default="", help="place, request-release: why; stored with the hold")
        parser.add_argument("--review-on", type=date.fromisoformat, metavar="DATE", help="place: default in 90 days")
        parser.add_argument("--owner", metavar="NAME", help="place: who reviews it; default: who places it")
        parser.add_argument("--by", metavar="NAME", help="the acting person")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, action: str, as_json: bool, **given: Any) -> None:
        try:
            holds = {
                "list": self.listed,
                "place": self.placed,
                "request-release": self.release_requested,
                "release": self.released,
            }[action](given)
        except (services.HoldError, ApprovalError, ValidationError) as problem:
            raise CommandError(" ".join(getattr(problem, "messages", [str(problem)]))) from problem
        rows: list[dict[str, Any]] = [row_of(hold) for hold in holds]
        if action == "place":
            rows[0]["already_deleted"] = deletions_of(holds[0])
        if as_json:
            self.stdout.write(json.dumps({"holds": rows}, indent=2))
            return
        for row in rows:
            self.stdout.write(f"{row['hold']}  {row['state']}  {row['covers']}  review {row['review_on']}")
            for sentence in row.get("already_deleted", ()):
                self.stdout.write(sentence)
        if not rows:
            self.stdout.write("No hold is in force.")

    def listed(self, given: dict[str, Any]) -> list[LegalHold]:
        return list(LegalHold.objects.in_force().with_names())

    def placed(self, given: dict[str, Any]) -> list[LegalHold]:
        scopes = {given["kind"]: given["subject"], SESSION: given["session"], LABEL: given["label"]}
        chosen = [(covers, value) for covers, value in scopes.items() if value]
        if len(chosen) != 1 or not given["reason"]:
            raise CommandError("Give one of --subject, --session and --label, and a --reason. Nothing was changed.")
        by = acting_person(given["by"], PLACE)
        owner = acting_person(given["owner"], PLACE, "--owner") if given["owner"] else by
        review_on = given["review_on"] or now().date() + REVIEW_AFTER
        hold = services.place_hold(
            target_of(*chosen[0]), reason=given["reason"], owner=owner, review_on=review_on, by=by
        )
        return [hold]

    def release_requested(self, given: dict[str, Any]) -> list[LegalHold]:
        if not given["reason"]:
            raise CommandError("A release needs a --reason. Nothing was changed.")
        by = acting_person(given["by"], PLACE)
        return [services.request_release(numbered(given["number"]), reason=given["reason"], by=by)]

    def released(self, given: dict[str, Any]) -> list[LegalHold]:
        by = acting_person(given["by"], services.RELEASE)
        hold = numbered(given["number"])
        return [services.release_hold(hold, by=by, shown=shown_now(hold))]


def numbered(number: int | None) -> LegalHold:
    hold = LegalHold.objects.filter(number=number).first() if number is not None else None
    if hold is None:
        raise CommandError(f"There is no hold H-{number}." if number is not None else "Give the number of a hold.")
    return hold


def row_of(hold: LegalHold) -> dict[str, str]:
    """One hold for scripts, without its reason: output may be logged."""
    state = "released" if hold.is_released else "release requested" if hold.awaits_release else "in force"
    covers = f"subject {hold.subject_id}" if hold.subject_id else f"session {hold.record_id}"
    return {
        "hold": str(hold),
        "state": state,
        "covers": f"label {hold.label}" if hold.label else covers,
        "review_on": hold.review_on.isoformat(),
    }
