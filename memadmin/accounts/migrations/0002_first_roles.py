from django.db import migrations

from memadmin.accounts.roles import give

LOG = ["audit.view_auditevent", "audit.export_log", "audit.verify_log"]


class Migration(migrations.Migration):
    """The roles, with what they may do with people, grants and the log; later apps give them theirs."""

    dependencies = [
        ("audit", "0003_guards"),
        ("accounts", "0001_tables"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        give(
            {
                "support": ["accounts.request_grant"],
                "reviewer": ["accounts.request_grant"],
                "compliance": [
                    "accounts.request_grant",
                    "accounts.decide_grant",
                    *LOG,
                    "audit.erase_beside_log",
                ],
                "auditor": LOG,
                "administrator": ["auth.add_user", "auth.change_user", "auth.view_user", "auth.view_group"],
            }
        )
    ]
