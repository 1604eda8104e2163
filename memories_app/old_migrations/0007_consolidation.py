from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    """How a proposal stands to others, and what comes to its end or back to the queue."""

    dependencies = [("memories_app", "0006_index_for_each_filter")]

    operations = [
        migrations.AddField(
            model_name="memory",
            name="hints",
            field=ArrayField(
                models.CharField(max_length=20), db_default=models.Value("{}"), default=list, editable=False
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("valid_until"),
                condition=models.Q(status="approved", valid_until__isnull=False),
                name="memory_ends",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("revalidate_on"),
                condition=models.Q(status="approved", revalidate_on__isnull=False),
                name="memory_to_revalidate",
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("decided_at"),
                condition=models.Q(status="approved", is_verified=False),
                name="memory_unverified",
            ),
        ),
    ]
