from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """An index of their own for the ids of erased sessions, and the function that looks there."""

    # Agents register sessions meanwhile.
    atomic = False
    dependencies = [("sessions_app", "0010_who_reopens_subjects")]
    operations = [
        AddIndexConcurrently(
            model_name="sessionrecord",
            index=models.Index("session_id", condition=models.Q(is_forgotten=True), name="record_forgotten"),
        ),
        RunFile("sessions_app", "tombstones.sql"),
    ]
