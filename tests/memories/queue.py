"""What waits in the review queue, and the people who decide about it; made by the verbs themselves."""

from __future__ import annotations

from itertools import count
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import F

from memadmin.accounts.approvals.services import digest_of
from memories_app.learning.proposing import propose_memory
from memories_app.models import Memory
from memories_app.review.decisions import approve_memory, shown_of
from sessions_app.models import Subject
from tests.builders import make_subject

numbers = count(1)


def a_reviewer(name: str = "", *, role: str = "reviewer", email: str = "") -> User:
    """Somebody of their own with a role; the password is the name."""
    name = name or f"reviewer-{next(numbers)}"
    user = User.objects.create_user(username=name, password=name, email=email)
    user.groups.add(Group.objects.get(name=role))
    return user


def propose(statement: str = "", *, subject: Subject | None = None, shared: bool = False, **values: Any) -> Memory:
    """A proposal about a subject, a new one where none is given, or about nobody; not looked through for risks yet."""
    statement = statement or f"Prefers tea number {next(numbers)}."
    if not shared and not values.get("replaces"):
        subject = subject or make_subject()
    return propose_memory(statement, **{"kind": "preference", "subject": subject} | values)


def screened(memory: Memory, *flags: str) -> Memory:
    """The memory as the job leaves it that looks for risks."""
    Memory.objects.filter(pk=memory.pk).update(screened_hash=F("content_hash"), risk_flags=list(flags))
    memory.refresh_from_db()
    return memory


def waiting(statement: str = "", *, flags: tuple[str, ...] = (), **values: Any) -> Memory:
    """A proposal that can be decided about."""
    return screened(propose(statement, **values), *flags)


def approve_as_shown(memory: Memory, *, by: User) -> Memory:
    """Approves the memory as it is now: a first or only approval, or the second one."""
    memory = Memory.objects.get(pk=memory.pk)
    read, shown = memory.content_hash, digest_of(shown_of(memory))
    return approve_memory(memory, by=by, shown=shown, content_hash=read, base_version=memory.base_version)


def approved(statement: str = "", *, by: User | None = None, second: User | None = None, **values: Any) -> Memory:
    """A memory that agents recall: approved by somebody, and by a second person where it takes two."""
    memory = waiting(statement, **values)
    first = by or a_reviewer()
    people = [first, second or a_reviewer()] if memory.needs_two else [first]
    for person in people:
        approve_as_shown(memory, by=person)
    memory.refresh_from_db()
    return memory
