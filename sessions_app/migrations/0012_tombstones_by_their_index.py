from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """The function that looks for tombstones uses their index."""

    dependencies = [("sessions_app", "0011_index_of_tombstones")]
    operations = [RunFile("sessions_app", "tombstones.sql")]
