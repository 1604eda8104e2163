from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories_app", "0020_agents_told_apart"),
        ("sessions_app", "0016_agents_told_apart"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("kind"),
                models.F("awaiting_since"),
                models.F("id"),
                condition=models.Q(("status__in", ["proposed", "needs_revalidation"])),
                name="memory_awaiting_kind",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("source"),
                models.F("awaiting_since"),
                models.F("id"),
                condition=models.Q(("status__in", ["proposed", "needs_revalidation"])),
                name="memory_awaiting_source",
            ),
        ),
    ]
