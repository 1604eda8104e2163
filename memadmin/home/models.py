"""Counts per day, for charts and lines such as "since yesterday"; read notifications and saved views of a person."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class DayCount(models.Model):
    """Number of rows of one part of a series on one day. Numbers only: no ids and no names of people."""

    id = models.BigAutoField(primary_key=True)
    # Such as "sessions"; see `memadmin.home.day_counts`.
    series = models.CharField(max_length=40)
    # A day in UTC.
    day = models.DateField()
    # What of the series is counted: the key of a store, a kind of decision; empty if the series has only one part.
    part = models.CharField(max_length=40, default="", db_default="", blank=True)
    count = models.BigIntegerField()

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["series", "day", "part"], name="day_count_key"),
        ]

    def __str__(self) -> str:
        return f"{self.series} on {self.day}"


class CountedDay(models.Model):
    """Time at which a day of a series was counted last, so that a day without rows is not counted again and again."""

    id = models.BigAutoField(primary_key=True)
    series = models.CharField(max_length=40)
    day = models.DateField()
    counted_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [models.UniqueConstraint(fields=["series", "day"], name="counted_day_key")]

    def __str__(self) -> str:
        return f"{self.series} on {self.day}"


class ReadNotification(models.Model):
    """A notification that a person has marked as read. The notification itself is not stored: it is what waits now."""

    id = models.BigAutoField(primary_key=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    # SHA-256 of its title and address: one that says something new is unread again.
    digest = models.CharField(max_length=64)
    read_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [models.UniqueConstraint(fields=["person", "digest"], name="notification_read_once")]

    def __str__(self) -> str:
        return f"{self.digest[:8]} read by {self.person_id}"


class SavedView(models.Model):
    """Named filters, order and columns of a list, of one person."""

    LONGEST_QUERY = 1_000

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    # A name in `memadmin.home.saved_views.LISTS`.
    list_name = models.CharField(max_length=60)
    name = models.CharField(max_length=60)
    # A query string without typed words and without ids of people.
    query = models.CharField(max_length=LONGEST_QUERY, default="", db_default="", blank=True)
    # Whether the list opens with it.
    is_default = models.BooleanField(default=False, db_default=False)

    class Meta:
        default_permissions = ()
        ordering: ClassVar = ["name", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["owner", "list_name", "name"], name="view_name_once"),
            models.UniqueConstraint(
                fields=["owner", "list_name"], condition=Q(is_default=True), name="one_default_view"
            ),
        ]

    def __str__(self) -> str:
        return self.name
