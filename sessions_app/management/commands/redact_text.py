"""`redact_text`: removes a text from one session, or from all sessions of a subject."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import replace
from getpass import getpass
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.template.defaultfilters import pluralize

from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.commands import two_people
from memadmin.runs import engine
from sessions_app.audit_events import RedactReason
from sessions_app.models import Redaction, SessionRecord, Subject, SubjectKind
from sessions_app.redaction import InvalidText, TextToRedact, services
from sessions_app.redaction.outcome import LeftReason, RedactionOutcome
from sessions_app.redaction.previews import RedactionPreview, find_places, preview_redaction
from sessions_app.services.subjects import UnknownKey, known_subject, merge_target


class Command(BaseCommand):
    help = (
        "Permanently removes a text from all items of a session, or of all sessions of a subject. The text is"
        " prompted for, or read from standard input; it is not an argument, because arguments are visible to other"
        " users and stay in shell histories. Run it with --preview first. Run it with the worker's database address."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument(
            "--session", type=UUID, metavar="UUID", help="UUID of the session, as in the address of its timeline"
        )
        where.add_argument("--subject", metavar="KEY", help="id of the subject in the host application")
        parser.add_argument(
            "--kind", choices=SubjectKind.values, default=SubjectKind.USER.value, help="kind of the subject"
        )
        parser.add_argument("--reason", choices=RedactReason.values, help="reason code, recorded with the redaction")
        parser.add_argument("--because", default="", metavar="WORDS", help="reason in words; stored beside the log")
        parser.add_argument("--take-out-compactions", action="store_true", help="also remove later compaction blocks")
        parser.add_argument("--requested-by", metavar="NAME", help="who requests a redaction of many places")
        parser.add_argument("--approved-by", metavar="NAME", help="who approves it, another person")
        parser.add_argument("--preview", action="store_true", help="report the affected items, without changing them")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, session: UUID | None, subject: str | None, kind: str, as_json: bool, **options: Any) -> None:
        record, about = self.place(session, subject, kind)
        if not options["preview"] and not options["reason"]:
            raise CommandError("Give a --reason, or use --preview.")
        text = getpass("The text: ") if sys.stdin.isatty() else sys.stdin.read()
        try:
            target_text = TextToRedact.parse(text)
        except InvalidText as problem:
            raise CommandError(str(problem)) from problem
        if options["preview"]:
            self.write_preview(self.preview(record, about, target_text), as_json=as_json)
            return
        asked = self.ask(record, about, target_text, options)
        run = engine.carry_out(asked.run)
        outcome = RedactionOutcome.of(run)
        self.write_report(outcome, as_json=as_json, redaction=str(asked.pk))
        if run.state != run.State.COMPLETE:
            self.stderr.write(f"{run} is {run.get_state_display()}. {run.reason}".strip())
            sys.exit(1)

    def ask(
        self, record: SessionRecord | None, about: Subject | None, target_text: TextToRedact, options: dict[str, Any]
    ) -> Redaction:
        """The requested redaction, approved where a second person has to. Raises CommandError."""
        takes = options["take_out_compactions"]
        counted = find_places(records_of(record, about), target_text, by=None, granted=(), seconds=None)
        request = services.RedactionRequest(
            target_text.text,
            reason=RedactReason(options["reason"]),
            explanation=options["because"],
            takes_compactions=takes,
            by=None,
        )
        if not services.needs_second_person(counted, takes_compactions=takes):
            return requested(record, about, request)
        places = counted.size(takes_compactions=takes)
        if not (options["requested_by"] and options["approved_by"]):
            raise CommandError(
                f"{places:,} places are more than one person may redact: give --requested-by and --approved-by."
                " Nothing was changed."
            )
        by, second = two_people(options, services.REDACT, services.REDACT)
        typed = services.confirmation(places)
        with transaction.atomic():
            asked = requested(record, about, replace(request, by=by, preview=counted, typed=typed))
            shown = approvals.shown_now(asked)
            return services.approve_redaction(asked, by=second, typed=typed, shown=shown)

    def place(
        self, session: UUID | None, subject: str | None, kind: str
    ) -> tuple[SessionRecord | None, Subject | None]:
        if session:
            record = SessionRecord.objects.on_record().with_names().filter(pk=session).first()
            if record is None:
                raise CommandError("There is no session with this UUID, or it was erased.")
            return record, None
        try:
            return None, merge_target(known_subject(kind, subject or ""))
        except UnknownKey as problem:
            raise CommandError(str(problem)) from problem

    def preview(
        self, record: SessionRecord | None, about: Subject | None, target_text: TextToRedact
    ) -> RedactionPreview:
        records = records_of(record, about)
        return preview_redaction(records, target_text, by=None, granted=(), subject=about, seconds=None)

    def write_preview(self, preview: RedactionPreview, *, as_json: bool) -> None:
        counts = {
            "sessions": preview.found_sessions,
            "items": preview.items,
            "places": preview.places,
            "kept": preview.kept,
            "compactions": preview.compactions,
            "left": [{"reason": why, "store": store, "count": count} for (why, store), count in preview.cannot.items()],
        }
        if as_json:
            self.stdout.write(json.dumps(counts, indent=2))
            return
        self.stdout.write(
            f"{in_words(preview.places, preview.items)} of {preview.found_sessions:,} sessions would be removed."
        )
        if preview.compactions:
            self.stdout.write(f"{preview.compactions:,} later compaction blocks may also contain it.")
        for left in preview.left:
            self.stdout.write(f"{left.sentence} ({left.store}: {left.count:,})")

    def write_report(self, outcome: RedactionOutcome, *, as_json: bool, redaction: str) -> None:
        if as_json:
            left = [{"reason": why, "store": store, "count": n} for (why, store), n in sorted(outcome.reasons.items())]
            counts = {name: value for name, value in vars(outcome).items() if name != "reasons"}
            self.stdout.write(json.dumps({"redaction": redaction, **counts, "left": left}, indent=2))
            return
        sessions = f"{outcome.changed:,} of {outcome.sessions:,} session{pluralize(outcome.sessions)}"
        self.stdout.write(f"{in_words(outcome.places, outcome.items)} of {sessions} removed.")
        if outcome.taken_out:
            self.stdout.write(f"{outcome.taken_out:,} compaction block{pluralize(outcome.taken_out)} also removed.")
        self.stdout.write(f"{outcome.replayed:,} of {outcome.changed:,} histories can still be replayed.")
        for (why, store), count in sorted(outcome.reasons.items()):
            self.stdout.write(f"{LeftReason(why).label} ({store or 'all'}: {count:,})")


def records_of(record: SessionRecord | None, about: Subject | None) -> Iterable[SessionRecord]:
    if record:
        return [record]
    assert about
    return SessionRecord.objects.on_record().about(about).with_names().iterator(chunk_size=100)


def requested(record: SessionRecord | None, about: Subject | None, request: services.RedactionRequest) -> Redaction:
    if record:
        return services.redact_in_session(record, request)
    assert about
    return services.redact_about(about, request)


def in_words(places: int, items: int) -> str:
    return f"{places:,} occurrence{pluralize(places)} in {items:,} item{pluralize(items)}"
