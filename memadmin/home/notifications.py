"""Notifications of the bell: what waits for a person, from the sources of the home page, read or unread."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from memadmin.home.models import ReadNotification
from memadmin.home.parts import Waiting, what_waits


@dataclass(frozen=True, slots=True)
class Notification:
    entry: Waiting
    is_read: bool


@dataclass(frozen=True, slots=True)
class Notifications:
    """All for one person, the unread first and of these the most urgent."""

    shown: Sequence[Notification]
    failed: Sequence[str]
    """Titles of sources that failed."""

    @property
    def unread(self) -> int:
        return sum(not each.is_read for each in self.shown)


def notifications_of(person: User) -> Notifications:
    """Two queries, and those of the sources."""
    entries, failed = what_waits(person)
    read = set(ReadNotification.objects.filter(person=person).values_list("digest", flat=True))
    shown = [Notification(entry, digest_of(entry) in read) for entry in entries]
    return Notifications(sorted(shown, key=lambda each: each.is_read), failed)


def mark_all_read(person: User) -> None:
    """Marks what waits now, and forgets what no longer waits, unless a source failed and it may still wait."""
    entries, failed = what_waits(person)
    digests = {digest_of(entry) for entry in entries}
    with transaction.atomic():
        read = ReadNotification.objects.filter(person=person)
        if not failed:
            read.exclude(digest__in=digests).delete()
        read.bulk_create(
            [ReadNotification(person=person, digest=digest) for digest in sorted(digests)], ignore_conflicts=True
        )


def digest_of(entry: Waiting) -> str:
    return hashlib.sha256(f"{entry.url}\0{entry.title}".encode()).hexdigest()
