import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """Decisions of a second person about grants and roles are rows of their own, with what was shown and proof of who
    decided; accounts and rights are changed by proven actors.
    """

    while_older_runs = "Not safe: an older version reads and writes the columns of decisions that are removed here."

    dependencies = [
        ("account", "0009_emailaddress_unique_primary_email"),
        ("accounts", "0002_triggers_and_rows"),
        ("audit", "0003_proven_and_named_actors"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Approval",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=32)),
                ("object_ref", models.UUIDField()),
                ("digest", models.CharField(max_length=64)),
                (
                    "asked_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "asked_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "decision",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("approved", "approved"),
                            ("rejected", "rejected"),
                            ("withdrawn", "withdrawn"),
                            ("void", "void: what it was about has changed"),
                            ("not_needed", "no second person was required"),
                        ],
                        db_default="",
                        default="",
                        max_length=16,
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("decided_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        models.F("kind"),
                        models.F("asked_at"),
                        condition=models.Q(("decision", "")),
                        name="approval_waiting",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decision", "approved"), _negated=True),
                            models.Q(("decided_by", models.F("asked_by")), _negated=True),
                            ("decided_by__isnull", True),
                            _connector="OR",
                        ),
                        name="approval_by_another_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at__isnull", True), ("decision", "")),
                            models.Q(models.Q(("decision", ""), _negated=True), ("decided_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="approval_decided_at_a_time",
                    ),
                ],
            },
        ),
        *(
            migrations.AddField(
                model_name=name,
                name="approval",
                field=models.OneToOneField(
                    editable=False,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    to="accounts.approval",
                ),
            )
            for name in ("contentgrant", "rolerequest")
        ),
        RunFile("accounts", "approvals_of_before.sql"),
        migrations.RemoveConstraint(model_name="contentgrant", name="grant_not_decided_by_requester"),
        migrations.RemoveConstraint(model_name="rolerequest", name="role_request_granted_by_another"),
        migrations.RemoveIndex(model_name="rolerequest", name="role_request_waiting"),
        migrations.RemoveIndex(model_name="rolerequest", name="role_request_newest"),
        migrations.RemoveField(model_name="contentgrant", name="decided_at"),
        migrations.RemoveField(model_name="contentgrant", name="decided_by"),
        migrations.RemoveField(model_name="rolerequest", name="decided_at"),
        migrations.RemoveField(model_name="rolerequest", name="decided_by"),
        migrations.RemoveField(model_name="rolerequest", name="granted_at"),
        migrations.RemoveField(model_name="rolerequest", name="requested_at"),
        migrations.RemoveField(model_name="rolerequest", name="requested_by"),
        RunFile("accounts", "approvals.sql"),
        *(
            migrations.CreateModel(
                name=name,
                fields=[],
                options={"proxy": True, "default_permissions": (), "indexes": [], "constraints": []},
                bases=(base,),
            )
            for name, base in (
                ("CompanyAccount", "socialaccount.socialaccount"),
                ("GovernedFactor", "mfa.authenticator"),
                ("SignInAddress", "account.emailaddress"),
            )
        ),
        RunFile("accounts", "proven_accounts.sql"),
        InstallTriggers(),
    ]
