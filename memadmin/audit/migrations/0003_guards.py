from django.db import migrations

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """The triggers of the log's tables: events are stamped, and nothing is changed afterwards."""

    dependencies = [("audit", "0002_log_tables")]
    operations = [InstallTriggers(), RunFile("audit", "insert_only.sql")]
