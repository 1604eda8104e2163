from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Patterns also find the tickets of sessions whose subject is known: an index for both, built while agents write."""

    atomic = False
    dependencies = [("sessions_app", "0012_tombstones_by_their_index")]
    operations = [
        AddIndexConcurrently(
            model_name="sessionrecord",
            index=models.Index(
                "store",
                "patterns_tried",
                condition=Q(erased_at__isnull=True) & (Q(subject__isnull=True, subject_source="") | Q(ticket="")),
                name="record_patterns_to_try",
            ),
        ),
        RemoveIndexConcurrently(model_name="sessionrecord", name="record_awaiting_patterns"),
    ]
