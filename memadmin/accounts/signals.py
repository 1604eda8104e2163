"""Receivers of signals from django-allauth and Django: session state and audit events of sign-ins."""

from __future__ import annotations

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.account.signals import authentication_step_completed, password_changed
from allauth.account.signals import user_logged_in as came_in
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authentication_failed, authenticator_added, authenticator_used
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.db import transaction
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.http import HttpRequest

from memadmin import audit
from memadmin.accounts import audit_events, open_sessions, reauth, user_actions
from memadmin.accounts.models import AccountAccess


@receiver(user_logged_in)
def signed_in(request: HttpRequest, **kwargs: Any) -> None:
    reauth.note_sign_in(request)


@receiver(authentication_step_completed)
def confirmed(request: HttpRequest, **kwargs: Any) -> None:
    # A step of a sign-in is not a re-authentication.
    if kwargs.get("reauthenticated"):
        reauth.note_confirmation(request)


@receiver(authenticator_used)
def used(request: HttpRequest, user: User, **kwargs: Any) -> None:
    reauth.note_second_factor(request, user)


@receiver(authenticator_added)
def added(request: HttpRequest, user: User, authenticator: Authenticator, **kwargs: Any) -> None:
    if authenticator.type != Authenticator.Type.RECOVERY_CODES:
        reauth.note_second_factor(request, user)


@receiver(came_in)
def record_sign_in(request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Records a sign-in. If this fails, so does the sign-in: the request ends before its session is saved."""
    with_what = [record.get("type") or record["method"] for record in get_authentication_records(request, user)]
    reason = {"socialaccount": "company_account"}.get(with_what[-1], with_what[-1]) if with_what else ""
    audit.record_alone(audit_events.SIGNED_IN, by=user, target=user, reason_code=reason)
    open_sessions.open_to(user)
    open_sessions.record(request, user)


@receiver(authentication_failed)
def record_wrong_code(user: User, **kwargs: Any) -> None:
    audit.record_alone(audit_events.SIGN_IN_FAILED, target=user, outcome="failed", reason_code="wrong_code")


@receiver(post_save, sender=Authenticator)
def record_new_factor(instance: Authenticator, created: bool, **kwargs: Any) -> None:
    if created:
        person = instance.user
        with transaction.atomic():
            audit.record(audit_events.SECOND_FACTOR_ADDED, by=person, target=person, reason_code=instance.type)


@receiver(password_changed)
def record_new_password(request: HttpRequest, user: User, **kwargs: Any) -> None:
    with transaction.atomic():
        audit.record(audit_events.PASSWORD_CHANGED, by=user, target=user)
        # A person who set the former password cannot sign in with it any more.
        AccountAccess.objects.filter(person=user).delete()
    # The session of this browser has a new key.
    open_sessions.record(request, user)


@receiver(post_save, sender=User)
def sign_out_who_was_switched_off(instance: User, **kwargs: Any) -> None:
    """Ends all sessions of a disabled user at once. The actor is in the event of the change itself."""
    if not instance.is_active:
        user_actions.end_sessions(instance, UserSession.objects.filter(user=instance), by=None)
