"""People with roles, and their browsers."""

from __future__ import annotations

from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse


def person(*roles: str) -> User:
    """Somebody with these roles, named after them; with none, the outsider. The password is the name."""
    name = "-".join(roles) or "outsider"
    user = User.objects.create_user(username=name, password=name)
    user.groups.set([Group.objects.get(name=role) for role in roles])
    return user


def signed_in(user: User) -> Client:
    """A browser of theirs, signed in without being asked for anything."""
    client = Client()
    client.force_login(user)
    return client


def signed_in_by_password(user: User, **headers: str) -> Client:
    """The same through the page for it, as `person` has made them."""
    client = Client(headers=headers)
    answer = client.post(reverse("account_login"), {"username": user.username, "password": user.username})
    assert answer.status_code == 302
    return client
