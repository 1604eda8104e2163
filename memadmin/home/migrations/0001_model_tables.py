from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.models import CASCADE, Q, UniqueConstraint
from django.db.models.functions import Now

USER = settings.AUTH_USER_MODEL


class Migration(migrations.Migration):
    """Counts of days, notifications that were read, and saved views of lists."""

    initial = True

    dependencies = [migrations.swappable_dependency(USER)]

    operations = [
        migrations.CreateModel(
            name="CountedDay",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("series", models.CharField(max_length=40)),
                ("day", models.DateField()),
                ("counted_at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
                "constraints": [UniqueConstraint(fields=("series", "day"), name="counted_day_key")],
            },
        ),
        migrations.CreateModel(
            name="DayCount",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("series", models.CharField(max_length=40)),
                ("day", models.DateField()),
                ("part", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("count", models.BigIntegerField()),
            ],
            options={
                "default_permissions": (),
                "constraints": [UniqueConstraint(fields=("series", "day", "part"), name="day_count_key")],
            },
        ),
        migrations.CreateModel(
            name="ReadNotification",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("digest", models.CharField(max_length=64)),
                ("read_at", models.DateTimeField(db_default=Now())),
                ("person", models.ForeignKey(USER, CASCADE, related_name="+")),
            ],
            options={
                "default_permissions": (),
                "constraints": [UniqueConstraint(fields=("person", "digest"), name="notification_read_once")],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.UUIDField(db_default=RandomUUID(), editable=False, primary_key=True, serialize=False)),
                ("list_name", models.CharField(max_length=60)),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(blank=True, db_default="", default="", max_length=1000)),
                ("is_default", models.BooleanField(db_default=False, default=False)),
                ("owner", models.ForeignKey(USER, CASCADE, related_name="+")),
            ],
            options={
                "ordering": ["name", "pk"],
                "default_permissions": (),
                "constraints": [
                    UniqueConstraint(fields=("owner", "list_name", "name"), name="view_name_once"),
                    UniqueConstraint(
                        condition=Q(("is_default", True)), fields=("owner", "list_name"), name="one_default_view"
                    ),
                ],
            },
        ),
    ]
