"""The registry: which sessions exist, in which store, about whom.

Conversation content is never copied here. `SessionRecord` is written from two sides: by a trigger inside the
agents' own transactions (`registry/`), and by our services. So each of its columns has a database default, its
session id never changes, and nothing depends on its UUID being unique: the table can be partitioned or
distributed by session id without touching the code.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.expressions import OrderBy
from django.db.models.functions import Left, Lower, Now
from django.urls import reverse

from memadmin import audit
from sessions_app import querysets
from sessions_app.patterns import Pattern, PatternError


class SubjectKind(models.TextChoices):
    USER = "user", "user"
    PROJECT = "project", "project"
    TENANT = "tenant", "tenant"


class Grams(Func):
    """Three-letter pieces of a text, lower-cased: makes part of an id findable through a GIN index (no extension)."""

    function = "memadmin_grams"
    output_field: ClassVar = ArrayField(models.TextField())


class Subject(models.Model):
    """Whom data is about. A merged subject keeps its sessions and aliases, and points to the one it was merged into."""

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
        triggers: ClassVar = audit.govern("subject", columns=["merged_into"], subject="id")
        permissions: ClassVar = [("merge_subject", "Can merge subjects and undo it")]

    def __str__(self) -> str:
        return f"subject {self.id}"

    def get_absolute_url(self) -> str:
        return reverse("sessions:subject", args=[self.pk])

    @property
    def label(self) -> str:
        """The id by which people know this subject. No query where the aliases were prefetched."""
        return next((alias.key for alias in self.aliases.all()), "")

    def group_ids(self) -> Iterator[uuid.UUID]:
        """This subject's id and the ids of all that were merged into it, however deep. One query a level."""
        level = [self.pk]
        while level:
            yield from level
            level = list(Subject.objects.filter(merged_into__in=level).values_list("pk", flat=True))


class SubjectAlias(models.Model):
    """One id under which the host application knows a subject."""

    subject = models.ForeignKey(Subject, on_delete=models.CASCADE, related_name="aliases")
    kind = models.CharField(max_length=16, choices=SubjectKind, default=SubjectKind.USER)
    key = models.CharField(max_length=512)
    is_primary = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["-is_primary", "kind", "key", "pk"]
        verbose_name_plural = "subject aliases"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kind", "key"], name="alias_names_one_subject"),
            models.UniqueConstraint(fields=["subject"], condition=Q(is_primary=True), name="one_primary_alias"),
        ]
        indexes: ClassVar = [GinIndex(Grams("key"), name="alias_key_grams")]
        triggers: ClassVar = audit.govern("alias", columns=["subject", "kind", "key", "is_primary"], subject="subject")

    def __str__(self) -> str:
        return f"alias {self.pk}"


