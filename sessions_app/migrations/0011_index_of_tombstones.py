from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """An index of their own for the ids of erased sessions, built while agents register sessions."""

    atomic = False
    dependencies = [("sessions_app", "0010_who_reopens_subjects")]
    operations = [
        AddIndexConcurrently(
            model_name="sessionrecord",
            index=models.Index("session_id", condition=models.Q(is_forgotten=True), name="record_forgotten"),
        )
    ]
