"""Recalls: memories used in runs."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.functions import RandomUUID, TransactionNow
from django.db import models
from django.db.models import F

from memadmin import audit
from memories_app.models.erased_sources import not_of_erased
from memories_app.models.memories import Memory
from sessions_app.models import Subject


class Recall(models.Model):
    """Memories selected for one run. The query is not stored: it is in the session."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    subject = models.ForeignKey(
        Subject, null=True, blank=True, on_delete=models.PROTECT, db_index=False, related_name="recalls"
    )
    record_id = models.UUIDField(null=True)
    session_id = models.CharField(db_default="", default="", blank=True)
    agent = models.CharField(max_length=200, db_default="", default="", blank=True)
    embedder = models.CharField(max_length=80, db_default="", default="", blank=True)
    token_budget = models.PositiveIntegerField(db_default=0, default=0)
    token_count = models.PositiveIntegerField(db_default=0, default=0)
    recalled_at = models.DateTimeField(db_default=TransactionNow())

    class Meta:
        indexes: ClassVar = [
            models.Index("record_id", "recalled_at", name="recall_in_session"),
            models.Index("subject", F("recalled_at").desc(), name="recall_for_subject"),
            models.Index("recalled_at", "id", name="recall_oldest"),
        ]
        triggers: ClassVar = [
            *not_of_erased("memadmin_refuse_erased_source()", "subject_id", "record_id"),
            *audit.govern(
                "recall",
                columns=["subject", "record_id", "session_id", "agent", "recalled_at"],
                subject="subject",
                hidden=["session_id"],
                except_inserts=True,
            ),
        ]

    def __str__(self) -> str:
        return f"recall {self.pk}"


class RecalledMemory(models.Model):
    """A memory's rank in a recall, and the version used. The rank stays when the memory is erased."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    recall = models.ForeignKey(Recall, on_delete=models.CASCADE, db_index=False, related_name="memories")
    memory = models.ForeignKey(Memory, null=True, on_delete=models.SET_NULL, db_index=False, related_name="recalls")
    version = models.PositiveIntegerField()
    place = models.PositiveSmallIntegerField()
    score = models.FloatField(db_default=0.0, default=0.0)
    recalled_at = models.DateTimeField(db_default=TransactionNow())

    class Meta:
        indexes: ClassVar = [
            models.Index("recall", "place", name="memories_of_recall"),
            models.Index("memory", F("recalled_at").desc(), name="recalls_of_memory"),
        ]
        triggers: ClassVar = audit.govern(
            "recalled_memory", columns=["recall", "memory", "version", "place"], except_inserts=True
        )

    def __str__(self) -> str:
        return f"memory {self.memory_id} in recall {self.recall_id}"
