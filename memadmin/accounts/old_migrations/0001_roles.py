"""The first roles; what they may today is in `roles.py`."""

from django.db import migrations

from memadmin.accounts.roles import give

SUPPORT = [
    "sessions_app.read_content",
    "sessions_app.attach_session",
    "sessions_app.merge_subject",
    "sessions_app.view_subject",
    "sessions_app.view_sessionstore",
]

ROLES = {
    "support": SUPPORT,
    "reviewer": ["sessions_app.read_content", "sessions_app.view_subject"],
    "compliance": SUPPORT,
    "auditor": [],
    "administrator": [
        "auth.add_user",
        "auth.change_user",
        "auth.view_user",
        "auth.view_group",
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


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("sessions_app", "0002_registry"),
    ]

    operations = [give(ROLES)]
