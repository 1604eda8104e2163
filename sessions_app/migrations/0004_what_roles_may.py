from django.db import migrations

from memadmin.accounts.roles import give

SUPPORT = [
    "sessions_app.read_content",
    "sessions_app.attach_session",
    "sessions_app.merge_subject",
    "sessions_app.view_subject",
    "sessions_app.view_sessionstore",
    "sessions_app.reveal_personal_data",
]


class Migration(migrations.Migration):
    """What the roles may do with sessions, subjects and stores."""

    dependencies = [("accounts", "0003_triggers"), ("sessions_app", "0003_triggers")]

    operations = [
        give(
            {
                "support": SUPPORT,
                "reviewer": ["sessions_app.read_content", "sessions_app.view_subject"],
                "compliance": [*SUPPORT, "sessions_app.mark_sensitive", "sessions_app.redact_content"],
                "administrator": [
                    "sessions_app.add_sessionstore",
                    "sessions_app.change_sessionstore",
                    "sessions_app.view_sessionstore",
                    "sessions_app.add_sessionidpattern",
                    "sessions_app.change_sessionidpattern",
                    "sessions_app.delete_sessionidpattern",
                    "sessions_app.view_sessionidpattern",
                    "sessions_app.change_sessionrecord",
                    "sessions_app.view_sessionrecord",
                    "sessions_app.add_subject",
                    "sessions_app.change_subject",
                    "sessions_app.view_subject",
                    "sessions_app.add_subjectalias",
                    "sessions_app.change_subjectalias",
                    "sessions_app.delete_subjectalias",
                    "sessions_app.view_subjectalias",
                ],
            }
        )
    ]
