"""Access to retention policies, and to the session that a person asks about."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q
from django.shortcuts import get_object_or_404

from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.web.addresses import uuid_in
from sessions_app.models import SessionRecord, SessionStore

READ_SESSIONS = "sessions_app.read_content"

MOST_SESSIONS = 10


def policy_for(user: User, policy_id: UUID) -> RetentionPolicy:
    """A policy, for operators who may see policies. Raises Http404."""
    return get_object_or_404(RetentionPolicy, pk=policy_id)


def version_for(user: User, policy_id: UUID, version_number: int) -> PolicyVersion:
    """One version of a policy with its persons. Raises Http404."""
    return get_object_or_404(PolicyVersion.objects.with_names(), policy=policy_id, number=version_number)


def sessions_named(user: User, value: str) -> list[SessionRecord]:
    """Sessions with this session id, ticket or UUID, at most MOST_SESSIONS of each.

    None for a user who may not see sessions, as for a value that no session has. Six queries at most.
    """
    if not user.has_perm(READ_SESSIONS):
        return []
    records = SessionRecord.objects.on_record().filter(is_forgotten=False).with_names().newest_first()
    # By store, because that is what the index of session ids begins with.
    ways = [Q(store__in=SessionStore.objects.values("pk"), session_id=value), Q(ticket=value)]
    if known := uuid_in(value):
        ways.append(Q(pk=known))
    return list({record.pk: record for way in ways for record in records.filter(way)[:MOST_SESSIONS]}.values())
