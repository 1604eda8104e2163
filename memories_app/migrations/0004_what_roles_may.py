from django.db import migrations

from memadmin.accounts.roles import give

REVIEW = [
    "memories_app.read_memory",
    "memories_app.review_memory",
    "memories_app.retire_memory",
    "memories_app.view_approvalrule",
]


class Migration(migrations.Migration):
    """What the roles may do with memories."""

    dependencies = [("sessions_app", "0004_what_roles_may"), ("memories_app", "0003_triggers")]

    operations = [
        give(
            {
                "support": ["memories_app.read_memory", "memories_app.stop_learning"],
                "reviewer": REVIEW,
                "compliance": [
                    *REVIEW,
                    "memories_app.stop_learning",
                    "memories_app.add_approvalrule",
                    "memories_app.change_approvalrule",
                    "memories_app.erase_version",
                ],
            }
        )
    ]