class SessionStore(models.Model):
    """A connected place where agents keep sessions."""

    class FenceMode(models.TextChoices):
        REJECT = "reject", "reject: the agent's run fails with a clear message"
        DROP = "drop", "drop: the run completes, the write is discarded and counted"

    name = models.SlugField(max_length=64, unique=True)
    kind = models.CharField(max_length=32, default="sqlalchemy", help_text="what stores.kinds knows by this name")
    sessions_table = models.CharField(max_length=127, default="agent_sessions", help_text="table, or schema.table")
    messages_table = models.CharField(max_length=127, default="agent_messages", help_text="table, or schema.table")
    # What `attach_store` was told of the place, in the words of the kind's form. Never a secret: the name of the
    # environment variable that holds it.
    options = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), blank=True)
    writer_timezone = models.CharField(
        max_length=64, default="UTC", help_text="The zone in which the agents' CURRENT_TIMESTAMP is written."
    )
    is_sensitive = models.BooleanField(
        default=False, help_text="Reading what was said in any of its sessions takes a grant: a reason and a ticket."
    )
    fence_mode = models.CharField(max_length=8, choices=FenceMode, default=FenceMode.REJECT)
    # Under which the agents write; what others write to their tables is recorded. Empty: nobody has said so.
    agent_roles = ArrayField(models.CharField(max_length=63), default=list, db_default=models.Value("{}"), blank=True)
    # The name of the key that agents seal sessions with, never the key; empty: nobody has said so.
    encryption_key = models.CharField(max_length=40, default="", db_default="", blank=True)
    encryption_ttl_seconds = models.PositiveIntegerField(
        default=600, db_default=600, help_text="After how many seconds agents no longer read a sealed item."
    )
    encryption_ids = models.CharField(
        max_length=300,
        default="",
        db_default="",
        blank=True,
        help_text="How the wrapper's session id follows from the stored one; empty where it is the same.",
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
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar = ["name", "pk"]
        permissions: ClassVar = [
            ("raw_edit", "Can edit the agents' own rows"),
            ("reveal_personal_data", "Can see what is masked, for a reason and recorded"),
        ]
        triggers: ClassVar = audit.govern(
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
        )

    def __str__(self) -> str:
        return self.name


def newest() -> tuple[OrderBy, OrderBy]:
    """The order of every session list, as index columns."""
    return F("last_activity_at").desc(), F("id").desc()


class SessionRecord(models.Model):
    """One session in a store: the row that lists page over, and the fence that an erased session cannot pass."""

    class SubjectSource(models.TextChoices):
        CLIENT = "client", "registered by the agent"
        IMPORT = "import", "named in an import"
        PATTERN = "pattern", "read from the session id"
        OPERATOR = "operator", "attached by hand"

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    store = models.ForeignKey(
        SessionStore, on_delete=models.PROTECT, db_constraint=False, db_index=False, related_name="sessions"
    )
    session_id = models.CharField(editable=False)
    subject = models.ForeignKey(
        Subject,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        db_constraint=False,
        db_index=False,
        related_name="sessions",
    )
    # "operator" without a subject: somebody detached it, and patterns leave it alone.
    subject_source = models.CharField(max_length=8, choices=SubjectSource, db_default="", blank=True)
    subject_epoch = models.PositiveIntegerField(db_default=0, editable=False)
    ticket = models.CharField(max_length=200, db_default="", blank=True)
    agent = models.CharField(max_length=200, db_default="", blank=True)
    labels = ArrayField(models.CharField(max_length=50), db_default=models.Value("{}"), blank=True)
    is_encrypted = models.BooleanField(db_default=False, editable=False)
    is_sensitive = models.BooleanField(
        db_default=False, help_text="Reading what was said in it takes a grant: a reason and a ticket."
    )
    finding_count = models.PositiveIntegerField(db_default=0, editable=False)
    registered_at = models.DateTimeField(db_default=Now(), editable=False)
    last_activity_at = models.DateTimeField(db_default=Now(), editable=False)
    # The trigger counts each write; an inspection notes how far it saw. Times would not do: a run that began earlier
    # can commit later, and would be missed.
    activity_count = models.BigIntegerField(db_default=0, editable=False)
    inspected_count = models.BigIntegerField(db_default=-1, editable=False)
    patterns_tried = models.PositiveIntegerField(db_default=0, editable=False)
    # Of a store without triggers: what discovery last saw of the session, and since when it has not seen it at all.
    change_mark = models.CharField(max_length=64, db_default="", editable=False)
    missing_since = models.DateTimeField(null=True, editable=False)
    # When the store would let go of the session by itself, as discovery last saw it.
    expires_at = models.DateTimeField(null=True, editable=False)
    erased_at = models.DateTimeField(null=True, editable=False)

    objects = querysets.SessionRecordQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            # Upserts aim at this one.
            models.UniqueConstraint(fields=["store", "session_id"], name="session_record_key"),
            # Makes erased_at a key column, so that every UPDATE of it takes the row lock that conflicts with the
            # FOR KEY SHARE of a writer in flight. Without it a write can slip past an erasure.
            models.UniqueConstraint(fields=["store", "session_id", "erased_at"], name="session_record_fence"),
        ]
        indexes: ClassVar = [
            models.Index(*newest(), name="record_newest"),
            # Without these a retired store, or old sessions that nobody attached, would be found by walking over
            # everything newer.
            models.Index("store", *newest(), name="record_store_newest"),
            models.Index(
                *newest(), condition=Q(subject__isnull=True, erased_at__isnull=True), name="record_unattached_newest"
            ),
            models.Index("subject", *newest(), name="record_subject_newest"),
            models.Index("ticket", *newest(), condition=~Q(ticket=""), name="record_ticket_newest"),
            models.Index("agent", *newest(), condition=~Q(agent=""), name="record_agent_newest"),
            models.Index(*newest(), condition=Q(finding_count__gt=0), name="record_findings_newest"),
            models.Index(*newest(), condition=Q(is_encrypted=True), name="record_encrypted_newest"),
            models.Index(*newest(), condition=Q(is_sensitive=True), name="record_sensitive_newest"),
            models.Index(
                "store",
                "last_activity_at",
                "id",
                condition=Q(erased_at__isnull=True) & ~Q(inspected_count=F("activity_count")),
                name="record_awaiting_inspection",
            ),
            models.Index(
                "store",
                "patterns_tried",
                condition=Q(subject__isnull=True, subject_source="", erased_at__isnull=True),
                name="record_awaiting_patterns",
            ),
            models.Index(
                OpClass(Lower(Left("session_id", 200)), name="text_pattern_ops"), name="record_session_id_prefix"
            ),
            # fastupdate off: these are written inside the agents' transactions, where a flush of the pending
            # list would be an unexpected pause.
            GinIndex(Grams("ticket"), fastupdate=False, condition=~Q(ticket=""), name="record_ticket_grams"),
            GinIndex(fields=["labels"], fastupdate=False, condition=~Q(labels=[]), name="record_labels"),
        ]
        # Agents write these rows through the triggers on their own tables; those writes are theirs, and recorded there.
        triggers: ClassVar = audit.govern(
            "session",
            columns=[
                "store",
                "session_id",
                "subject",
                "subject_source",
                "ticket",
                "agent",
                "labels",
                "is_sensitive",
                "erased_at",
            ],
            subject="subject",
            except_by_triggers=True,
        )
        permissions: ClassVar = [
            ("read_content", "Can read what was said in a session"),
            ("attach_session", "Can attach sessions to a subject and label them"),
            ("mark_sensitive", "Can lock sessions, so that reading them takes a grant"),
        ]

    def __str__(self) -> str:
        return f"session {self.id}"

    def get_absolute_url(self) -> str:
        return reverse("sessions:timeline", args=[self.pk])

    @property
    def has_run_out(self) -> bool:
        """Whether it is not in its store any more because its time there was over, as far as discovery saw."""
        return bool(self.missing_since and self.expires_at and self.expires_at <= self.missing_since)

    @property
    def is_locked(self) -> bool:
        """Whether reading what was said in it takes a grant."""
        return self.is_sensitive or self.store.is_sensitive


