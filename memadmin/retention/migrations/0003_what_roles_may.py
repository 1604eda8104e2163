from django.db import migrations

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    """Compliance places and releases holds."""

    dependencies = [("retention", "0002_hold_guards"), ("memories_app", "0004_what_roles_may")]
    operations = [
        give({"compliance": ["retention.view_hold", "retention.place_hold", "retention.release_hold"]}),
    ]
