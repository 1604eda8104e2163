"""Counts per day, for charts and lines such as "since yesterday"."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class DayCount(models.Model):
    """How many rows of one part of a series belong to one day. Numbers only: no ids and no names of people."""

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
    """When a day of a series was counted last, so that a day without any row is not counted again and again."""

    id = models.BigAutoField(primary_key=True)
    series = models.CharField(max_length=40)
    day = models.DateField()
    counted_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [models.UniqueConstraint(fields=["series", "day"], name="counted_day_key")]

    def __str__(self) -> str:
        return f"{self.series} on {self.day}"
