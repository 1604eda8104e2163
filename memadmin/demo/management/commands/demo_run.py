"""`demo_run`: asks one demo bot once more, and shows the memories it used."""

from __future__ import annotations

import asyncio
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memadmin.demo import ask_again, preparing
from memories_app.models import Memory, RecalledMemory
from sessions_app.models import SessionRecord, SessionStore


class Command(BaseCommand):
    help = (
        "Asks one of the demo's bots a question in a new session, and shows which memories it was given. Approve one"
        " of its proposals under /reviews/ and ask again to see the difference. The demo may be running."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("bot", choices=sorted(ask_again.QUESTIONS), help="the bot to ask")
        parser.add_argument("--says", default="", help="question for the bot; default: its usual question")

    def handle(self, *args: Any, bot: str, says: str, **options: Any) -> None:
        # Before the bot: its SDK would end in errors of several libraries where there is no database, or no demo.
        if not SessionStore.objects.filter(name="main").exists():
            raise CommandError("This database has no demo yet. Run `memadmin demo`.")
        answer = asyncio.run(ask_again.ask_again(bot, said=says, role=preparing.role_of("agents")))
        record = SessionRecord.objects.get(store__name="main", session_id=answer.session_id)
        recalled = RecalledMemory.objects.filter(recall__record_id=record.pk).order_by("place")
        self.stdout.write(f"Question: {says or ask_again.QUESTIONS[bot].said}")
        for statement, version in recalled.values_list("memory__statement", "version"):
            self.stdout.write(f"Memory:   {statement} (version {version})")
        if not recalled:
            waiting = Memory.objects.awaiting_review().about(record.subject).count() if record.subject else 0
            self.stdout.write(f"Memory:   none; {waiting} proposals about this person wait under /reviews/.")
        self.stdout.write(f"Answer:   {answer.text}")
        self.stdout.write(f"See http://127.0.0.1:{settings.PORT}{record.get_absolute_url()}")
