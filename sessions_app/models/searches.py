"""Searches, kept while people read their results."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from memadmin import audit
from sessions_app.models import querysets


class TextSearch(models.Model):
    """Input of a search, kept for a short time so that URLs contain this id and never the words."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    text = models.CharField(max_length=500)
    searched_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(db_index=True)

    objects = querysets.TextSearchQuerySet.as_manager()

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        verbose_name_plural = "text searches"

    def __str__(self) -> str:
        return f"search {self.id}"
