"""Models of access grants, role requests and notices."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.urls import reverse

from memadmin import audit
from memadmin.accounts.approvals.models import Approval, names_actor, takes_approval
from memadmin.accounts.audited_proxies import (
    CompanyAccount,
    GovernedFactor,
    GovernedGroup,
    GovernedUser,
    RolePermission,
    SignInAddress,
    UserPermission,
    UserRole,
)
from memadmin.accounts.grants import querysets
from memadmin.accounts.role_requests.querysets import RoleRequestQuerySet

__all__ = [
    "AccountAccess",
    "Approval",
    "CompanyAccount",
    "ContentGrant",
    "GovernedFactor",
    "GovernedGroup",
    "GovernedUser",
    "GrantedSession",
    "Invitation",
    "Notice",
    "RolePermission",
    "RoleRequest",
    "SignInAddress",
    "UserPermission",
    "UserRole",
]

LONGEST = timedelta(minutes=60)


class ContentGrant(models.Model):
    """Temporary access to listed locked sessions ("break-glass"): requested, decided, used and reviewed.

    Its text columns are for people and can be erased; the audit log contains only ids and codes.
    """

    class Reason(models.TextChoices):
        SUPPORT_CASE = "support_case", "customer case"
        INCIDENT = "incident", "incident"
        SUBJECT_REQUEST = "subject_request", "data-subject request (access or erasure)"
        LEGAL = "legal", "legal matter"
        QUALITY = "quality", "complaint about an agent"

    class State(models.TextChoices):
        """State of a grant, derived from its columns and the clock; not stored."""

        WAITING = "waiting", "waiting for a second person"
        LAPSED = "lapsed", "expired without a decision"
        REFUSED = "refused", "rejected"
        OPEN = "open", "open"
        OVER = "over", "closed"
        REVIEWED = "reviewed", "ended and reviewed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="grants_requested"
    )
    requested_at = models.DateTimeField(db_default=Now(), editable=False)
    reason = models.CharField(max_length=32, choices=Reason)
    ticket = models.CharField(max_length=200)
    explanation = models.TextField(max_length=2_000, blank=True)
    minutes = models.PositiveSmallIntegerField(default=15)
    approval = models.OneToOneField(Approval, null=True, on_delete=models.PROTECT, editable=False)
    opened_at = models.DateTimeField(null=True, editable=False)
    expires_at = models.DateTimeField(null=True, editable=False)
    ended_at = models.DateTimeField(null=True, editable=False)
    reviewed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="grants_reviewed", editable=False
    )
    reviewed_at = models.DateTimeField(null=True, editable=False)
    review_note = models.TextField(max_length=2_000, blank=True)

    objects = querysets.ContentGrantQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(minutes__gte=1, minutes__lte=60), name="grant_at_most_an_hour"),
            models.CheckConstraint(
                condition=Q(opened_at__isnull=True, expires_at__isnull=True)
                | Q(
                    # Explicit, because a comparison with NULL would pass.
                    opened_at__isnull=False,
                    expires_at__isnull=False,
                    expires_at__gt=F("opened_at"),
                    expires_at__lte=F("opened_at") + LONGEST,
                ),
                name="grant_open_at_most_an_hour",
            ),
            models.CheckConstraint(
                condition=Q(reviewed_by__isnull=True) | ~Q(reviewed_by=F("requested_by")),
                name="grant_not_reviewed_by_requester",
            ),
        ]
        indexes: ClassVar = [
            models.Index("requested_by", F("requested_at").desc(), F("id").desc(), name="grant_of_requester"),
            models.Index(F("requested_at").desc(), F("id").desc(), name="grant_newest"),
            models.Index("requested_at", "id", condition=Q(reviewed_at__isnull=True), name="grant_awaiting_somebody"),
        ]
        triggers: ClassVar = [
            *audit.govern(
                "grant",
                columns=[
                    *("requested_by", "reason", "ticket", "minutes", "approval"),
                    *("opened_at", "expires_at", "ended_at", "reviewed_by", "reviewed_at"),
                ],
            ),
            takes_approval("grant", "opened_at", or_none=True),
            names_actor("reviewed_by_id"),
        ]
        permissions: ClassVar = [
            ("request_grant", "Can request access to locked sessions"),
            ("decide_grant", "Can approve, reject and review grants of other people"),
        ]

    def __str__(self) -> str:
        return f"grant {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("accounts:grant", args=[self.pk])

    def state_at(self, at: datetime) -> State:
        if self.reviewed_at:
            return self.State.REVIEWED
        if self.opened_at:
            is_over = self.ended_at or not self.expires_at or self.expires_at <= at
            return self.State.OVER if is_over else self.State.OPEN
        if self.approval and self.approval.is_waiting_at(at):
            return self.State.WAITING
        decision = self.approval.decision if self.approval else ""
        if decision == Approval.Decision.REJECTED:
            return self.State.REFUSED
        return self.State.OVER if decision == Approval.Decision.WITHDRAWN else self.State.LAPSED


class GrantedSession(models.Model):
    """One session of a grant, by the UUID of its registry row."""

    grant = models.ForeignKey(ContentGrant, on_delete=models.CASCADE, related_name="sessions")
    record_id = models.UUIDField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["grant", "record_id"], name="session_once_in_a_grant"),
        ]
        triggers: ClassVar = audit.govern("granted_session", columns=["grant", "record_id"])

    def __str__(self) -> str:
        return f"session {self.record_id} of grant {self.grant_id}"


class RoleRequest(models.Model):
    """A role, a single permission or superuser rights for a person: requested by one administrator, decided by another.

    The explanation can be erased.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="role_requests")
    # Of these three, one.
    role = models.ForeignKey("auth.Group", null=True, on_delete=models.CASCADE, related_name="+")
    permission = models.ForeignKey("auth.Permission", null=True, on_delete=models.CASCADE, related_name="+")
    is_superuser = models.BooleanField(db_default=False, default=False)
    reason = models.CharField(max_length=32, choices=audit.EditReason)
    explanation = models.TextField(max_length=2_000, blank=True)
    approval = models.OneToOneField(Approval, null=True, on_delete=models.PROTECT, editable=False)

    objects = RoleRequestQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(role__isnull=False, permission__isnull=True, is_superuser=False)
                | Q(role__isnull=True, permission__isnull=False, is_superuser=False)
                | Q(role__isnull=True, permission__isnull=True, is_superuser=True),
                name="role_request_for_one_right",
            ),
        ]
        triggers: ClassVar = audit.govern(
            "role_request",
            columns=["person", "role", "permission", "is_superuser", "reason", "approval"],
        )

    def __str__(self) -> str:
        return f"role request {self.pk}"

    @property
    def right_label(self) -> str:
        if self.role:
            return self.role.name
        return (
            f"{self.permission.content_type.app_label}.{self.permission.codename}" if self.permission else "superuser"
        )


