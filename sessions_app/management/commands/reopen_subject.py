"""`reopen_subject`: allows a new start under an id whose data was erased."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memadmin.accounts.commands import acting_person
from sessions_app.models import SubjectKind
from sessions_app.services.erasing_subjects import reopen_key
from sessions_app.services.subjects import SubjectError

REOPEN = "sessions_app.reopen_subject"


class Command(BaseCommand):
    help = (
        "Allows a new start under an ID whose data was erased, for somebody who came back: a new subject gets the ID."
        " What was erased stays erased, and so do the erased session IDs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("key", metavar="KEY", help="ID of the subject in the host application")
        parser.add_argument("--kind", choices=SubjectKind.values, default="user", help="kind of the subject")
        parser.add_argument("--by", metavar="NAME", help="the acting person, who may reopen subjects")

    def handle(self, *, key: str, kind: str, by: str | None, **options: Any) -> None:
        try:
            subject = reopen_key(SubjectKind(kind), key, by=acting_person(by, REOPEN))
        except SubjectError as problem:
            raise CommandError(str(problem)) from problem
        # Without the ID: output may be logged.
        self.stdout.write(f"A new start is possible: {subject}, epoch {subject.epoch}.")
