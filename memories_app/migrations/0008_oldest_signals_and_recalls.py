from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Indexes for retention by age, built while agents recall and signal."""

    atomic = False
    dependencies = [("memories_app", "0007_erased_sources")]
    operations = [
        AddIndexConcurrently(
            model_name="recall",
            index=models.Index(models.F("recalled_at"), models.F("id"), name="recall_oldest"),
        ),
        AddIndexConcurrently(
            model_name="signal",
            index=models.Index(models.F("created_at"), models.F("id"), name="signal_oldest"),
        ),
    ]
