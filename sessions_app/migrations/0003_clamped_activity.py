from django.db import migrations

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """The registry has no time of activity that Python cannot represent."""

    while_older_runs = "Safe: a trigger is added, which is called only for such a time."

    dependencies = [("sessions_app", "0002_triggers_and_rows")]

    operations = [
        RunFile("sessions_app", "clamp_activity.sql"),
        InstallTriggers("SessionRecord"),
    ]
