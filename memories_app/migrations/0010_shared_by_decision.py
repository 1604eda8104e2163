from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.functions import Cast, Coalesce


class Migration(migrations.Migration):
    """The index for lists of shared memories, built while agents recall and propose."""

    atomic = False
    dependencies = [("memories_app", "0009_saved_views_of_all_lists")]
    operations = [
        AddIndexConcurrently(
            model_name="memory",
            index=models.Index(
                Coalesce("decided_at", Cast(models.Value("-infinity"), models.DateTimeField())).desc(),
                models.F("id").desc(),
                condition=models.Q(subject__isnull=True, status="approved"),
                name="memory_shared_by_decision",
            ),
        ),
    ]
