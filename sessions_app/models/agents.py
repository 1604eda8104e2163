"""Mirrors of the tables that the agents' SDK owns."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class AgentSession(models.Model):
    """A row of the main store's sessions table, which the agents' SDK owns: mirrored for raw edits, never migrated."""

    session_id = models.CharField(primary_key=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = ".".join(f'"{part}"' for part in settings.AGENT_SESSIONS_TABLE.split("."))
        verbose_name = "stored session"
        default_permissions: ClassVar = ["view"]

    def __str__(self) -> str:
        return "stored session"


class AgentMessage(models.Model):
    """A row of the main store's messages table, which the agents' SDK owns: mirrored for raw edits, never migrated."""

    id = models.BigIntegerField(primary_key=True)
    session_id = models.CharField()
    message_data = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = ".".join(f'"{part}"' for part in settings.AGENT_MESSAGES_TABLE.split("."))
        verbose_name = "stored item"
        default_permissions: ClassVar = ["view"]

    def __str__(self) -> str:
        return f"stored item {self.pk}"
