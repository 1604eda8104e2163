import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    """Links with which a person sets the password of their account; auditors and administrators see the accounts."""

    dependencies = [
        ("accounts", "0005_account_access"),
        # Changes of roles are recorded, with functions of these.
        ("audit", "0004_proven_actors"),
        ("sessions_app", "0003_triggers"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                (
                    "made_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(editable=False, null=True)),
                (
                    "made_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [("view_people", "Can see accounts, their roles, second factors and open sessions")],
                "default_permissions": (),
            },
        ),
        give({"auditor": ["accounts.view_people"], "administrator": ["accounts.view_people"]}),
    ]
