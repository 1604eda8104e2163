import django.db.models.deletion
from django.db import migrations, models

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """Decisions about releases of holds are approvals."""

    while_older_runs = "Not safe: an older version reads and writes the columns of decisions that are removed here."

    dependencies = [("accounts", "0003_approvals"), ("retention", "0002_triggers_and_rows")]

    operations = [
        migrations.AddField(
            model_name="legalhold",
            name="approval",
            field=models.OneToOneField(
                editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, to="accounts.approval"
            ),
        ),
        RunFile("accounts", "approvals_taken_over.sql"),
        RunFile("retention", "approvals_of_before.sql"),
        RunFile("accounts", "approvals.sql"),
        RunFile("retention", "holds.sql"),
        migrations.RemoveConstraint(model_name="legalhold", name="hold_release_was_requested"),
        migrations.RemoveConstraint(model_name="legalhold", name="hold_released_by_a_second_person"),
        migrations.RemoveField(model_name="legalhold", name="release_requested_at"),
        migrations.RemoveField(model_name="legalhold", name="release_requested_by"),
        migrations.RemoveField(model_name="legalhold", name="released_by"),
        InstallTriggers("LegalHold"),
    ]
