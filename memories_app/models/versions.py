"""Versions of memories."""

from __future__ import annotations

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now

from memadmin import audit
from memadmin.audit.log.triggers import Calling
from memories_app.models.data import AnyJsonField
from memories_app.models.memories import Memory


class MemoryVersion(models.Model):
    """One text of a memory. Written only by the trigger `keep_version`, so that every change has one. Only its text can
    be erased."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, db_index=False, related_name="versions")
    number = models.PositiveIntegerField()
    statement = models.TextField(blank=True)
    data = AnyJsonField(db_default=Value({}, models.JSONField()))
    content_hash = models.CharField(max_length=64)
    # Actor kind and id of the audit log; names are only there, where they can be erased.
    author_kind = models.CharField(max_length=16, db_default="")
    author_ref = models.UUIDField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    erased_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["memory", "number"], name="version_of_memory"),
            models.CheckConstraint(
                condition=Q(erased_at__isnull=True) | Q(statement="", data={}), name="erased_version_has_no_text"
            ),
        ]
        triggers: ClassVar = [
            Calling("only_erased", "memadmin_only_erased()", before="UPDATE", level=pgtrigger.Row),
            # Rows added by the trigger `keep_version` follow from the memory, whose change is recorded.
            *audit.govern(
                "memory_version",
                columns=[
                    *("memory", "number", "statement", "data", "content_hash", "author_kind", "author_ref"),
                    "erased_at",
                ],
                hidden=["statement", "data"],
                except_by_triggers=True,
            ),
        ]
        permissions: ClassVar = [("erase_version", "Can erase the text of a version of a memory")]

    def __str__(self) -> str:
        return f"version {self.number} of memory {self.memory_id}"