class AccountAccess(models.Model):
    """An administrator who set the password, second factor or address of an account, and could sign in with it: they do
    not confirm its rights. Ends when the person changes the password.
    """

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        default_permissions = ()
        triggers: ClassVar = [audit.by_proven()]
        constraints: ClassVar = [models.UniqueConstraint(fields=["person", "by"], name="account_access_once")]

    def __str__(self) -> str:
        return f"access to account {self.person_id}"


class Invitation(models.Model):
    """A link with which a person sets the password of their account, once. The token is in the link alone."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="invitations")
    digest = models.CharField(max_length=64, unique=True)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    made_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        default_permissions = ()
        # Of pages that have no table of their own.
        permissions: ClassVar = [
            ("view_people", "Can see accounts, their roles, second factors and open sessions"),
            ("view_system", "Can see the health of the system and the findings of its checks"),
        ]

    def __str__(self) -> str:
        return f"invitation to account {self.person_id}"


class Notice(models.Model):
    """An e-mail notice to approvers of grants: sent, or the number of attempts."""

    class Kind(models.TextChoices):
        REQUESTED = "requested", "a grant waits for a second person"
        OPENED_ALONE = "opened_alone", "a grant opened without a second person"
        REVIEW = "review", "a grant waits for review"
        READING = "reading", "a person opened unusually many sessions"
        ROLE = "role", "a person got a right that opens content, decides or administers"

    kind = models.CharField(max_length=16, choices=Kind)
    # The object of the notice: a grant, or an event of the log.
    grant = models.ForeignKey(ContentGrant, null=True, on_delete=models.CASCADE, related_name="notices")
    event_id = models.UUIDField(null=True)
    tries = models.PositiveIntegerField(default=0)
    try_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [audit.by_proven()]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["grant", "kind"], name="notice_once_of_a_kind"),
            models.UniqueConstraint(fields=["event_id"], name="notice_once_of_an_event"),
            models.CheckConstraint(
                condition=Q(grant__isnull=False, event_id__isnull=True) | Q(grant__isnull=True, event_id__isnull=False),
                name="notice_about_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return f"notice of {self.grant_id or self.event_id}: {self.kind}"
