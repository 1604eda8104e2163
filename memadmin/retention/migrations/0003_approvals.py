import django.db.models.deletion
from django.db import migrations, models

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """Decisions about releases of holds and changes of policies are approvals."""

    while_older_runs = "Not safe: an older version reads and writes the columns of decisions that are removed here."

    dependencies = [("accounts", "0003_approvals"), ("retention", "0002_triggers_and_rows")]

    operations = [
        *(
            migrations.AddField(
                model_name=name,
                name="approval",
                field=models.OneToOneField(
                    editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, to="accounts.approval"
                ),
            )
            for name in ("legalhold", "policyversion")
        ),
        RunFile(
            "retention",
            "approvals_of_before.sql",
            without=["memadmin_ask_approval", "memadmin_keep_hold_as_placed", "memadmin_keep_policy_version"],
        ),
        RunFile("accounts", "approvals.sql"),
        RunFile("retention", "holds.sql"),
        RunFile("retention", "policies.sql"),
        RunFile("retention", "policy_starts.sql"),
        migrations.RemoveConstraint(model_name="legalhold", name="hold_release_was_requested"),
        migrations.RemoveConstraint(model_name="legalhold", name="hold_released_by_a_second_person"),
        migrations.RemoveField(model_name="legalhold", name="release_requested_at"),
        migrations.RemoveField(model_name="legalhold", name="release_requested_by"),
        migrations.RemoveField(model_name="legalhold", name="released_by"),
        migrations.RemoveConstraint(model_name="policyversion", name="policy_approved_by_a_second_person"),
        migrations.RemoveConstraint(model_name="policyversion", name="policy_closed_for_a_reason"),
        migrations.RemoveConstraint(model_name="policyversion", name="policy_starts_after_approval"),
        migrations.RemoveField(model_name="policyversion", name="approved_at"),
        migrations.RemoveField(model_name="policyversion", name="approved_by"),
        migrations.RemoveField(model_name="policyversion", name="closed_as"),
        migrations.RemoveField(model_name="policyversion", name="proposed_at"),
        migrations.RemoveField(model_name="policyversion", name="proposed_by"),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("starts_at__isnull", True),
                    ("needs_approval", False),
                    ("approval__isnull", False),
                    _connector="OR",
                ),
                name="policy_starts_after_approval",
            ),
        ),
        InstallTriggers("LegalHold", "PolicyVersion"),
    ]
