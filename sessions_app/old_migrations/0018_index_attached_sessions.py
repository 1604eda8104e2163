from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """A session is in the index of subjects, or in that of sessions without one: each write of an agent puts it there
    anew. Nobody waits while it is built.
    """

    atomic = False
    dependencies = [("sessions_app", "0017_quicker_grams")]
    operations = [
        AddIndexConcurrently(
            model_name="sessionrecord",
            index=models.Index(
                models.F("subject"),
                models.OrderBy(models.F("last_activity_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                condition=models.Q(("subject__isnull", False)),
                name="record_attached_newest",
            ),
        ),
        RemoveIndexConcurrently(model_name="sessionrecord", name="record_subject_newest"),
    ]
