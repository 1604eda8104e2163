from django.db import migrations

from memadmin.accounts.roles import give
from memadmin.migrating import InstallTriggers, RunFile

REVIEW = [
    "memories_app.read_memory",
    "memories_app.review_memory",
    "memories_app.retire_memory",
    "memories_app.view_approvalrule",
]


class Migration(migrations.Migration):
    """The gate, records of changes, and the row policies of agents; permissions for reviews."""

    dependencies = [("memories_app", "0001_model_tables"), ("sessions_app", "0002_triggers_and_rows")]

    operations = [
        RunFile("memories_app", "subjects.sql"),
        RunFile("memories_app", "learning_stops.sql"),
        RunFile("memories_app", "memory_gate.sql"),
        RunFile("memories_app", "versions.sql"),
        RunFile("memories_app", "evidence.sql"),
        RunFile("memories_app", "vector_notes.sql"),
        RunFile("memories_app", "user_quotes.sql"),
        RunFile("memories_app", "erased_sources.sql"),
        InstallTriggers(),
        RunFile("memories_app", "row_policies.sql"),
        give(
            {
                "support": ["memories_app.read_memory", "memories_app.stop_learning"],
                "reviewer": REVIEW,
                "compliance": [
                    *REVIEW,
                    "memories_app.stop_learning",
                    "memories_app.add_approvalrule",
                    "memories_app.change_approvalrule",
                    "memories_app.erase_version",
                ],
            }
        ),
    ]
