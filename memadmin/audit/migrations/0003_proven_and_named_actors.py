from django.db import migrations, models
from django.db.models import CheckConstraint, Q

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """Actors are proven for one transaction; events commit to the names of people, and tell when they were erased."""

    while_older_runs = (
        "Safe: functions keep their arguments, and the database names people itself, for the older version, too. The table"
        " has a row for each person."
    )

    dependencies = [("audit", "0002_triggers_and_rows")]

    operations = [
        migrations.AddField("AuditActor", "salt", models.BinaryField(null=True)),
        RunFile("audit", "proofs.sql"),
        RunFile("audit", "note_rows.sql"),
        RunFile("audit", "actors.sql"),
        RunFile("audit", "erase.sql"),
        RunFile("audit", "bind_names.sql"),
        migrations.AddConstraint(
            "AuditActor",
            CheckConstraint(
                condition=Q(("user_id__isnull", True), ("salt__isnull", False), _connector="OR"),
                name="audit_actor_is_bound",
            ),
        ),
    ]
