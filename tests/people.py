"""People with roles."""

from __future__ import annotations

from django.contrib.auth.models import Group, User


def person(*roles: str) -> User:
    """Somebody with these roles, named after them; with none, the outsider. The password is the name."""
    name = "-".join(roles) or "outsider"
    user = User.objects.create_user(username=name, password=name)
    user.groups.set([Group.objects.get(name=role) for role in roles])
    return user
