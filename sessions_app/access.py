"""Who may open what. One function per kind of object; unknown and not-yours both answer 404.

A whole session is opened through `session_for` alone: this is where the audit of reads and
the grants for encrypted content will stand.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from sessions_app.models import SessionRecord, SessionStore, Subject


def session_for(user: User, record_id: UUID) -> SessionRecord:
    """The registry row of a session that this operator may read. Raises Http404; an erased session is unknown."""
    return get_object_or_404(SessionRecord.objects.on_record().with_names(), pk=record_id)


def subject_for(user: User, subject_id: UUID) -> Subject:
    """A subject that this operator may see. Raises Http404."""
    return get_object_or_404(Subject.objects.select_related("merged_into"), pk=subject_id)


def store_for(user: User, name: str) -> SessionStore:
    """A store that this operator may see. Raises Http404."""
    return get_object_or_404(SessionStore, name=name)
