from django.db import migrations

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """Changes of the registry are recorded, and the log knows the roles of agents."""

    dependencies = [("sessions_app", "0002_tables")]
    operations = [InstallTriggers(), RunFile("sessions_app", "agents_roles.sql")]
