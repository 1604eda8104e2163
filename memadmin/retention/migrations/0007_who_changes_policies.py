from django.db import migrations

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    """Compliance sees, changes and approves retention policies."""

    dependencies = [("retention", "0006_policies")]
    operations = [
        give({"compliance": ["retention.view_policy", "retention.change_policy", "retention.approve_policy"]}),
    ]
