from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """What is approved is held against what else is approved, once for each text."""

    dependencies = [
        ("memories_app", "0014_govern_what_memories_rest_on"),
        ("sessions_app", "0015_who_named_an_id"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="memory",
            name="compared_hash",
            field=models.CharField(db_default="", default="", editable=False, max_length=64),
        ),
        migrations.AddField(
            model_name="memory",
            name="compared_under",
            field=models.UUIDField(editable=False, null=True),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("id"),
                condition=models.Q(
                    ("status", "approved"), models.Q(("compared_hash", models.F("content_hash")), _negated=True)
                ),
                name="memory_to_compare",
            ),
        ),
    ]
