from django.db import migrations

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """Progress of runs is written by workers alone."""

    while_older_runs = (
        "Not safe: its web server adds runs about many sessions or proposals with a cursor, which is refused."
    )

    dependencies = [("runs", "0001_model_tables"), ("audit", "0003_actor_of_a_transaction")]

    operations = [RunFile("runs", "workers_alone.sql"), InstallTriggers("Run")]
