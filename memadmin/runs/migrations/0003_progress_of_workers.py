from django.db import migrations

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """Progress of runs is written by workers alone, and requesters are proven."""

    while_older_runs = "Not safe: its web server requests runs without a proof, which the database refuses."

    dependencies = [("runs", "0001_model_tables"), ("audit", "0003_proven_and_named_actors")]

    operations = [RunFile("runs", "workers_alone.sql"), InstallTriggers("Run")]
