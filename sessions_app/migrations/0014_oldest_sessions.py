from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """An index for retention by the time of creation, built while agents register sessions."""

    atomic = False
    dependencies = [("sessions_app", "0013_patterns_fill_tickets")]
    operations = [
        AddIndexConcurrently(
            model_name="sessionrecord",
            index=models.Index(
                models.F("store"), models.F("registered_at"), models.F("id"), name="record_store_oldest"
            ),
        )
    ]
