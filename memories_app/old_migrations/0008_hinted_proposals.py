from django.db import migrations, models


class Migration(migrations.Migration):
    """Of what waits, that which says what another memory says or the opposite: looked for by itself."""

    dependencies = [("memories_app", "0007_consolidation")]

    operations = [
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("awaiting_since"),
                models.F("id"),
                condition=models.Q(status__in=["proposed", "needs_revalidation"]) & ~models.Q(hints=[]),
                name="memory_awaiting_hinted",
            ),
        ),
    ]
