"""Subjects, and the ids under which the host application knows them."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.urls import reverse

from memadmin import audit
from sessions_app.models import querysets
from sessions_app.models.grams import Grams


class SubjectKind(models.TextChoices):
    USER = "user", "user"
    PROJECT = "project", "project"
    TENANT = "tenant", "tenant"


class SubjectSource(models.TextChoices):
    """Origin of the subject of a session, or of an id."""

    CLIENT = "client", "registered by the agent"
    IMPORT = "import", "named in an import"
    PATTERN = "pattern", "read from the session id"
    OPERATOR = "operator", "attached by hand"


class Subject(models.Model):
    """A person, project or tenant that data is about. A merged subject keeps its sessions and aliases, and points to
    the remaining one.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    merged_into = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="merged", editable=False
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = querysets.SubjectQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(merged_into=F("id")), name="subject_not_merged_into_itself"),
        ]
        indexes: ClassVar = [
            models.Index(
                F("created_at").desc(),
                F("id").desc(),
                condition=Q(merged_into__isnull=True),
                name="subject_standing_newest",
            ),
        ]
        triggers: ClassVar = audit.govern(
            "subject", columns=["merged_into"], subject="id", agents_through_us=["INSERT", "DELETE"]
        )
        permissions: ClassVar = [("merge_subject", "Can merge subjects and undo merges")]

    def __str__(self) -> str:
        return f"subject {self.id}"

    def get_absolute_url(self) -> str:
        return reverse("sessions:subject", args=[self.pk])

    @property
    def label(self) -> str:
        """Primary id of this subject. No query if its aliases were prefetched."""
        return next((alias.key for alias in self.aliases.all()), "")

    def group_ids(self) -> list[uuid.UUID]:
        """This subject's id, first, and those of all that were merged into it, however deep. One query."""
        return Subject.objects.merged_group(self.pk)


class SubjectAlias(models.Model):
    """One id under which the host application knows a subject."""

    subject = models.ForeignKey(Subject, on_delete=models.CASCADE, related_name="aliases")
    kind = models.CharField(max_length=16, choices=SubjectKind, default=SubjectKind.USER)
    key = models.CharField(max_length=512)
    is_primary = models.BooleanField(default=False)
    # Empty for ids that are older than the column.
    source = models.CharField(max_length=8, choices=SubjectSource, db_default="", editable=False)

    class Meta:
        ordering: ClassVar = ["-is_primary", "kind", "key", "pk"]
        verbose_name_plural = "subject aliases"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kind", "key"], name="alias_names_one_subject"),
            models.UniqueConstraint(fields=["subject"], condition=Q(is_primary=True), name="one_primary_alias"),
        ]
        indexes: ClassVar = [GinIndex(Grams("key"), name="alias_key_grams")]
        triggers: ClassVar = audit.govern(
            "alias",
            columns=["subject", "kind", "key", "is_primary"],
            subject="subject",
            agents_through_us=["INSERT"],
        )

    def __str__(self) -> str:
        return f"alias {self.pk}"
