from django.db import migrations

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """Rows of this app are changed by proven actors alone."""

    while_older_runs = (
        "Not safe: an older version names no actor before it writes some of these tables, and is refused."
    )

    dependencies = [("runs", "0003_progress_of_workers"), ("audit", "0004_rows_by_proven_actors")]

    operations = [RunFile("runs", "workers_alone.sql"), InstallTriggers()]
