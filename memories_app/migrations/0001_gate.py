from django.db import migrations

from memadmin.migrating import RunFile
from memories_app.vector_column import CreateExtensionIfPossible


class Migration(migrations.Migration):
    """The functions that the triggers of memories call, first of all the gate; and the type of vectors."""

    initial = True
    dependencies = [("audit", "0001_log_functions"), ("sessions_app", "0003_triggers")]
    operations = [
        CreateExtensionIfPossible(),
        RunFile("memories_app", "subjects.sql"),
        RunFile("memories_app", "learning_stops.sql"),
        RunFile("memories_app", "memory_gate.sql"),
        RunFile("memories_app", "versions.sql"),
        RunFile("memories_app", "evidence.sql"),
        RunFile("memories_app", "vector_notes.sql"),
    ]
