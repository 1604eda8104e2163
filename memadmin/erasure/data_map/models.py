"""Head of the record of processing activities (GDPR article 30): what only people know."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memadmin import audit

LONGEST = 2_000


class ProcessingRecord(models.Model):
    """One row, made by the first change. The rest of the record comes from the data map."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    controller = models.TextField("Controller", max_length=LONGEST)
    contact = models.TextField("Contact", max_length=LONGEST)
    purpose = models.TextField("Purpose", max_length=LONGEST)
    subjects = models.TextField("Subjects", max_length=LONGEST)
    recipients = models.TextField("Recipients", max_length=LONGEST)
    third_countries = models.TextField("Third countries", max_length=LONGEST)
    security = models.TextField("Security", max_length=LONGEST)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        permissions: ClassVar = [
            ("view_data_map", "Can see the data map and download the record of processing"),
            ("change_processing_record", "Can change the head of the record of processing"),
        ]
        constraints: ClassVar = [models.CheckConstraint(condition=Q(id=1), name="one_processing_record")]
        triggers: ClassVar = audit.govern(
            "processing_record",
            columns=["controller", "contact", "purpose", "subjects", "recipients", "third_countries", "security"],
            # Names and addresses of people.
            hidden=["controller", "contact"],
        )

    def __str__(self) -> str:
        return "record of processing"
