import datetime

import django.db.models.lookups
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """The database refuses times and lists of agents that the console cannot read; rows that have some are changed."""

    while_older_runs = (
        "Safe: what is refused broke the older version, too. The constraints are not checked against old rows."
    )

    dependencies = [
        ("memories_app", "0002_triggers_and_rows"),
        ("sessions_app", "0002_triggers_and_rows"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        RunFile("memories_app", "readable_rows.sql"),
        AddConstraintNotValid(
            model_name="evidence",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "said_at__range",
                        (
                            datetime.datetime(2, 1, 1, 0, 0, tzinfo=datetime.UTC),
                            datetime.datetime(9998, 12, 31, 0, 0, tzinfo=datetime.UTC),
                        ),
                    )
                ),
                name="evidence_time_is_readable",
            ),
        ),
        AddConstraintNotValid(
            model_name="memory",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "valid_from__range",
                        (
                            datetime.datetime(2, 1, 1, 0, 0, tzinfo=datetime.UTC),
                            datetime.datetime(9998, 12, 31, 0, 0, tzinfo=datetime.UTC),
                        ),
                    ),
                    (
                        "valid_until__range",
                        (
                            datetime.datetime(2, 1, 1, 0, 0, tzinfo=datetime.UTC),
                            datetime.datetime(9998, 12, 31, 0, 0, tzinfo=datetime.UTC),
                        ),
                    ),
                ),
                name="memory_validity_is_readable",
            ),
        ),
        AddConstraintNotValid(
            model_name="memory",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("agents", []),
                    models.Q(
                        django.db.models.lookups.Exact(models.Func(models.F("agents"), function="array_ndims"), 1),
                        django.db.models.lookups.Exact(
                            models.Func(models.F("agents"), models.Value(None), function="array_remove"),
                            models.F("agents"),
                        ),
                    ),
                    _connector="OR",
                ),
                name="memory_agents_are_a_list",
            ),
        ),
    ]
