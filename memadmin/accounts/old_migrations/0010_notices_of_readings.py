from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Notices tell not only of grants, but also that somebody opened unusually many sessions."""

    dependencies: ClassVar = [("accounts", "0009_erase_beside_the_log")]

    operations: ClassVar = [
        migrations.RenameModel("GrantNotice", "Notice"),
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
                choices=[
                    ("requested", "a grant waits for a second person"),
                    ("opened_alone", "a grant opened without a second person"),
                    ("review", "a grant waits for review"),
                    ("reading", "somebody opened unusually many sessions"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="notice",
            name="grant",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notices",
                to="accounts.contentgrant",
            ),
        ),
        migrations.AddField(model_name="notice", name="event_id", field=models.UUIDField(null=True)),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(fields=("event_id",), name="notice_once_of_an_event"),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(("event_id__isnull", True), ("grant__isnull", False))
                | models.Q(("event_id__isnull", False), ("grant__isnull", True)),
                name="notice_about_one_thing",
            ),
        ),
    ]
