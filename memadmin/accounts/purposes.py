"""What somebody reads people's conversations for."""

from __future__ import annotations

from django.db.models import TextChoices


class Purpose(TextChoices):
    CUSTOMER_CASE = "customer_case", "cases of customers"
    QUALITY = "quality", "the quality of agents' answers"
    INCIDENT = "incident", "an incident"
    SUBJECT_REQUEST = "subject_request", "a person's access or erasure request"
    LEGAL = "legal", "a legal matter"
    CHECK = "check", "a check of how people read"
