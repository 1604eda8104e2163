from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """A function for triggers of rows that proven actors alone change; names and details are erased by such an event."""

    while_older_runs = "Safe: functions alone, which an older version calls as a proven actor."

    dependencies = [("audit", "0003_proven_and_named_actors")]

    operations = [RunFile("audit", "proofs.sql"), RunFile("audit", "erase.sql")]
