from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """What is under a hold is not deleted, by whatever path."""

    dependencies = [("retention", "0001_holds"), ("memories_app", "0003_triggers"), ("accounts", "0003_triggers")]
    operations = [RunFile("retention", "hold_triggers.sql")]
