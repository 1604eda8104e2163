import django.db.models.deletion
from django.db import migrations, models

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """The second person of a large redaction decides through an approval."""

    while_older_runs = "Not safe: an older version reads and writes the columns of decisions that are removed here."

    dependencies = [("sessions_app", "0003_clamped_activity"), ("accounts", "0003_approvals")]

    operations = [
        migrations.AddField(
            model_name="redaction",
            name="approval",
            field=models.OneToOneField(
                editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, to="accounts.approval"
            ),
        ),
        RunFile("sessions_app", "approvals_of_before.sql", without=["memadmin_ask_approval"]),
        migrations.RemoveConstraint(model_name="redaction", name="redaction_approved_by_a_second_person"),
        migrations.RemoveField(model_name="redaction", name="approved_at"),
        migrations.RemoveField(model_name="redaction", name="approved_by"),
        migrations.RemoveField(model_name="redaction", name="needs_approval"),
        InstallTriggers("Redaction"),
    ]
