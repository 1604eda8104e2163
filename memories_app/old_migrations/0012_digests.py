import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    """That reviewers were told how their queue stands, and who does not want to be."""

    dependencies = [
        ("memories_app", "0011_vector_notes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="NoDigest",
            fields=[
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Digest",
            fields=[
                (
                    "id",
                    models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False),
                ),
                ("on", models.DateField()),
                ("way", models.CharField(choices=[("mail", "e-mail"), ("webhook", "webhook")], max_length=8)),
                ("tries", models.PositiveIntegerField(db_default=0, default=0)),
                ("try_at", models.DateTimeField(db_default=Now())),
                ("sent_at", models.DateTimeField(null=True)),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("on", "way"), name="digest_once_a_day")]},
        ),
    ]
