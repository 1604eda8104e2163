from django.db import migrations

from memadmin.accounts.roles import give

LOG = ["audit.view_auditevent", "audit.export_log", "audit.verify_log"]


class Migration(migrations.Migration):
    """Compliance staff and auditors read, download and verify the audit log."""

    dependencies = [("accounts", "0005_govern_users_roles_and_grants"), ("audit", "0005_verify_permission")]

    operations = [give({"compliance": LOG, "auditor": LOG})]
