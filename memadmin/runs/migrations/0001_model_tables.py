import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.models import CASCADE, SET_NULL, CheckConstraint, Index, Q
from django.db.models.functions import Now

from memadmin.accounts.roles import give

USER = settings.AUTH_USER_MODEL


class Migration(migrations.Migration):
    """Runs of long work, with the permissions to see and control them."""

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(USER),
    ]

    # After it changes of roles are recorded, by functions of apps above this one.
    run_before: ClassVar = [("accounts", "0002_triggers_and_rows")]

    operations = [
        migrations.CreateModel(
            name="Run",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("id", models.UUIDField(db_default=RandomUUID(), default=uuid.uuid4, editable=False, unique=True)),
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
                ("requested_at", models.DateTimeField(db_default=Now())),
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
                ("reason_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("requested_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
            ],
            options={
                "permissions": [
                    ("view_run", "Can view background runs"),
                    ("control_run", "Can pause, resume, cancel and limit background runs"),
                ],
                "default_permissions": [],
                "indexes": [
                    Index("number", condition=Q(("ended_at__isnull", True)), name="run_unfinished"),
                    Index(fields=["kind", "-number"], name="run_of_kind"),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(
                            Q(("ended_at__isnull", True), ("state__in", ["waiting", "running", "paused", "stopped"])),
                            Q(
                                ("ended_at__isnull", False),
                                ("state__in", ["cancelled", "failed", "complete", "exceptions"]),
                            ),
                            _connector="OR",
                        ),
                        name="run_state_says_whether_it_ended",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RunLog",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=Now())),
                ("text", models.CharField(max_length=500)),
                ("run", models.ForeignKey("runs.run", CASCADE, related_name="log")),
            ],
            options={"ordering": ["-pk"], "default_permissions": []},
        ),
        give(
            {
                "compliance": ["runs.view_run", "runs.control_run"],
                "administrator": ["runs.view_run", "runs.control_run"],
            }
        ),
    ]
