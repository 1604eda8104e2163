from django.db import migrations

from memadmin.migrating import InstallTriggers


class Migration(migrations.Migration):
    """What a receipt states is written by workers alone."""

    while_older_runs = "Not safe: its web server cannot leave out a store that does not respond."

    dependencies = [("erasure", "0002_triggers_and_rows"), ("runs", "0003_progress_of_workers")]

    operations = [InstallTriggers("SubjectRequest", "ErasureStep", "AccessCopy", "RequestBatch", "BatchLine")]
