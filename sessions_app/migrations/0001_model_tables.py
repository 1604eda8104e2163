import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import migrations, models
from django.db.models import CASCADE, PROTECT, SET_NULL, CheckConstraint, F, Index, Q, UniqueConstraint, Value
from django.db.models.functions import Left, Lower, Now

from memadmin.migrating import RunFile
from sessions_app.models.grams import Grams
from sessions_app.models.stores import validate_pattern

USER = settings.AUTH_USER_MODEL
SOURCES = [
    ("client", "registered by the agent"),
    ("import", "named in an import"),
    ("pattern", "read from the session id"),
    ("operator", "attached by hand"),
]
SUBJECT_KINDS = [("user", "user"), ("project", "project"), ("tenant", "tenant")]
NEWEST = (F("last_activity_at").desc(), F("id").desc())


class Migration(migrations.Migration):
    """Stores, sessions and subjects, with the function of their indexes."""

    initial = True

    dependencies = [migrations.swappable_dependency(USER), ("runs", "0001_model_tables")]

    operations = [
        RunFile("sessions_app", "grams.sql"),
        migrations.CreateModel(
            name="AgentMessage",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("session_id", models.CharField()),
                ("message_data", models.TextField()),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "stored item",
                "db_table": '"agent_messages"',
                "managed": False,
                "default_permissions": ["view"],
            },
        ),
        migrations.CreateModel(
            name="AgentSession",
            fields=[
                ("session_id", models.CharField(primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "stored session",
                "db_table": '"agent_sessions"',
                "managed": False,
                "default_permissions": ["view"],
            },
        ),
        migrations.CreateModel(
            name="ErasedKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("subject_id", models.UUIDField()),
                ("epoch", models.PositiveIntegerField()),
                ("erased_at", models.DateTimeField(db_default=Now())),
                ("reopened_at", models.DateTimeField(null=True)),
            ],
            options={"default_permissions": []},
        ),
        migrations.CreateModel(
            name="SessionStore",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=64, unique=True)),
                (
                    "kind",
                    models.CharField(
                        default="sqlalchemy", help_text="Kind of store, as listed in stores.kinds.", max_length=32
                    ),
                ),
                (
                    "sessions_table",
                    models.CharField(default="agent_sessions", help_text="table, or schema.table", max_length=127),
                ),
                (
                    "messages_table",
                    models.CharField(default="agent_messages", help_text="table, or schema.table", max_length=127),
                ),
                ("options", models.JSONField(blank=True, db_default=Value({}, models.JSONField()), default=dict)),
                (
                    "writer_timezone",
                    models.CharField(
                        default="UTC",
                        help_text="Time zone of the timestamps (CURRENT_TIMESTAMP) that the agents write.",
                        max_length=64,
                    ),
                ),
                (
                    "is_sensitive",
                    models.BooleanField(
                        default=False, help_text="Reading the content of sessions in this store needs a grant."
                    ),
                ),
                (
                    "fence_mode",
                    models.CharField(
                        choices=[
                            ("reject", "reject: the agent's run fails with a clear message"),
                            ("drop", "drop: the run completes, the write is discarded and counted"),
                        ],
                        default="reject",
                        max_length=8,
                    ),
                ),
                (
                    "agent_roles",
                    ArrayField(models.CharField(max_length=63), blank=True, db_default=Value("{}"), default=list),
                ),
                ("encryption_key", models.CharField(blank=True, db_default="", default="", max_length=40)),
                (
                    "encryption_ttl_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Number of seconds after which agents no longer read an encrypted item; empty if not declared.",
                        null=True,
                    ),
                ),
                (
                    "encryption_ids",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="How the session id of EncryptedSession is derived from the stored id; empty if both are the same.",
                        max_length=300,
                    ),
                ),
                ("dropped_writes", models.PositiveBigIntegerField(db_default=0, default=0, editable=False)),
                ("patterns_version", models.PositiveIntegerField(default=0, editable=False)),
                ("attached_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("discovered_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "discovery",
                    models.JSONField(
                        blank=True, db_default=Value({}, models.JSONField()), default=dict, editable=False
                    ),
                ),
                ("checked_at", models.DateTimeField(editable=False, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("ok", "healthy"), ("degraded", "degraded"), ("down", "unreachable")],
                        db_default="",
                        default="",
                        editable=False,
                        max_length=8,
                    ),
                ),
                (
                    "last_check",
                    models.JSONField(
                        blank=True, db_default=Value({}, models.JSONField()), default=dict, editable=False
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
            ],
            options={
                "ordering": ["name", "pk"],
                "permissions": [
                    ("raw_edit", "Can edit agents' rows in raw edits"),
                    ("reveal_personal_data", "Can reveal masked values"),
                ],
            },
        ),
        migrations.CreateModel(
            name="TombstoneLock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("changed_count", models.BigIntegerField(db_default=0)),
            ],
            options={"default_permissions": []},
        ),
        migrations.CreateModel(
            name="WatchedPath",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.SlugField(
                        help_text="Prefix of the names of the stores on this path.", max_length=40, unique=True
                    ),
                ),
                ("kind", models.CharField(max_length=32)),
                ("options", models.JSONField(default=dict, help_text="Settings of each store, including the path.")),
                ("sessions_table", models.CharField(default="agent_sessions", max_length=127)),
                ("messages_table", models.CharField(default="agent_messages", max_length=127)),
                ("writer_timezone", models.CharField(default="UTC", max_length=64)),
                ("looked_at", models.DateTimeField(editable=False, null=True)),
                ("tried_at", models.DateTimeField(editable=False, null=True)),
                ("found", models.JSONField(default=dict, editable=False)),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
            ],
            options={"ordering": ["name", "pk"], "default_permissions": []},
        ),
        migrations.CreateModel(
            name="SessionFinding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("record_id", models.UUIDField()),
                ("session_id", models.CharField()),
                ("kind", models.CharField(max_length=40)),
                ("item_id", models.CharField(max_length=64)),
            ],
            options={"indexes": [Index(fields=["record_id", "id"], name="finding_by_record")]},
        ),
        migrations.CreateModel(
            name="FenceOutbox",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session_id", models.CharField()),
                ("event", models.CharField(max_length=32)),
                ("happened_at", models.DateTimeField(db_default=Now())),
                ("store", models.ForeignKey("sessions_app.sessionstore", CASCADE, db_constraint=False)),
            ],
            options={"verbose_name_plural": "fence outbox"},
        ),
        migrations.CreateModel(
            name="Subject",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("erased_at", models.DateTimeField(editable=False, null=True)),
                ("epoch", models.PositiveIntegerField(db_default=0, editable=False)),
                (
                    "merged_into",
                    models.ForeignKey(
                        "sessions_app.subject", PROTECT, blank=True, editable=False, null=True, related_name="merged"
                    ),
                ),
            ],
            options={
                "ordering": ["created_at", "id"],
                "permissions": [
                    ("merge_subject", "Can merge subjects and undo merges"),
                    ("reopen_subject", "Can allow a new start under an erased ID"),
                ],
                "indexes": [
                    Index(
                        F("created_at").desc(),
                        F("id").desc(),
                        condition=Q(("merged_into__isnull", True)),
                        name="subject_standing_newest",
                    )
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(("merged_into", F("id")), _negated=True), name="subject_not_merged_into_itself"
                    ),
                    UniqueConstraint(fields=("id", "erased_at"), name="subject_fence"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SessionRecord",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("session_id", models.CharField(editable=False)),
                ("subject_source", models.CharField(blank=True, choices=SOURCES, db_default="", max_length=8)),
                ("subject_epoch", models.PositiveIntegerField(db_default=0, editable=False)),
                ("ticket", models.CharField(blank=True, db_default="", max_length=200)),
                ("agent", models.CharField(blank=True, db_default="", max_length=200)),
                ("labels", ArrayField(models.CharField(max_length=50), blank=True, db_default=Value("{}"))),
                ("is_encrypted", models.BooleanField(db_default=False, editable=False)),
                ("has_plain_items", models.BooleanField(db_default=False, editable=False)),
                (
                    "is_sensitive",
                    models.BooleanField(
                        db_default=False, help_text="Reading the content of this session needs a grant."
                    ),
                ),
                ("finding_count", models.PositiveIntegerField(db_default=0, editable=False)),
                ("registered_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("last_activity_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("activity_count", models.BigIntegerField(db_default=0, editable=False)),
                ("inspected_count", models.BigIntegerField(db_default=-1, editable=False)),
                ("counted_items", models.BigIntegerField(db_default=0, editable=False)),
                ("patterns_tried", models.PositiveIntegerField(db_default=0, editable=False)),
                ("change_mark", models.CharField(db_default="", editable=False, max_length=64)),
                ("missing_since", models.DateTimeField(editable=False, null=True)),
                ("expires_at", models.DateTimeField(editable=False, null=True)),
                ("erased_at", models.DateTimeField(editable=False, null=True)),
                ("is_forgotten", models.BooleanField(db_default=False, editable=False)),
                (
                    "store",
                    models.ForeignKey(
                        "sessions_app.sessionstore",
                        PROTECT,
                        db_constraint=False,
                        db_index=False,
                        related_name="sessions",
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        "sessions_app.subject",
                        PROTECT,
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        related_name="sessions",
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("read_content", "Can read the content of sessions"),
                    ("attach_session", "Can attach sessions to a subject and label them"),
                    ("mark_sensitive", "Can lock and unlock sessions"),
                ],
                "indexes": [
                    Index(*NEWEST, name="record_newest"),
                    Index("store", *NEWEST, name="record_store_newest"),
                    Index("store", "registered_at", "id", name="record_store_oldest"),
                    Index(
                        *NEWEST,
                        condition=Q(("erased_at__isnull", True), ("subject__isnull", True)),
                        name="record_unattached_newest",
                    ),
                    Index("subject", *NEWEST, condition=Q(("subject__isnull", False)), name="record_attached_newest"),
                    Index("ticket", *NEWEST, condition=Q(("ticket", ""), _negated=True), name="record_ticket_newest"),
                    Index("agent", *NEWEST, condition=Q(("agent", ""), _negated=True), name="record_agent_newest"),
                    Index(*NEWEST, condition=Q(("finding_count__gt", 0)), name="record_findings_newest"),
                    Index(*NEWEST, condition=Q(("is_encrypted", True)), name="record_encrypted_newest"),
                    Index(*NEWEST, condition=Q(("is_sensitive", True)), name="record_sensitive_newest"),
                    Index(
                        "store",
                        "last_activity_at",
                        "id",
                        condition=Q(
                            ("erased_at__isnull", True), Q(("inspected_count", F("activity_count")), _negated=True)
                        ),
                        name="record_awaiting_inspection",
                    ),
                    Index(
                        "store",
                        "patterns_tried",
                        condition=Q(
                            ("erased_at__isnull", True),
                            Q(Q(("subject__isnull", True), ("subject_source", "")), ("ticket", ""), _connector="OR"),
                        ),
                        name="record_patterns_to_try",
                    ),
                    Index("session_id", condition=Q(("is_forgotten", True)), name="record_forgotten"),
                    Index(
                        OpClass(Lower(Left("session_id", 200)), name="text_pattern_ops"),
                        name="record_session_id_prefix",
                    ),
                    GinIndex(
                        Grams("ticket"),
                        condition=Q(("ticket", ""), _negated=True),
                        fastupdate=False,
                        name="record_ticket_grams",
                    ),
                    GinIndex(
                        condition=Q(("labels", []), _negated=True),
                        fastupdate=False,
                        fields=["labels"],
                        name="record_labels",
                    ),
                ],
                "constraints": [
                    UniqueConstraint(fields=("store", "session_id"), name="session_record_key"),
                    UniqueConstraint(fields=("store", "session_id", "erased_at"), name="session_record_fence"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Redaction",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("record_id", models.UUIDField(null=True)),
                ("session_id", models.CharField(default="")),
                ("item_id", models.CharField(default="", max_length=64)),
                ("item_mark", models.CharField(default="", max_length=64)),
                ("is_limited", models.BooleanField(db_default=False, default=False)),
                ("shown", models.JSONField(db_default={}, default=dict)),
                ("shown_places", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "text",
                    models.TextField(
                        default="",
                        help_text="Empty if all text of an item is redacted, and after the redaction has ended.",
                    ),
                ),
                ("takes_all", models.BooleanField(default=False)),
                ("takes_compactions", models.BooleanField(default=False)),
                ("reason", models.CharField(max_length=40)),
                ("requested_at", models.DateTimeField(db_default=Now())),
                (
                    "expires_at",
                    models.DateTimeField(help_text="The redaction is cancelled if it has not started by this time."),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                ("needs_approval", models.BooleanField(db_default=False, default=False)),
                ("approved_at", models.DateTimeField(null=True)),
                ("approved_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("requested_by", models.ForeignKey(USER, SET_NULL, null=True)),
                ("run", models.OneToOneField("runs.run", PROTECT, related_name="redaction")),
                (
                    "subject",
                    models.ForeignKey(
                        "sessions_app.subject", CASCADE, db_constraint=False, null=True, related_name="+"
                    ),
                ),
            ],
            options={
                "permissions": [("redact_content", "Can redact text in sessions")],
                "default_permissions": [],
                "indexes": [
                    Index(fields=["-requested_at", "-id"], name="redaction_newest"),
                    Index(
                        condition=Q(("ended_at__isnull", True)), fields=["requested_at"], name="redaction_unfinished"
                    ),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(("ended_at__isnull", True), ("text", ""), _connector="OR"),
                        name="ended_redaction_forgets_its_text",
                    ),
                    CheckConstraint(
                        condition=Q(
                            ("approved_by__isnull", True),
                            Q(("approved_by", F("requested_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="redaction_approved_by_a_second_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SubjectAlias",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=SUBJECT_KINDS, default="user", max_length=16)),
                ("key", models.CharField(max_length=512)),
                ("is_primary", models.BooleanField(default=False)),
                ("source", models.CharField(choices=SOURCES, db_default="", editable=False, max_length=8)),
                ("subject", models.ForeignKey("sessions_app.subject", CASCADE, related_name="aliases")),
            ],
            options={
                "verbose_name_plural": "subject aliases",
                "ordering": ["-is_primary", "kind", "key", "pk"],
                "indexes": [GinIndex(Grams("key"), name="alias_key_grams")],
                "constraints": [
                    UniqueConstraint(fields=("kind", "key"), name="alias_names_one_subject"),
                    UniqueConstraint(condition=Q(("is_primary", True)), fields=("subject",), name="one_primary_alias"),
                ],
            },
        ),
        migrations.CreateModel(
            name="TextSearch",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("text", models.CharField(max_length=500)),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("searched_by", models.ForeignKey(USER, CASCADE)),
            ],
            options={"verbose_name_plural": "text searches"},
        ),
        migrations.CreateModel(
            name="SessionIdPattern",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField(default=0)),
                ("name", models.CharField(max_length=64)),
                ("pattern", models.CharField(max_length=300, validators=[validate_pattern])),
                ("subject_kind", models.CharField(choices=SUBJECT_KINDS, default="user", max_length=16)),
                ("store", models.ForeignKey("sessions_app.sessionstore", CASCADE, related_name="patterns")),
            ],
            options={
                "verbose_name": "session ID pattern",
                "ordering": ["store", "position", "pk"],
                "constraints": [UniqueConstraint(fields=("store", "name"), name="pattern_name_in_store")],
            },
        ),
    ]
