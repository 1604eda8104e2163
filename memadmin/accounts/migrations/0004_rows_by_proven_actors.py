from django.db import migrations

from memadmin.migrating import DropFunctions, InstallTriggers


class Migration(migrations.Migration):
    """Rows of this app are changed by proven actors alone."""

    while_older_runs = (
        "Not safe: an older version names no actor before it writes some of these tables, and is refused."
    )

    dependencies = [("accounts", "0003_approvals"), ("audit", "0004_rows_by_proven_actors")]

    operations = [InstallTriggers(), DropFunctions("memadmin_account_is_proven")]
