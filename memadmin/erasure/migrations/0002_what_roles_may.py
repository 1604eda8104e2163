from django.db import migrations

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    """Compliance handles and approves requests of people."""

    dependencies = [("erasure", "0001_requests"), ("memories_app", "0004_what_roles_may")]
    operations = [
        give(
            {
                "compliance": ["erasure.view_request", "erasure.handle_request", "erasure.approve_request"],
            }
        ),
    ]
