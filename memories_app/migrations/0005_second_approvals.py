import django.db.models.deletion
from django.db import migrations, models

from memadmin.migrating import DropFunctions, InstallTriggers, RunFile


class Migration(migrations.Migration):
    """The second person of a memory decides through an approval. What waits for one waits for two again. Rows of this
    app are changed by proven actors alone."""

    while_older_runs = "Not safe: the database refuses second approvals of an older version."

    dependencies = [
        ("memories_app", "0004_proven_decisions"),
        ("accounts", "0003_approvals"),
        ("audit", "0004_rows_by_proven_actors"),
    ]

    operations = [
        *(
            migrations.AddField(
                model_name=name,
                name="approval",
                field=models.OneToOneField(
                    blank=name == "memory",
                    editable=False,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    to="accounts.approval",
                ),
            )
            for name in ("memory", "review")
        ),
        RunFile("accounts", "approvals.sql"),
        RunFile("memories_app", "reviews.sql"),
        RunFile("memories_app", "memory_gate.sql"),
        InstallTriggers(),
        DropFunctions("memadmin_quote_is_proven", "memadmin_require_proof"),
    ]
