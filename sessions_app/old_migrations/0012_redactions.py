"""Texts that are to be taken out of sessions, and who may ask for it."""

import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_roles"),
        ("sessions_app", "0011_sessions_that_go_by_themselves"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Redaction",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("record_id", models.UUIDField(null=True)),
                ("session_id", models.CharField(default="")),
                ("item_id", models.CharField(default="", max_length=64)),
                ("item_mark", models.CharField(default="", max_length=64)),
                (
                    "text",
                    models.TextField(default="", help_text="empty for all text of an item, and as soon as it is done"),
                ),
                ("takes_all", models.BooleanField(default=False)),
                ("takes_compactions", models.BooleanField(default=False)),
                ("reason", models.CharField(max_length=40)),
                ("requested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField(help_text="Not begun until then, it is not done any more.")),
                ("begun_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("done_until", models.JSONField(default=list)),
                ("report", models.JSONField(default=dict)),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
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
            ],
            options={
                "permissions": [("redact_content", "Can take text out of sessions for good")],
                "default_permissions": [],
                "indexes": [
                    models.Index(
                        models.F("requested_at"), condition=models.Q(("ended_at__isnull", True)), name="redaction_open"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("ended_at__isnull", True), ("text", ""), _connector="OR"),
                        name="ended_redaction_forgets_its_text",
                    )
                ],
            },
        ),
        give({"compliance": ["sessions_app.redact_content"]}),
    ]
