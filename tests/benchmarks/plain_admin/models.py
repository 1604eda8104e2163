"""The agents' two tables, as `inspectdb` would write them down."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Session(models.Model):
    session_id = models.CharField(primary_key=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "agent_sessions"
        ordering: ClassVar = ["-updated_at"]

    def __str__(self) -> str:
        return self.session_id


class Message(models.Model):
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="messages")
    message_data = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "agent_messages"

    def __str__(self) -> str:
        return f"message {self.pk}"
