from __future__ import annotations

from django.db import migrations

from memadmin.accounts import roles


class Migration(migrations.Migration):
    """Who may erase the text of one version."""

    dependencies = [("accounts", "0001_roles"), ("memories_app", "0016_versions_are_only_erased")]
    operations = [roles.give({"compliance": ["memories_app.erase_version"]})]
