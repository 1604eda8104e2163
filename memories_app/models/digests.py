"""Daily digests of the review queue by channel, and reviewers who unsubscribed."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models.functions import Now

from memadmin import audit


class Digest(models.Model):
    """One day's digest on one channel: sent, or the number of attempts."""

    class Way(models.TextChoices):
        MAIL = "mail", "e-mail"
        WEBHOOK = "webhook", "webhook"

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    # A day in UTC.
    on = models.DateField()
    way = models.CharField(max_length=8, choices=Way)
    tries = models.PositiveIntegerField(db_default=0, default=0)
    try_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        constraints: ClassVar = [models.UniqueConstraint(fields=["on", "way"], name="digest_once_a_day")]

    def __str__(self) -> str:
        return f"digest of {self.on} by {self.way}"


class NoDigest(models.Model):
    """A reviewer who unsubscribed from mail about the queue. A personal setting, without an audit event."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="+"
    )

    class Meta:
        triggers: ClassVar = [audit.by_proven()]

    def __str__(self) -> str:
        return f"no digest for {self.person_id}"
