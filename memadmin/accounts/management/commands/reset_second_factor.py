"""`reset_second_factor`: for an only administrator who has lost the second factor."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memadmin.accounts import user_actions
from memadmin.counting import counted


class Command(BaseCommand):
    help = (
        "Removes a user's second factors and recovery codes and ends the user's sessions, so that the user can set"
        " up new ones."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="user name")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        person = User.objects.filter(username=username).first()
        if person is None:
            raise CommandError(f"There is no user {username}.")
        count = user_actions.reset_second_factor(person, by=None)
        self.stdout.write(f"{username} had {counted(count, 'second factors')}; all were removed.")
