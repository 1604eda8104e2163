"""That reviewers were told how their queue stands, once a day and way; and who of them does not want to be."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models.functions import Now


class Digest(models.Model):
    """One day's digest by one way, or how often it was tried."""

    class Way(models.TextChoices):
        MAIL = "mail", "e-mail"
        WEBHOOK = "webhook", "webhook"

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    # Of UTC.
    on = models.DateField()
    way = models.CharField(max_length=8, choices=Way)
    tries = models.PositiveIntegerField(db_default=0, default=0)
    try_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["on", "way"], name="digest_once_a_day")]

    def __str__(self) -> str:
        return f"digest of {self.on} by {self.way}"


class NoDigest(models.Model):
    """A reviewer who gets no mail about the queue. A wish of one's own, as a saved view is; no event of the log."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="+"
    )

    def __str__(self) -> str:
        return f"no digest for {self.person_id}"
