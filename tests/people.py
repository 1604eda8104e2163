"""People with roles, and their browsers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.http import HttpRequest
from django.test import Client
from django.urls import reverse

from memadmin import audit
from memadmin.accounts.session_store import SessionStore
from memadmin.audit.log.proofs import cursor_for_proofs


def person(*roles: str) -> User:
    """Somebody with these roles, named after them; with none, the outsider. The password is the name."""
    name = "-".join(roles) or "outsider"
    user = User.objects.create_user(username=name, password=name)
    if roles:
        groups = Group.objects.filter(name__in=roles)
        assert len(groups) == len(roles), f"of {roles} there are {groups} only"
        user.groups.add(*groups)
    return user


def signed_in(user: User) -> Client:
    """A browser of theirs, signed in without being asked for anything.

    `Client.force_login` saves a session of nobody first, and then replaces it, with twice as many queries.
    """
    request = HttpRequest()
    request.session = SessionStore()
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    request.session.save()
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = request.session.session_key or ""
    return client


def signed_in_by_password(user: User, **headers: str) -> Client:
    """The same through the page for it, as `person` has made them."""
    client = Client(headers=headers)
    answer = client.post(reverse("account_login"), {"username": user.username, "password": user.username})
    assert answer.status_code == 302
    return client


@contextmanager
def proven(by: User | audit.Actor) -> Iterator[None]:
    """A block whose actor the database believes, as after an event that the application has recorded."""
    actor = by if isinstance(by, audit.Actor) else audit.person(by)
    with transaction.atomic():
        with cursor_for_proofs(connection) as cursor:
            cursor.execute("SELECT memadmin_acting(%s, %s, %s, %s)", actor.proven)
        yield
        forget_proof()


def forget_proof() -> None:
    """The next statements are as those of another connection, in which nobody has acted."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('memadmin.recorder', '', true), set_config('memadmin.actor', '', true)")
