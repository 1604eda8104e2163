"""Entries of the suppression ledger that this database has carried out."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from memadmin import audit


class SuppressionEntry(models.Model):
    """An entry of the ledger that this database knows: it began after the entry, or repeated its erasure."""

    number = models.BigIntegerField(primary_key=True)
    # The request in the database that wrote the entry.
    request_id = models.UUIDField()
    entered_at = models.DateTimeField()

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        default_permissions = ()
        constraints: ClassVar = [models.CheckConstraint(condition=Q(number__gt=0), name="suppression_number")]

    def __str__(self) -> str:
        return f"suppression {self.number}"
