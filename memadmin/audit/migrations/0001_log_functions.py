from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """The functions that the tables of the log and the triggers of governed tables call."""

    initial = True
    dependencies = []
    operations = [
        RunFile("audit", "ids.sql"),
        RunFile("audit", "actors.sql"),
        RunFile("audit", "events.sql"),
        RunFile("audit", "note_rows.sql"),
        RunFile("audit", "our_rights.sql"),
        RunFile("audit", "erase.sql"),
    ]
