"""Subjects, and the ids under which the host application knows them."""

from __future__ import annotations

import uuid
from typing import ClassVar

import pgtrigger
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.urls import reverse

from memadmin import audit
from memadmin.audit.log.triggers import Calling
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
    # Set for the whole merged group, and for good: the row stays without an id, and nothing is stored about it again.
    erased_at = models.DateTimeField(null=True, editable=False)
    # Counts the erasures before this subject: the database sets it with an id that was erased and reopened.
    epoch = models.PositiveIntegerField(db_default=0, editable=False)

    objects = querysets.SubjectQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(merged_into=F("id")), name="subject_not_merged_into_itself"),
            # Makes erased_at a key column, as in the registry: who stores something holds off an UPDATE of it.
            models.UniqueConstraint(fields=["id", "erased_at"], name="subject_fence"),
        ]
        indexes: ClassVar = [
            models.Index(
                F("created_at").desc(),
                F("id").desc(),
                condition=Q(merged_into__isnull=True),
                name="subject_standing_newest",
            ),
        ]
        triggers: ClassVar = [
            Calling(
                "keep_erased",
                "memadmin_keep_erased_subject()",
                before="UPDATE",
                level=pgtrigger.Row,
                condition=pgtrigger.Condition(
                    "ROW(OLD.merged_into_id, OLD.erased_at) IS DISTINCT FROM ROW(NEW.merged_into_id, NEW.erased_at)"
                ),
            ),
            Calling(
                "keep_shell",
                "memadmin_keep_erased_subject()",
                before="DELETE",
                level=pgtrigger.Row,
                condition=pgtrigger.Condition("OLD.erased_at IS NOT NULL"),
            ),
            *audit.govern(
                "subject", columns=["merged_into", "erased_at"], subject="id", agents_through_us=["INSERT", "DELETE"]
            ),
        ]
        permissions: ClassVar = [
            ("merge_subject", "Can merge subjects and undo merges"),
            ("reopen_subject", "Can allow a new start under an erased ID"),
        ]

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
        triggers: ClassVar = [
            Calling("refuse_erased", "memadmin_refuse_erased_key()", after="INSERT", level=pgtrigger.Row),
            Calling(
                "refuse_erased_change",
                "memadmin_refuse_erased_key()",
                after="UPDATE",
                level=pgtrigger.Row,
                condition=pgtrigger.Condition(
                    "ROW(OLD.subject_id, OLD.kind, OLD.key) IS DISTINCT FROM ROW(NEW.subject_id, NEW.kind, NEW.key)"
                ),
            ),
            Calling("keep_until_forgotten", "memadmin_keep_erased_key()", before="DELETE", level=pgtrigger.Row),
            *audit.govern(
                "alias",
                columns=["subject", "kind", "key", "is_primary"],
                subject="subject",
                agents_through_us=["INSERT"],
            ),
        ]

    def __str__(self) -> str:
        return f"alias {self.pk}"


class ErasedKey(models.Model):
    """The keyed digest of an id of an erased subject: under this id nothing is stored until it is reopened."""

    digest = models.CharField(max_length=64, unique=True)
    # The erased subject, and its epoch; no foreign key, as in all rows that outlive what they name.
    subject_id = models.UUIDField()
    epoch = models.PositiveIntegerField()
    erased_at = models.DateTimeField(db_default=Now())
    reopened_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions: ClassVar[list[str]] = []
        triggers: ClassVar = [
            audit.by_proven(),
            Calling("note_added", "memadmin_note_tombstones()", after="INSERT", level=pgtrigger.Statement),
            Calling("note_changed", "memadmin_note_tombstones()", after="UPDATE", level=pgtrigger.Statement),
        ]

    def __str__(self) -> str:
        return f"erased key {self.pk}"


class TombstoneLock(models.Model):
    """One row, which every new tombstone changes: a transaction that began before, and would not see it, is refused."""

    changed_count = models.BigIntegerField(db_default=0)

    class Meta:
        default_permissions: ClassVar[list[str]] = []

    def __str__(self) -> str:
        return "lock of tombstones"
