from django.db import migrations, models

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """An index of their own for the ids of erased sessions, and the function that looks there."""

    dependencies = [("sessions_app", "0010_who_reopens_subjects")]
    operations = [
        migrations.AddIndex(
            model_name="sessionrecord",
            index=models.Index("session_id", condition=models.Q(is_forgotten=True), name="record_forgotten"),
        ),
        RunFile("sessions_app", "tombstones.sql"),
    ]
