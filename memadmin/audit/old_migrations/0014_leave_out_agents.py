from __future__ import annotations

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """What people did is found at once, however much agents did since, too; and an event is in one index of the two.

    Nobody's event waits while they are built.
    """

    atomic = False
    dependencies = [("audit", "0013_tell_agents_apart")]

    operations = [
        AddIndexConcurrently(
            model_name="auditevent",
            index=models.Index(
                models.OrderBy(models.F("at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                condition=models.Q(("actor_kind__in", ("agent", "job")), _negated=True),
                name="audit_event_people_newest",
            ),
        ),
        AddIndexConcurrently(
            model_name="auditevent",
            index=models.Index(
                models.OrderBy(models.F("at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                condition=models.Q(("actor_kind__in", ("agent", "job"))),
                name="audit_event_busy_newest",
            ),
        ),
        RemoveIndexConcurrently(model_name="auditevent", name="audit_event_newest"),
        RemoveIndexConcurrently(model_name="auditevent", name="audit_event_no_job_newest"),
    ]
