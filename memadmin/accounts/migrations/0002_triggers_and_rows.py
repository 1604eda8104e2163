from django.db import migrations

from memadmin.accounts.roles import give
from memadmin.migrating import InstallTriggers

LOG = ["audit.view_auditevent", "audit.export_log", "audit.verify_log"]


class Migration(migrations.Migration):
    """The roles, with their permissions for people, grants and the log; later changes of users and roles are recorded."""

    dependencies = [
        ("accounts", "0001_model_tables"),
        ("audit", "0002_triggers_and_rows"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        give(
            {
                "support": ["accounts.request_grant"],
                "reviewer": ["accounts.request_grant"],
                "compliance": ["accounts.request_grant", "accounts.decide_grant", *LOG, "audit.erase_beside_log"],
                "auditor": [*LOG, "accounts.view_people"],
                "administrator": [
                    "auth.add_user",
                    "auth.change_user",
                    "auth.view_user",
                    "auth.view_group",
                    "accounts.view_people",
                    "accounts.view_system",
                ],
            }
        ),
        InstallTriggers(),
    ]
