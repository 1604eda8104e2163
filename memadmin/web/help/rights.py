"""Permissions with the roles of this database that have them, for the help pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import Permission


@dataclass(frozen=True, slots=True)
class Right:
    """A permission in words, and the roles that have it."""

    label: str
    roles: list[str]


def rights_of(permissions: Sequence[str]) -> list[Right]:
    """The given permissions ("app.codename"), in their order. One query."""
    labels: dict[str, str] = {}
    roles: dict[str, list[str]] = {}
    found = Permission.objects.filter(
        content_type__app_label__in={permission.split(".")[0] for permission in permissions},
        codename__in=[permission.split(".")[1] for permission in permissions],
    ).order_by("group__name", "pk")
    for app, codename, name, role in found.values_list("content_type__app_label", "codename", "name", "group__name"):
        permission = f"{app}.{codename}"
        labels[permission] = as_action(name)
        roles.setdefault(permission, []).extend([role] if role else [])
    return [Right(labels[permission], roles[permission]) for permission in permissions if permission in labels]


def as_action(name: str) -> str:
    """The name of a permission as an action: "Can read the audit log" is "Read the audit log"."""
    action = name.removeprefix("Can ")
    return action[:1].upper() + action[1:]
