from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """The indexes for the events of a request or a job, built while events are written."""

    atomic = False
    dependencies = [("audit", "0005_requests_and_jobs")]
    operations = [
        AddIndexConcurrently(
            "auditevent",
            models.Index(
                models.F(column),
                models.F("at").desc(),
                models.F("number").desc(),
                condition=models.Q((f"{column}__isnull", False)),
                name=f"audit_event_{name}_newest",
            ),
        )
        for column, name in (("request_id", "request"), ("job_id", "job"))
    ]
