from django.db import migrations

from memadmin.migrating import InstallTriggers


class Migration(migrations.Migration):
    """Changes of users, roles and grants are recorded."""

    dependencies = [("audit", "0003_guards"), ("accounts", "0002_first_roles")]
    operations = [InstallTriggers()]
