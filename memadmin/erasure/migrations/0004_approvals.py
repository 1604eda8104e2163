import django.db.models.deletion
from django.db import migrations, models

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """Approvals of cases and batches are those of every kind; a line of a batch knows what was counted."""

    while_older_runs = "Not safe: an older version reads and writes the columns of decisions that are removed here."

    dependencies = [("accounts", "0003_approvals"), ("erasure", "0003_facts_of_workers")]

    operations = [
        migrations.AddField(
            model_name="batchline",
            name="extent",
            field=models.CharField(db_default="", default="", editable=False, max_length=64),
        ),
        migrations.AlterField(
            model_name="batchline",
            name="problem",
            field=models.CharField(
                blank=True,
                choices=[
                    ("missing", "The key is missing."),
                    ("too_long", "The key or the note is too long, or contains a NUL."),
                    ("separators", "Two separators, 3 columns expected."),
                    ("wrong_kind", "The kind is not user, project or tenant."),
                    ("unknown", "Unknown subject."),
                    ("duplicate", "Duplicate of another line."),
                    ("merged", "Merged into another subject; erase the merged subject by its own request."),
                    ("open", "Another erasure of this subject is open; this line would join it."),
                    ("held", "On hold: left out."),
                    ("changed", "Subjects, IDs or sessions changed after the count: left out."),
                ],
                db_default="",
                default="",
                max_length=12,
            ),
        ),
        *(
            migrations.AddField(
                model_name=name,
                name="approval",
                field=models.OneToOneField(
                    editable=False,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    to="accounts.approval",
                ),
            )
            for name in ("requestbatch", "subjectrequest")
        ),
        RunFile("erasure", "approvals_of_before.sql", without=["memadmin_ask_approval"]),
        migrations.RemoveConstraint(model_name="requestbatch", name="batch_approved_by_a_second_person"),
        migrations.RemoveConstraint(model_name="subjectrequest", name="request_approved_by_a_second_person"),
        *(
            migrations.RemoveField(model_name=model, name=name)
            for model in ("requestbatch", "subjectrequest")
            for name in ("approved_at", "approved_by", "requested_at", "requested_by")
        ),
        InstallTriggers("SubjectRequest", "RequestBatch", "BatchLine"),
    ]
