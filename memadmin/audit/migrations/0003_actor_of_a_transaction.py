from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """The actor of events is proven for one transaction."""

    while_older_runs = "Safe: the functions keep their arguments, and the older version uses a proof at once."

    dependencies = [("audit", "0002_triggers_and_rows")]
    operations = [RunFile("audit", "proofs.sql"), RunFile("audit", "note_rows.sql")]
