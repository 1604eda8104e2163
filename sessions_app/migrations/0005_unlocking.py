import uuid

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """Sessions are unlocked by requests that a second person approved; the database refuses anything else."""

    while_older_runs = "Not safe: an older version unlocks sessions without a request, which is refused from now on."

    dependencies = [
        ("accounts", "0003_approvals"),
        ("sessions_app", "0004_redactions_with_approvals"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="UnlockRequest",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                (
                    "requested_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "sessions",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("case_closed", "the case is closed"),
                            ("mistake", "locked by mistake"),
                            ("not_sensitive", "the content is not sensitive any more"),
                            ("needed", "needed for daily work"),
                            ("legal", "legal matter"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "purpose",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("customer_case", "customer support"),
                            ("quality", "answer quality"),
                            ("incident", "incident"),
                            ("subject_request", "data-subject request (access or erasure)"),
                            ("legal", "legal matter"),
                            ("check", "access review"),
                        ],
                        max_length=16,
                    ),
                ),
                ("unlocked_at", models.DateTimeField(editable=False, null=True)),
                ("unlocked_count", models.PositiveIntegerField(db_default=0, default=0, editable=False)),
                (
                    "approval",
                    models.OneToOneField(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="accounts.approval",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["-requested_at", "-id"], name="unlock_request_newest"),
                    models.Index(
                        models.F("approval"),
                        condition=models.Q(("unlocked_at__isnull", True)),
                        name="unlock_request_open",
                    ),
                ],
            },
        ),
        RunFile("sessions_app", "unlocking.sql"),
        InstallTriggers("SessionRecord", "SessionStore", "UnlockRequest"),
    ]
