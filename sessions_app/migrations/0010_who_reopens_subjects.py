from django.db import migrations

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    """Compliance allows a new start under an erased id."""

    dependencies = [("sessions_app", "0009_erased_subjects"), ("memories_app", "0004_what_roles_may")]
    operations = [give({"compliance": ["sessions_app.reopen_subject"]})]
