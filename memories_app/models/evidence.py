"""Evidence of memories."""

from __future__ import annotations

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual

from memadmin import audit
from memadmin.audit.log.triggers import Calling
from memadmin.clamped_times import is_representable
from memories_app.models.erased_sources import not_of_erased
from memories_app.models.memories import LONGEST_QUOTE, Memory
from memories_app.tool_provenance import LONGEST_TOOL


class Evidence(models.Model):
    """An item of a session from which a memory was derived, with a quote.

    The quote is a copy, removed with its item; its hash stays, so that other texts can be excluded as its source.
    """

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, db_index=False, related_name="evidence")
    version = models.PositiveIntegerField(db_default=1, default=1)
    # Without foreign keys, like all rows that refer to sessions; see sessions_app.models.
    record_id = models.UUIDField(null=True)
    session_id = models.CharField(db_default="", default="", blank=True)
    item_id = models.CharField(max_length=200, db_default="", default="", blank=True)
    speaker = models.CharField(max_length=40, db_default="", default="", blank=True)
    quote = models.TextField(db_default="", default="", blank=True)
    quote_hash = models.CharField(max_length=64, db_default="", default="", editable=False)
    said_at = models.DateTimeField(null=True)
    # Tools: the one whose output it is, or those called in the run before an assistant's message; null if unknown.
    tools = ArrayField(models.CharField(max_length=LONGEST_TOOL), null=True, blank=True)
    # Whether the console found the quote in a user's item of the session; null if it found no such item yet.
    said_by_user = models.BooleanField(null=True, editable=False)
    signal = models.ForeignKey("Signal", null=True, on_delete=models.SET_NULL, related_name="+")
    # Time at which its item was found missing; the quote is empty then.
    gone_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "evidence"
        indexes: ClassVar = [
            models.Index("memory", "version", name="evidence_of_memory"),
            models.Index("record_id", "item_id", name="evidence_of_item"),
            GinIndex(fields=["tools"], name="evidence_by_tool"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=LessThanOrEqual(Length("quote"), LONGEST_QUOTE), name="quote_is_short"),
            models.CheckConstraint(condition=Q(gone_at__isnull=True) | Q(quote=""), name="gone_evidence_has_no_quote"),
            models.CheckConstraint(condition=is_representable("said_at"), name="evidence_time_is_readable"),
        ]
        triggers: ClassVar = [
            Calling("hash_quote", "memadmin_hash_quote()", before="INSERT", level=pgtrigger.Row),
            *not_of_erased("memadmin_refuse_erased_evidence()", "memory_id", "record_id"),
            *audit.govern(
                "evidence",
                columns=[
                    *("memory", "version", "record_id", "session_id", "item_id", "speaker", "quote", "tools", "signal"),
                    "said_by_user",
                ],
                hidden=["session_id", "quote"],
                agents_add=True,
            ),
        ]

    def __str__(self) -> str:
        return f"evidence {self.pk}"
