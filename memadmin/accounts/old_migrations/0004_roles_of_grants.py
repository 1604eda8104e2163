"""Who asks for grants, who decides on them, and who locks sessions."""

from django.db import migrations

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_grants"),
        ("sessions_app", "0004_sensitive_sessions"),
    ]

    operations = [
        give(
            {
                "support": ["accounts.request_grant"],
                "reviewer": ["accounts.request_grant"],
                "compliance": ["accounts.request_grant", "accounts.decide_grant", "sessions_app.mark_sensitive"],
            }
        )
    ]
