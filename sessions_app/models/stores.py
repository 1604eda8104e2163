"""Stores of sessions, their patterns, and watched paths."""

from __future__ import annotations

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now

from memadmin import audit
from memadmin.audit.log.triggers import Calling
from sessions_app.models import querysets
from sessions_app.models.subjects import Subject, SubjectAlias, SubjectKind
from sessions_app.patterns import Pattern, PatternError


class SessionStore(models.Model):
    """A connected place where agents keep sessions."""

    class FenceMode(models.TextChoices):
        REJECT = "reject", "reject: the agent's run fails with a clear message"
        DROP = "drop", "drop: the run completes, the write is discarded and counted"

    class State(models.TextChoices):
        """Result of a health check; empty before the first."""

        OK = "ok", "healthy"
        DEGRADED = "degraded", "degraded"
        DOWN = "down", "unreachable"

    name = models.SlugField(max_length=64, unique=True)
    kind = models.CharField(max_length=32, default="sqlalchemy", help_text="Kind of store, as listed in stores.kinds.")
    sessions_table = models.CharField(max_length=127, default="agent_sessions", help_text="table, or schema.table")
    messages_table = models.CharField(max_length=127, default="agent_messages", help_text="table, or schema.table")
    # Settings of the location, as in the form of the kind. Never a secret, but the name of its environment variable.
    options = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), blank=True)
    writer_timezone = models.CharField(
        max_length=64, default="UTC", help_text="Time zone of the timestamps (CURRENT_TIMESTAMP) that the agents write."
    )
    is_sensitive = models.BooleanField(
        default=False, help_text="Reading the content of sessions in this store needs a grant."
    )
    fence_mode = models.CharField(max_length=8, choices=FenceMode, default=FenceMode.REJECT)
    # Database roles of the agents; writes of other roles to their tables are recorded. Empty: not declared.
    agent_roles = ArrayField(models.CharField(max_length=63), default=list, db_default=models.Value("{}"), blank=True)
    # Name of the key with which agents encrypt sessions, never the key; empty: not declared.
    encryption_key = models.CharField(max_length=40, default="", db_default="", blank=True)
    encryption_ttl_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Number of seconds after which agents no longer read an encrypted item; empty if not declared.",
    )
    encryption_ids = models.CharField(
        max_length=300,
        default="",
        db_default="",
        blank=True,
        help_text="How the session id of EncryptedSession is derived from the stored id; empty if both are the same.",
    )
    # Writes to erased sessions that the fence discarded; FenceOutbox has those of the last seconds.
    dropped_writes = models.PositiveBigIntegerField(db_default=0, default=0, editable=False)
    # Counts the changes of this store's session-id patterns; a session notes which of them it was tried with.
    patterns_version = models.PositiveIntegerField(default=0, editable=False)
    attached_at = models.DateTimeField(null=True, blank=True, editable=False)
    # When all sessions of a store that has no triggers were last looked for, and how many turned up in what way.
    discovered_at = models.DateTimeField(null=True, blank=True, editable=False)
    discovery = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField()), blank=True, editable=False
    )
    # When a job last checked the store, with its state and the result of the check; see registry.last_check.
    checked_at = models.DateTimeField(null=True, editable=False)
    state = models.CharField(max_length=8, choices=State, default="", db_default="", editable=False)
    last_check = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField()), blank=True, editable=False
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = querysets.SessionStoreQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name", "pk"]
        permissions: ClassVar = [
            ("raw_edit", "Can edit agents' rows in raw edits"),
            ("reveal_personal_data", "Can reveal masked values"),
        ]
        triggers: ClassVar = [
            *audit.govern(
                "store",
                columns=[
                    "name",
                    "kind",
                    "sessions_table",
                    "messages_table",
                    "options",
                    "writer_timezone",
                    "is_sensitive",
                    "fence_mode",
                    "agent_roles",
                    "attached_at",
                    "encryption_key",
                    "encryption_ttl_seconds",
                    "encryption_ids",
                ],
            ),
            *(
                Calling(
                    name,
                    "memadmin_keep_store_locked()",
                    before=event,
                    level=pgtrigger.Row,
                    condition=pgtrigger.Condition(condition),
                )
                for name, event, condition in (
                    ("stays_locked", "UPDATE OF is_sensitive", "OLD.is_sensitive AND NOT NEW.is_sensitive"),
                    ("locked_with_sessions", "DELETE", "OLD.is_sensitive"),
                )
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def was_attached(self) -> bool:
        """True if it is attached, was polled, or has session records, if need be by one query. False for one whose
        attachment never came about: it is not known to be a store of anything.
        """
        return bool(self.attached_at or self.discovered_at) or self.sessions.exists()

    def subject_ids_of(self, session_id: str) -> list[tuple[str, str]]:
        """Kind and key of all aliases of a session's subject, and of those merged into it. Up to three queries."""
        subject_id = self.sessions.filter(session_id=session_id).values_list("subject_id", flat=True).first()
        if subject_id is None:
            return []
        group = Subject.objects.merged_group(subject_id)
        return list(SubjectAlias.objects.filter(subject__in=group).values_list("kind", "key"))


def validate_pattern(text: str) -> None:
    try:
        Pattern.parse(text)
    except PatternError as problem:
        raise ValidationError(str(problem)) from problem


class SessionIdPattern(models.Model):
    """A pattern that reads subject and ticket from the session ids of a store: `customer_{subject}:ticket_{ticket}`."""

    store = models.ForeignKey(SessionStore, on_delete=models.CASCADE, related_name="patterns")
    position = models.PositiveSmallIntegerField(default=0)
    name = models.CharField(max_length=64)
    pattern = models.CharField(max_length=300, validators=[validate_pattern])
    subject_kind = models.CharField(max_length=16, choices=SubjectKind, default=SubjectKind.USER)

    objects = querysets.SessionIdPatternQuerySet.as_manager()

    class Meta:
        verbose_name = "session ID pattern"
        ordering: ClassVar = ["store", "position", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["store", "name"], name="pattern_name_in_store"),
        ]
        triggers: ClassVar = audit.govern("pattern", columns=["store", "position", "name", "pattern", "subject_kind"])

    def __str__(self) -> str:
        return self.name


class WatchedPath(models.Model):
    """A path with `*`: each file or folder that matches, now or later, becomes a store of this kind."""

    name = models.SlugField(max_length=40, unique=True, help_text="Prefix of the names of the stores on this path.")
    kind = models.CharField(max_length=32)
    options = models.JSONField(default=dict, help_text="Settings of each store, including the path.")
    sessions_table = models.CharField(max_length=127, default="agent_sessions")
    messages_table = models.CharField(max_length=127, default="agent_messages")
    writer_timezone = models.CharField(max_length=64, default="UTC")
    # What the last look came upon; `tried_at` is when those that cannot be connected were last tried.
    looked_at = models.DateTimeField(null=True, editable=False)
    tried_at = models.DateTimeField(null=True, editable=False)
    found = models.JSONField(default=dict, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar = ["name", "pk"]
        # Whoever may see, connect and change stores may do so with these.
        default_permissions: ClassVar[list[str]] = []
        triggers: ClassVar = audit.govern(
            "watched_path",
            columns=["name", "kind", "options", "sessions_table", "messages_table", "writer_timezone"],
        )

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> str:
        return str(self.options.get("path", ""))

    @property
    def refused(self) -> dict[str, str]:
        """Reason why a file or folder could not be connected, by its path."""
        return dict(self.found.get("refused", {}))
