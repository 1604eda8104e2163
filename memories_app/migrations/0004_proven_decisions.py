from django.db import migrations

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """The database refuses decisions and approval rules without a proof of their actor; unproven approvals are undone."""

    while_older_runs = "Not safe: it saves new approval rules without a proof, which the database refuses."

    dependencies = [
        ("memories_app", "0003_readable_times"),
        ("audit", "0003_proven_and_named_actors"),
        ("accounts", "0002_triggers_and_rows"),
    ]

    operations = [
        RunFile("memories_app", "unproven_approvals.sql"),
        RunFile("memories_app", "memory_gate.sql"),
        RunFile("memories_app", "reviews.sql"),
        InstallTriggers("Review", "ApprovalRule", "Evidence"),
    ]
