from django.db import migrations

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """Events are stamped, and nothing is changed afterwards."""

    dependencies = [("audit", "0001_model_tables")]
    operations = [InstallTriggers(), RunFile("audit", "insert_only.sql")]
