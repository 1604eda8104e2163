from django.db import migrations

from memadmin.migrating import InstallTriggers


class Migration(migrations.Migration):
    """Rows of this app are changed by proven actors alone."""

    while_older_runs = (
        "Not safe: an older version names no actor before it writes some of these tables, and is refused."
    )

    dependencies = [("sessions_app", "0005_unlocking"), ("audit", "0004_rows_by_proven_actors")]

    operations = [InstallTriggers()]
