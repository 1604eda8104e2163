import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import pgtrigger.compiler
from django.conf import settings
from django.db import migrations, models

import sessions_app.models.grams
import sessions_app.models.stores


class Migration(migrations.Migration):
    """Which sessions exist, in which store, about whom; and what was found in them."""

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("runs", "0001_tables"),
        ("sessions_app", "0001_functions"),
    ]

    operations = [
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
            name="Subject",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
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
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "ordering": ["created_at", "id"],
                "permissions": [("merge_subject", "Can merge subjects and undo merges")],
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("created_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        condition=models.Q(("merged_into__isnull", True)),
                        name="subject_standing_newest",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("merged_into", models.F("id")), _negated=True),
                        name="subject_not_merged_into_itself",
                    )
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_agents_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (memadmin_through_us())",
                            execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '', 'agents')",
                            func="RETURN NULL;",
                            hash="a6473103221557ef9c97a5d18cb0277a3722f0dd",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_agents_insert_b2610",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="sessions_app_subject",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT (memadmin_through_us()))",
                            execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '')",
                            func="RETURN NULL;",
                            hash="d725f1a321264b2535783eb65ff1345e4dc1d443",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_548d8",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="sessions_app_subject",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '')",
                            func="RETURN NULL;",
                            hash="a756e8fd01f9725b81330a8c01187b2caa627dcb",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_61e60",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="sessions_app_subject",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_agents_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (memadmin_through_us())",
                            execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '', 'agents')",
                            func="RETURN NULL;",
                            hash="958f49e65204468688e71a259f7a371c3e561abe",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_agents_delete_14343",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="sessions_app_subject",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT (memadmin_through_us()))",
                            execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '')",
                            func="RETURN NULL;",
                            hash="328d386ac98f78fb906cf9970b04af34f1fabb94",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_2e492",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="sessions_app_subject",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('subject', 'sessions_app.subject', 'id', 'uuid', 'id', 'merged_into_id', '')",
                            func="RETURN NULL;",
                            hash="bb4ad1f3cfa10139a0ae3a2e353667837cdb4424",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_8d229",
                            table="sessions_app_subject",
                            when="AFTER",
                        ),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SubjectAlias",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "subject",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="aliases", to="sessions_app.subject"
                    ),
                ),
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
                    "source",
                    models.CharField(
                        choices=[
                            ("client", "registered by the agent"),
                            ("import", "named in an import"),
                            ("pattern", "read from the session id"),
                            ("operator", "attached by hand"),
                        ],
                        db_default="",
                        editable=False,
                        max_length=8,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "subject aliases",
                "ordering": ["-is_primary", "kind", "key", "pk"],
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        sessions_app.models.grams.Grams("key"), name="alias_key_grams"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "key"), name="alias_names_one_subject"),
                    models.UniqueConstraint(
                        condition=models.Q(("is_primary", True)), fields=("subject",), name="one_primary_alias"
                    ),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_agents_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (memadmin_through_us())",
                            execute="memadmin_note_rows('alias', 'sessions_app.subjectalias', 'id', 'ref', 'subject_id', 'subject_id,kind,key,is_primary', '', 'agents')",
                            func="RETURN NULL;",
                            hash="cd2c078aff49072123e542d53eeb964aaf4980bf",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_agents_insert_2ad31",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="sessions_app_subjectalias",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT (memadmin_through_us()))",
                            execute="memadmin_note_rows('alias', 'sessions_app.subjectalias', 'id', 'ref', 'subject_id', 'subject_id,kind,key,is_primary', '')",
                            func="RETURN NULL;",
                            hash="5960089b51117223074d881c104f1c39a8aeb6dc",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_7a88d",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="sessions_app_subjectalias",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('alias', 'sessions_app.subjectalias', 'id', 'ref', 'subject_id', 'subject_id,kind,key,is_primary', '')",
                            func="RETURN NULL;",
                            hash="e895e5be065bf62a5c92fd85d67a9935caf0c286",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_ead00",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="sessions_app_subjectalias",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('alias', 'sessions_app.subjectalias', 'id', 'ref', 'subject_id', 'subject_id,kind,key,is_primary', '')",
                            func="RETURN NULL;",
                            hash="963651e9a129b50bd2f8622259e01745f5c49b13",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_728fd",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="sessions_app_subjectalias",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('alias', 'sessions_app.subjectalias', 'id', 'ref', 'subject_id', 'subject_id,kind,key,is_primary', '')",
                            func="RETURN NULL;",
                            hash="373284704978bacf87f1858ee5cffad2654c967d",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_05256",
                            table="sessions_app_subjectalias",
                            when="AFTER",
                        ),
                    ),
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
                (
                    "subject",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sessions_app.subject",
                    ),
                ),
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
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("requested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "expires_at",
                    models.DateTimeField(help_text="The redaction is cancelled if it has not started by this time."),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="redaction", to="runs.run"
                    ),
                ),
            ],
            options={
                "permissions": [("redact_content", "Can redact text in sessions")],
                "default_permissions": [],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("ended_at__isnull", True), ("text", ""), _connector="OR"),
                        name="ended_redaction_forgets_its_text",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TextSearch",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("text", models.CharField(max_length=500)),
                (
                    "searched_by",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
            options={
                "verbose_name_plural": "text searches",
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
                (
                    "options",
                    models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict),
                ),
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
                        default=False,
                        help_text="Reading the content of sessions in this store needs a grant.",
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
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=63),
                        blank=True,
                        db_default=models.Value("{}"),
                        default=list,
                        size=None,
                    ),
                ),
                ("encryption_key", models.CharField(blank=True, db_default="", default="", max_length=40)),
                (
                    "encryption_ttl_seconds",
                    models.PositiveIntegerField(
                        db_default=600,
                        default=600,
                        help_text="Number of seconds after which agents no longer read an encrypted item.",
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
                        blank=True, db_default=models.Value({}, models.JSONField()), default=dict, editable=False
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "permissions": [
                    ("raw_edit", "Can edit agents' rows in raw edits"),
                    ("reveal_personal_data", "Can reveal masked values"),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('store', 'sessions_app.sessionstore', 'id', 'ref', '', 'name,kind,sessions_table,messages_table,options,writer_timezone,is_sensitive,fence_mode,agent_roles,attached_at,encryption_key,encryption_ttl_seconds,encryption_ids', '')",
                            func="RETURN NULL;",
                            hash="f43d897e7bf548c80f6eb72a6f6188c9cafc4f30",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_1558b",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="sessions_app_sessionstore",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('store', 'sessions_app.sessionstore', 'id', 'ref', '', 'name,kind,sessions_table,messages_table,options,writer_timezone,is_sensitive,fence_mode,agent_roles,attached_at,encryption_key,encryption_ttl_seconds,encryption_ids', '')",
                            func="RETURN NULL;",
                            hash="1f0e92c6da901dcc712ae90d00fe1e670397d442",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_02ef8",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="sessions_app_sessionstore",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('store', 'sessions_app.sessionstore', 'id', 'ref', '', 'name,kind,sessions_table,messages_table,options,writer_timezone,is_sensitive,fence_mode,agent_roles,attached_at,encryption_key,encryption_ttl_seconds,encryption_ids', '')",
                            func="RETURN NULL;",
                            hash="6179e40ec9c1d0368fb69bc765fb2c96b8f26964",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_63a65",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="sessions_app_sessionstore",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('store', 'sessions_app.sessionstore', 'id', 'ref', '', 'name,kind,sessions_table,messages_table,options,writer_timezone,is_sensitive,fence_mode,agent_roles,attached_at,encryption_key,encryption_ttl_seconds,encryption_ids', '')",
                            func="RETURN NULL;",
                            hash="407ac51961a73a3289e96cfd48fa174415d6c03c",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_388b5",
                            table="sessions_app_sessionstore",
                            when="AFTER",
                        ),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SessionIdPattern",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "store",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="patterns",
                        to="sessions_app.sessionstore",
                    ),
                ),
                ("position", models.PositiveSmallIntegerField(default=0)),
                ("name", models.CharField(max_length=64)),
                ("pattern", models.CharField(max_length=300, validators=[sessions_app.models.stores.validate_pattern])),
                (
                    "subject_kind",
                    models.CharField(
                        choices=[("user", "user"), ("project", "project"), ("tenant", "tenant")],
                        default="user",
                        max_length=16,
                    ),
                ),
            ],
            options={
                "ordering": ["store", "position", "pk"],
                "constraints": [models.UniqueConstraint(fields=("store", "name"), name="pattern_name_in_store")],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('pattern', 'sessions_app.sessionidpattern', 'id', 'ref', '', 'store_id,position,name,pattern,subject_kind', '')",
                            func="RETURN NULL;",
                            hash="a6992a9b4ef7c9c5798716319dbc64cf367b9806",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_cc8f4",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="sessions_app_sessionidpattern",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('pattern', 'sessions_app.sessionidpattern', 'id', 'ref', '', 'store_id,position,name,pattern,subject_kind', '')",
                            func="RETURN NULL;",
                            hash="9562f44877d3ac203c3635062e2b2fb9e903c54d",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_50583",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="sessions_app_sessionidpattern",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('pattern', 'sessions_app.sessionidpattern', 'id', 'ref', '', 'store_id,position,name,pattern,subject_kind', '')",
                            func="RETURN NULL;",
                            hash="ebcd2a92097c3890fac85fd312a7b5b55bbcda86",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_059dd",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="sessions_app_sessionidpattern",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('pattern', 'sessions_app.sessionidpattern', 'id', 'ref', '', 'store_id,position,name,pattern,subject_kind', '')",
                            func="RETURN NULL;",
                            hash="53bec8fe9ce0c5b9eacb6eaebee36d2c8a185e47",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_79c06",
                            table="sessions_app_sessionidpattern",
                            when="AFTER",
                        ),
                    ),
                ],
            },
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
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "default_permissions": [],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('watched_path', 'sessions_app.watchedpath', 'id', 'ref', '', 'name,kind,options,sessions_table,messages_table,writer_timezone', '')",
                            func="RETURN NULL;",
                            hash="236768773dc6aeec1c24c0c9c2eb062e3ba711a7",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_e1dca",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="sessions_app_watchedpath",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('watched_path', 'sessions_app.watchedpath', 'id', 'ref', '', 'name,kind,options,sessions_table,messages_table,writer_timezone', '')",
                            func="RETURN NULL;",
                            hash="2996cb5e240cc583d42d5a1a2b5e2e120bfa8abd",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_d0689",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="sessions_app_watchedpath",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('watched_path', 'sessions_app.watchedpath', 'id', 'ref', '', 'name,kind,options,sessions_table,messages_table,writer_timezone', '')",
                            func="RETURN NULL;",
                            hash="8949b2f5df6bd2f96ab2d50593529169bb83bcff",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_40b11",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="sessions_app_watchedpath",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('watched_path', 'sessions_app.watchedpath', 'id', 'ref', '', 'name,kind,options,sessions_table,messages_table,writer_timezone', '')",
                            func="RETURN NULL;",
                            hash="8ee1f6a52a16de4ee43f0876e4288d2d3ee9697d",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_3922c",
                            table="sessions_app_watchedpath",
                            when="AFTER",
                        ),
                    ),
                ],
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
                ("session_id", models.CharField(editable=False)),
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
                (
                    "is_sensitive",
                    models.BooleanField(
                        db_default=False, help_text="Reading the content of this session needs a grant."
                    ),
                ),
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
                ("change_mark", models.CharField(db_default="", editable=False, max_length=64)),
                ("missing_since", models.DateTimeField(editable=False, null=True)),
                ("expires_at", models.DateTimeField(editable=False, null=True)),
                ("erased_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "permissions": [
                    ("read_content", "Can read the content of sessions"),
                    ("attach_session", "Can attach sessions to a subject and label them"),
                    ("mark_sensitive", "Can lock and unlock sessions"),
                ],
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("last_activity_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="record_newest",
                    ),
                    models.Index(
                        models.F("store"),
                        models.OrderBy(models.F("last_activity_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="record_store_newest",
                    ),
                    models.Index(
                        models.OrderBy(models.F("last_activity_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        condition=models.Q(("erased_at__isnull", True), ("subject__isnull", True)),
                        name="record_unattached_newest",
                    ),
                    models.Index(
                        models.F("subject"),
                        models.OrderBy(models.F("last_activity_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        condition=models.Q(("subject__isnull", False)),
                        name="record_attached_newest",
                    ),
                    models.Index(
                        models.F("ticket"),
                        models.OrderBy(models.F("last_activity_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        condition=models.Q(("ticket", ""), _negated=True),
                        name="record_ticket_newest",
                    ),
                    models.Index(
                        models.F("agent"),
                        models.OrderBy(models.F("last_activity_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        condition=models.Q(("agent", ""), _negated=True),
                        name="record_agent_newest",
                    ),
                    models.Index(
                        models.OrderBy(models.F("last_activity_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        condition=models.Q(("finding_count__gt", 0)),
                        name="record_findings_newest",
                    ),
                    models.Index(
                        models.OrderBy(models.F("last_activity_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        condition=models.Q(("is_encrypted", True)),
                        name="record_encrypted_newest",
                    ),
                    models.Index(
                        models.OrderBy(models.F("last_activity_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        condition=models.Q(("is_sensitive", True)),
                        name="record_sensitive_newest",
                    ),
                    models.Index(
                        models.F("store"),
                        models.F("last_activity_at"),
                        models.F("id"),
                        condition=models.Q(
                            ("erased_at__isnull", True),
                            models.Q(("inspected_count", models.F("activity_count")), _negated=True),
                        ),
                        name="record_awaiting_inspection",
                    ),
                    models.Index(
                        models.F("store"),
                        models.F("patterns_tried"),
                        condition=models.Q(
                            ("erased_at__isnull", True), ("subject__isnull", True), ("subject_source", "")
                        ),
                        name="record_awaiting_patterns",
                    ),
                    models.Index(
                        django.contrib.postgres.indexes.OpClass(
                            django.db.models.functions.text.Lower(
                                django.db.models.functions.text.Left("session_id", 200)
                            ),
                            name="text_pattern_ops",
                        ),
                        name="record_session_id_prefix",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        sessions_app.models.grams.Grams("ticket"),
                        condition=models.Q(("ticket", ""), _negated=True),
                        fastupdate=False,
                        name="record_ticket_grams",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        condition=models.Q(("labels", []), _negated=True),
                        fastupdate=False,
                        fields=["labels"],
                        name="record_labels",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("store", "session_id"), name="session_record_key"),
                    models.UniqueConstraint(fields=("store", "session_id", "erased_at"), name="session_record_fence"),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_agents_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT memadmin_by_our_trigger() AND (memadmin_through_us()))",
                            execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '', 'agents')",
                            func="RETURN NULL;",
                            hash="41b69498e6ac705e52caa6c5a84e983dfb31f4df",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_agents_insert_9072b",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="sessions_app_sessionrecord",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT memadmin_by_our_trigger() AND NOT (memadmin_through_us()))",
                            execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '')",
                            func="RETURN NULL;",
                            hash="1e3a46109d4d125b11c67a92344424c8427094bf",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_f8ebf",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="sessions_app_sessionrecord",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_agents_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT memadmin_by_our_trigger() AND (memadmin_through_us()))",
                            execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '', 'agents')",
                            func="RETURN NULL;",
                            hash="75039f9cf3026b29b2d42f3c646c387155cd08b1",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_agents_update_32272",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="sessions_app_sessionrecord",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT memadmin_by_our_trigger() AND NOT (memadmin_through_us()))",
                            execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '')",
                            func="RETURN NULL;",
                            hash="97101aa52406540db6fdea2f5ba219a56344f2de",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_526d4",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="sessions_app_sessionrecord",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            condition="WHEN (NOT memadmin_by_our_trigger())",
                            execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '')",
                            func="RETURN NULL;",
                            hash="a3fd9caaeef0fd5672c01bfd7112bd204ca7b647",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_b5af9",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="sessions_app_sessionrecord",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('session', 'sessions_app.sessionrecord', 'id', 'uuid', 'subject_id', 'store_id,session_id,subject_id,subject_source,ticket,agent,labels,is_sensitive,erased_at', '')",
                            func="RETURN NULL;",
                            hash="d862c8a2ea473f7a7a5f43b1dacd4547c3ae6c47",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_3e603",
                            table="sessions_app_sessionrecord",
                            when="AFTER",
                        ),
                    ),
                ],
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
                (
                    "store",
                    models.ForeignKey(
                        db_constraint=False, on_delete=django.db.models.deletion.CASCADE, to="sessions_app.sessionstore"
                    ),
                ),
                ("event", models.CharField(max_length=32)),
                ("happened_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name_plural": "fence outbox",
            },
        ),
    ]
