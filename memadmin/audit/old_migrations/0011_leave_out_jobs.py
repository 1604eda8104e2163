from __future__ import annotations

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """What people did is found at once, however much jobs did since. Nobody's event waits while it is built."""

    atomic = False
    dependencies = [("audit", "0010_look_up_the_role_at_once")]

    operations = [
        AddIndexConcurrently(
            model_name="auditevent",
            index=models.Index(
                models.OrderBy(models.F("at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                condition=models.Q(("actor_kind", "job"), _negated=True),
                name="audit_event_no_job_newest",
            ),
        ),
    ]
