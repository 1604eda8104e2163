"""`grant_role`: for an only administrator, whom no second one can confirm."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memadmin.accounts.role_requests.services import AccountRight, grant_as_operator

SUPERUSER = "superuser"


class Command(BaseCommand):
    help = (
        "Gives a user a role, a single permission or the rights of a superuser at once, without a second administrator."
        " Recorded in the audit log; compliance is notified."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="user name")
        parser.add_argument("role", help="name of a role, a permission such as sessions_app.raw_edit, or `superuser`")
        parser.add_argument("--reason", required=True, help="why it is given; stored with the event, can be erased")

    def handle(self, *args: Any, username: str, role: str, reason: str, **options: Any) -> None:
        person = User.objects.filter(username=username).first()
        if person is None:
            raise CommandError(f"There is no user {username}.")
        right = right_named(role)
        grant_as_operator(person, right, reason=reason)
        self.stdout.write(f"{username} now has: {right}.")


def right_named(name: str) -> AccountRight:
    """Raises CommandError for an unknown name."""
    if role := Group.objects.filter(name=name).first():
        return AccountRight(role=role)
    if name == SUPERUSER:
        return AccountRight()
    app_label, _, codename = name.partition(".")
    permissions = Permission.objects.select_related("content_type")
    permission = permissions.filter(content_type__app_label=app_label, codename=codename).first()
    if permission is None:
        raise CommandError(f"There is no role or permission {name}.")
    return AccountRight(permission=permission)
