"""Purposes for reading conversations."""

from __future__ import annotations

from django.db.models import TextChoices


class Purpose(TextChoices):
    CUSTOMER_CASE = "customer_case", "customer support"
    QUALITY = "quality", "answer quality"
    INCIDENT = "incident", "incident"
    SUBJECT_REQUEST = "subject_request", "data-subject request (access or erasure)"
    LEGAL = "legal", "legal matter"
    CHECK = "check", "access review"
