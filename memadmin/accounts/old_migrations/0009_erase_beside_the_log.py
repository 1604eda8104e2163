from django.db import migrations

from memadmin.accounts import roles


class Migration(migrations.Migration):
    """Compliance staff erase what stands beside the log."""

    dependencies = [
        ("accounts", "0008_grant_notices"),
        ("audit", "0008_erase_beside_the_log"),
    ]

    operations = [roles.give({"compliance": ["audit.erase_beside_log"]})]
