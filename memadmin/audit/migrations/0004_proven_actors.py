from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """Actors are believed only with a proof of the application."""

    # The versions of memories name their authors by the same rule: from here on, by the same function.
    dependencies = [("audit", "0003_guards"), ("memories_app", "0003_triggers")]
    operations = [
        RunFile("audit", "proofs.sql"),
        RunFile("audit", "events.sql"),
        RunFile("audit", "note_rows.sql"),
        RunFile("memories_app", "versions.sql"),
    ]
