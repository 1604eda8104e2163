from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories_app", "0005_queue"),
        ("sessions_app", "0014_register_sessions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("status"),
                models.OrderBy(models.F("proposed_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="memory_status_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("kind"),
                models.OrderBy(models.F("proposed_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="memory_kind_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("source"),
                models.OrderBy(models.F("proposed_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="memory_source_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.OrderBy(models.F("proposed_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                condition=models.Q(("subject__isnull", True)),
                name="memory_shared_newest",
            ),
        ),
    ]
