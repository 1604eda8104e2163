from django.db import migrations

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """The gate stands, changes are recorded, and agents see and add what row policies allow."""

    dependencies = [("memories_app", "0002_tables")]
    operations = [InstallTriggers(), RunFile("memories_app", "row_policies.sql")]
