from django.db import migrations

from memadmin.accounts.roles import give
from memadmin.migrating import InstallTriggers, RunFile

SUPPORT = [
    "sessions_app.read_content",
    "sessions_app.attach_session",
    "sessions_app.merge_subject",
    "sessions_app.view_subject",
    "sessions_app.view_sessionstore",
    "sessions_app.reveal_personal_data",
]


class Migration(migrations.Migration):
    """Changes of the registry are recorded, agents register sessions, and erased ones stay out; permissions for both."""

    dependencies = [("accounts", "0002_triggers_and_rows"), ("sessions_app", "0001_model_tables")]

    operations = [
        RunFile("sessions_app", "item_words.sql"),
        RunFile("sessions_app", "register_session.sql"),
        RunFile("sessions_app", "tombstones.sql"),
        RunFile("sessions_app", "erased_subjects.sql"),
        RunFile("sessions_app", "tombstone_rows.sql"),
        # The log, which records what follows, asks for it.
        RunFile("sessions_app", "agents_roles.sql"),
        InstallTriggers(),
        give(
            {
                "support": SUPPORT,
                "reviewer": ["sessions_app.read_content", "sessions_app.view_subject"],
                "compliance": [
                    *SUPPORT,
                    "sessions_app.mark_sensitive",
                    "sessions_app.redact_content",
                    "sessions_app.reopen_subject",
                ],
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
        ),
    ]
