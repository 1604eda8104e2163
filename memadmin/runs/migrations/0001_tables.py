"""Runs of long work, and who may see and control them."""

import uuid
from typing import ClassVar

import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0002_first_roles"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    # From there on, what roles may is recorded, by functions of apps above this one.
    run_before: ClassVar = [("accounts", "0003_triggers")]

    operations = [
        migrations.CreateModel(
            name="Run",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        unique=True,
                    ),
                ),
                ("kind", models.CharField(max_length=40)),
                ("parameters", models.JSONField(db_default={}, default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("paused", "paused"),
                            ("stopped", "stopped"),
                            ("cancelled", "cancelled"),
                            ("failed", "failed"),
                            ("complete", "complete"),
                            ("exceptions", "completed with exceptions"),
                        ],
                        db_default="waiting",
                        default="waiting",
                        max_length=20,
                    ),
                ),
                ("cursor", models.JSONField(db_default={}, default=dict)),
                ("done", models.BigIntegerField(db_default=0, default=0)),
                ("total", models.BigIntegerField(null=True)),
                ("counters", models.JSONField(db_default={}, default=dict)),
                ("exceptions", models.JSONField(db_default=[], default=list)),
                ("requested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("started_at", models.DateTimeField(null=True)),
                ("chunk_at", models.DateTimeField(help_text="when the last chunk was written", null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("worked_ms", models.BigIntegerField(db_default=0, default=0)),
                ("token", models.BigIntegerField(db_default=0, default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                ("worker", models.CharField(blank=True, db_default="", default="", max_length=100)),
                ("attempts", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("retry_at", models.DateTimeField(null=True)),
                ("reason", models.CharField(blank=True, db_default="", default="", max_length=400)),
                ("rows_per_second", models.PositiveIntegerField(help_text="at most; empty for no limit", null=True)),
                (
                    "reason_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("view_run", "Can view background runs"),
                    ("control_run", "Can pause, resume, cancel and limit background runs"),
                ],
                "default_permissions": [],
            },
        ),
        migrations.CreateModel(
            name="RunLog",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("text", models.CharField(max_length=500)),
                (
                    "run",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="log", to="runs.run"),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "default_permissions": [],
            },
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                models.F("number"), condition=models.Q(("ended_at__isnull", True)), name="run_unfinished"
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("state__in", ["waiting", "running", "paused", "stopped"])),
                    models.Q(
                        ("ended_at__isnull", False), ("state__in", ["cancelled", "failed", "complete", "exceptions"])
                    ),
                    _connector="OR",
                ),
                name="run_state_says_whether_it_ended",
            ),
        ),
        give(
            {
                "compliance": ["runs.view_run", "runs.control_run"],
                "administrator": ["runs.view_run", "runs.control_run"],
            }
        ),
    ]
