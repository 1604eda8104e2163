"""What the log tells about sessions."""

from __future__ import annotations

from django.db.models import TextChoices

from memadmin.audit import declare


class RevealReason(TextChoices):
    CUSTOMER_CASE = "customer_case", "the case of the person it is about"
    PAYMENT = "payment", "a payment, a refund or a chargeback"
    INCIDENT = "incident", "an incident, such as a key that leaked"
    SUBJECT_REQUEST = "subject_request", "a person's access or erasure request"
    LEGAL = "legal", "a legal matter"


SESSION_REVEALED = declare(
    "session.revealed",
    "Somebody asked to see what is masked in an item of a session.",
    object="sessions_app.sessionrecord",
    counters=("items", "values"),
    reasons=RevealReason.values,
)
