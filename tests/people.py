"""People with roles."""

from __future__ import annotations

from django.contrib.auth.models import Group, Permission, User

from memadmin.accounts.roles import ROLES, grant_permissions


def person(*roles: str) -> User:
    """Somebody with these roles, named after them; with none, the outsider. The password is the name."""
    if not Group.objects.exists():
        # A test with real transactions empties all tables after it, and takes the roles along.
        grant_permissions(ROLES, Group, Permission)
    name = "-".join(roles) or "outsider"
    user = User.objects.create_user(username=name, password=name)
    user.groups.set([Group.objects.get(name=role) for role in roles])
    return user
