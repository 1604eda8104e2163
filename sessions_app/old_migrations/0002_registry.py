import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import sessions_app.models


class Migration(migrations.Migration):
    """Which sessions exist, in which store, about whom; and what was found in them."""

    initial = True

    dependencies = [
        ("sessions_app", "0001_lookup_function"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
            name="SessionStore",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=64, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("sqlalchemy", "SQLAlchemy tables")], default="sqlalchemy", max_length=32
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
                (
                    "writer_timezone",
                    models.CharField(
                        default="UTC",
                        help_text="The zone in which the agents' CURRENT_TIMESTAMP is written.",
                        max_length=64,
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
                ("patterns_version", models.PositiveIntegerField(default=0, editable=False)),
                ("attached_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "permissions": [("raw_edit", "Can edit the agents' own rows")],
            },
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
            options={
                "indexes": [models.Index(fields=["record_id", "id"], name="finding_by_record")],
            },
        ),
        migrations.CreateModel(
            name="FenceOutbox",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session_id", models.CharField()),
                ("event", models.CharField(max_length=32)),
                ("happened_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "store",
                    models.ForeignKey(
                        db_constraint=False, on_delete=django.db.models.deletion.CASCADE, to="sessions_app.sessionstore"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "fence outbox",
            },
        ),
        migrations.CreateModel(
            name="Subject",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "merged_into",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="merged",
                        to="sessions_app.subject",
                    ),
                ),
            ],
            options={
                "ordering": ["created_at", "id"],
                "permissions": [("merge_subject", "Can merge subjects and undo it")],
            },
        ),
        migrations.CreateModel(
            name="SessionRecord",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("session_id", models.CharField(editable=False)),
                (
                    "subject_source",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("client", "registered by the agent"),
                            ("import", "named in an import"),
                            ("pattern", "read from the session id"),
                            ("operator", "attached by hand"),
                        ],
                        db_default="",
                        max_length=8,
                    ),
                ),
                ("subject_epoch", models.PositiveIntegerField(db_default=0, editable=False)),
                ("ticket", models.CharField(blank=True, db_default="", max_length=200)),
                ("agent", models.CharField(blank=True, db_default="", max_length=200)),
                (
                    "labels",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=50), blank=True, db_default=models.Value("{}"), size=None
                    ),
                ),
                ("is_encrypted", models.BooleanField(db_default=False, editable=False)),
                ("finding_count", models.PositiveIntegerField(db_default=0, editable=False)),
                (
                    "registered_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "last_activity_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("activity_count", models.BigIntegerField(db_default=0, editable=False)),
                ("inspected_count", models.BigIntegerField(db_default=-1, editable=False)),
                ("patterns_tried", models.PositiveIntegerField(db_default=0, editable=False)),
                ("erased_at", models.DateTimeField(editable=False, null=True)),
                (
                    "store",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sessions",
                        to="sessions_app.sessionstore",
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sessions",
                        to="sessions_app.subject",
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("read_content", "Can read what was said in a session"),
                    ("attach_session", "Can attach sessions to a subject and label them"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SubjectAlias",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("user", "user"), ("project", "project"), ("tenant", "tenant")],
                        default="user",
                        max_length=16,
                    ),
                ),
                ("key", models.CharField(max_length=512)),
                ("is_primary", models.BooleanField(default=False)),
                (
                    "subject",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="aliases", to="sessions_app.subject"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "subject aliases",
                "ordering": ["-is_primary", "kind", "key", "pk"],
            },
        ),
        migrations.CreateModel(
            name="TextSearch",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("text", models.CharField(max_length=500)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "searched_by",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "verbose_name_plural": "text searches",
            },
        ),
        migrations.CreateModel(
            name="SessionIdPattern",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField(default=0)),
                ("name", models.CharField(max_length=64)),
                ("pattern", models.CharField(max_length=300, validators=[sessions_app.models.validate_pattern])),
                (
                    "subject_kind",
                    models.CharField(
                        choices=[("user", "user"), ("project", "project"), ("tenant", "tenant")],
                        default="user",
                        max_length=16,
                    ),
                ),
                (
                    "store",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="patterns",
                        to="sessions_app.sessionstore",
                    ),
                ),
            ],
            options={
                "ordering": ["store", "position", "pk"],
                "constraints": [models.UniqueConstraint(fields=("store", "name"), name="pattern_name_in_store")],
            },
        ),
        migrations.AddIndex(
            model_name="subject",
            index=models.Index(
                models.OrderBy(models.F("created_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                condition=models.Q(("merged_into__isnull", True)),
                name="subject_standing_newest",
            ),
        ),
        migrations.AddConstraint(
            model_name="subject",
            constraint=models.CheckConstraint(
                condition=models.Q(("merged_into", models.F("id")), _negated=True),
                name="subject_not_merged_into_itself",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                models.OrderBy(models.F("last_activity_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="record_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                models.F("store"),
                models.OrderBy(models.F("last_activity_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="record_store_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                models.OrderBy(models.F("last_activity_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                condition=models.Q(("erased_at__isnull", True), ("subject__isnull", True)),
                name="record_unattached_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                models.F("subject"),
                models.OrderBy(models.F("last_activity_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="record_subject_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                models.F("ticket"),
                models.OrderBy(models.F("last_activity_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                condition=models.Q(("ticket", ""), _negated=True),
                name="record_ticket_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                models.F("agent"),
                models.OrderBy(models.F("last_activity_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                condition=models.Q(("agent", ""), _negated=True),
                name="record_agent_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                models.OrderBy(models.F("last_activity_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                condition=models.Q(("finding_count__gt", 0)),
                name="record_findings_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                models.OrderBy(models.F("last_activity_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                condition=models.Q(("is_encrypted", True)),
                name="record_encrypted_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                models.F("store"),
                models.F("last_activity_at"),
                models.F("id"),
                condition=models.Q(
                    ("erased_at__isnull", True),
                    models.Q(("inspected_count", models.F("activity_count")), _negated=True),
                ),
                name="record_awaiting_inspection",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                models.F("store"),
                models.F("patterns_tried"),
                condition=models.Q(("erased_at__isnull", True), ("subject__isnull", True), ("subject_source", "")),
                name="record_awaiting_patterns",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.text.Lower(django.db.models.functions.text.Left("session_id", 200)),
                    name="text_pattern_ops",
                ),
                name="record_session_id_prefix",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=django.contrib.postgres.indexes.GinIndex(
                sessions_app.models.Grams("ticket"),
                condition=models.Q(("ticket", ""), _negated=True),
                fastupdate=False,
                name="record_ticket_grams",
            ),
        ),
        migrations.AddIndex(
            model_name="sessionrecord",
            index=django.contrib.postgres.indexes.GinIndex(
                condition=models.Q(("labels", []), _negated=True),
                fastupdate=False,
                fields=["labels"],
                name="record_labels",
            ),
        ),
        migrations.AddConstraint(
            model_name="sessionrecord",
            constraint=models.UniqueConstraint(fields=("store", "session_id"), name="session_record_key"),
        ),
        migrations.AddConstraint(
            model_name="sessionrecord",
            constraint=models.UniqueConstraint(
                fields=("store", "session_id", "erased_at"), name="session_record_fence"
            ),
        ),
        migrations.AddIndex(
            model_name="subjectalias",
            index=django.contrib.postgres.indexes.GinIndex(sessions_app.models.Grams("key"), name="alias_key_grams"),
        ),
        migrations.AddConstraint(
            model_name="subjectalias",
            constraint=models.UniqueConstraint(fields=("kind", "key"), name="alias_names_one_subject"),
        ),
        migrations.AddConstraint(
            model_name="subjectalias",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_primary", True)), fields=("subject",), name="one_primary_alias"
            ),
        ),
    ]