class SessionFinding(models.Model):
    """Something a person should look at in a session, as the last inspection left it. Holds no content."""

    record_id = models.UUIDField()
    session_id = models.CharField()
    kind = models.CharField(max_length=40)
    item_id = models.CharField(max_length=64)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["record_id", "id"], name="finding_by_record")]

    def __str__(self) -> str:
        return f"finding {self.pk}"


class FenceOutbox(models.Model):
    """What the triggers on the agents' tables have to tell: writes that were discarded. Holds no content.

    A job moves it into the audit log within seconds; in the agents' transactions it is one small row.
    """

    session_id = models.CharField()
    store = models.ForeignKey(SessionStore, on_delete=models.CASCADE, db_constraint=False)
    event = models.CharField(max_length=32)
    happened_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "fence outbox"

    def __str__(self) -> str:
        return f"{self.event} {self.pk}"


def validate_pattern(text: str) -> None:
    try:
        Pattern.parse(text)
    except PatternError as problem:
        raise ValidationError(str(problem)) from problem


class SessionIdPattern(models.Model):
    """How to read subject and ticket from the session ids of a store: `customer_{subject}:ticket_{ticket}`."""

    store = models.ForeignKey(SessionStore, on_delete=models.CASCADE, related_name="patterns")
    position = models.PositiveSmallIntegerField(default=0)
    name = models.CharField(max_length=64)
    pattern = models.CharField(max_length=300, validators=[validate_pattern])
    subject_kind = models.CharField(max_length=16, choices=SubjectKind, default=SubjectKind.USER)

    objects = querysets.SessionIdPatternQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["store", "position", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["store", "name"], name="pattern_name_in_store"),
        ]
        triggers: ClassVar = audit.govern("pattern", columns=["store", "position", "name", "pattern", "subject_kind"])

    def __str__(self) -> str:
        return self.name


class WatchedPath(models.Model):
    """A path with `*`: each file or folder that it names, now or later, becomes a store of this kind."""

    name = models.SlugField(max_length=40, unique=True, help_text="With which the names of its stores begin.")
    kind = models.CharField(max_length=32)
    options = models.JSONField(default=dict, help_text="of each store, with the path")
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
        """Why a file or folder could not be connected, by its path."""
        return dict(self.found.get("refused", {}))


class TextSearch(models.Model):
    """A search that somebody typed, kept for a short time so that URLs carry this id and never the words."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    text = models.CharField(max_length=500)
    searched_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(db_index=True)

    objects = querysets.TextSearchQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "text searches"

    def __str__(self) -> str:
        return f"search {self.id}"


class Redaction(models.Model):
    """A text that is to go from an item, a session or all sessions of a subject, and what came of it.

    The text itself is here until that is done, and no longer: it is in no address, job, log or event.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Of a subject neither of these; of one item, its id, too.
    record_id = models.UUIDField(null=True)
    session_id = models.CharField(default="")
    item_id = models.CharField(max_length=64, default="")
    # What the item was when somebody looked at it, as a keyed hash: where items have no ids, another may move there.
    item_mark = models.CharField(max_length=64, default="")
    subject = models.ForeignKey(Subject, null=True, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    text = models.TextField(default="", help_text="empty for all text of an item, and as soon as it is done")
    takes_all = models.BooleanField(default=False)
    takes_compactions = models.BooleanField(default=False)
    reason = models.CharField(max_length=40)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    requested_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(help_text="Not begun until then, it is not done any more.")
    begun_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # Up to which session, in the order of stores and ids, it is done.
    done_until = models.JSONField(default=list)
    report = models.JSONField(default=dict)

    objects = querysets.RedactionQuerySet.as_manager()

    class Meta:
        indexes: ClassVar = [
            models.Index("requested_at", condition=Q(ended_at__isnull=True), name="redaction_open"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True) | Q(text=""), name="ended_redaction_forgets_its_text"
            ),
        ]
        default_permissions: ClassVar = []
        permissions: ClassVar = [("redact_content", "Can take text out of sessions for good")]

    def __str__(self) -> str:
        return f"redaction {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("sessions:redaction", args=[self.pk])


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
