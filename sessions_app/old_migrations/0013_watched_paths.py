"""Paths with `*` of which every file or folder becomes a store."""

import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0012_redactions"),
    ]

    operations = [
        migrations.CreateModel(
            name="WatchedPath",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.SlugField(help_text="With which the names of its stores begin.", max_length=40, unique=True),
                ),
                ("kind", models.CharField(max_length=32)),
                ("options", models.JSONField(default=dict, help_text="of each store, with the path")),
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
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="watchedpath",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="watchedpath",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="watchedpath",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="watchedpath",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
    ]
