from django.db import migrations, models

from memadmin.audit.models import NumberOfConnection
from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """The request or job in which an event was written. Older events have neither, and hash as before."""

    while_older_runs = "Safe: older code leaves both columns empty, and the replaced function keeps its arguments."

    dependencies = [("audit", "0004_proven_actors")]
    operations = [
        migrations.AddField(
            "auditevent",
            "request_id",
            models.BigIntegerField(null=True, db_default=NumberOfConnection(models.Value("memadmin.request_id"))),
        ),
        migrations.AddField(
            "auditevent",
            "job_id",
            models.BigIntegerField(null=True, db_default=NumberOfConnection(models.Value("memadmin.job_id"))),
        ),
        RunFile("audit", "note_rows.sql"),
    ]
