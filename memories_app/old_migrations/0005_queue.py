from django.conf import settings
from django.db import migrations, models

WAITING = models.Q(status__in=["proposed", "needs_revalidation"])
TAKES_TWO = models.Q(subject__isnull=True) | ~models.Q(risk_flags=[])


class Migration(migrations.Migration):
    """What the review queue looks for by itself, and what undoing a decision puts back."""

    dependencies = [
        ("memories_app", "0004_roles"),
        ("sessions_app", "0014_register_sessions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(model_name="review", name="before", field=models.JSONField(null=True)),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("awaiting_since"), models.F("id"), condition=WAITING & TAKES_TWO, name="memory_awaiting_two"
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                models.F("claimed_by"), condition=models.Q(claimed_by__isnull=False), name="memory_claimed"
            ),
        ),
    ]
