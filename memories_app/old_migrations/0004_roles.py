from __future__ import annotations

from django.db import migrations

from memadmin.accounts import roles


class Migration(migrations.Migration):
    """Who may read, decide and stop."""

    dependencies = [("accounts", "0001_roles"), ("memories_app", "0003_row_policies")]
    operations = [
        roles.give(
            {
                "support": ["memories_app.read_memory", "memories_app.stop_learning"],
                "reviewer": [
                    "memories_app.read_memory",
                    "memories_app.review_memory",
                    "memories_app.retire_memory",
                    "memories_app.view_approvalrule",
                ],
                "compliance": [
                    "memories_app.read_memory",
                    "memories_app.review_memory",
                    "memories_app.retire_memory",
                    "memories_app.stop_learning",
                    "memories_app.view_approvalrule",
                    "memories_app.add_approvalrule",
                    "memories_app.change_approvalrule",
                ],
            }
        )
    ]
