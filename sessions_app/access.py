"""Access to objects: one function per kind; unknown and not permitted both answer 404.

A whole session is opened through `session_for` only, and content of a locked one needs a grant.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from cryptography.fernet import InvalidToken
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import OperationalError
from django.shortcuts import get_object_or_404

from memadmin.accounts.grants.services import granted_records
from memadmin.derived_keys import derived_fernet
from memadmin.web.errors import is_part_away
from sessions_app.encryption.subject_keys import key_folder
from sessions_app.models import (
    Redaction,
    SessionIdPattern,
    SessionRecord,
    SessionStore,
    Subject,
    SubjectAlias,
    UnlockRequest,
    WatchedPath,
)

OPENED_FOR = timedelta(minutes=10)
"""Time in which a session that was opened by its ID is found by that, if not by its UUID."""


class NeedsGrant(Exception):
    """The session is locked, and no active grant of this user covers it. The answer is a page that requests one."""

    def __init__(self, record: SessionRecord) -> None:
        self.record = record
        super().__init__("Reading this session needs a grant with a reason and a ticket, for at most one hour.")


def session_for(user: User, record_id: UUID) -> SessionRecord:
    """Registry row of a session that this user may read now.

    Raises Http404 (an erased session is unknown) and NeedsGrant. Locked ones cost two queries more.
    """
    record = record_for(user, record_id)
    if record.is_locked and record.pk not in granted_records(user):
        raise NeedsGrant(record)
    return record


def may_open(user: User, record: SessionRecord) -> bool:
    """Whether encrypted items of a session may be decrypted for this user now, which needs a grant.

    No query for a store without a key where there are no keys of subjects, and two for others.
    """
    has_keys = bool(record.store.encryption_key) or key_folder() is not None
    return has_keys and record.pk in granted_records(user)


def granted_to(user: User) -> set[UUID]:
    """Ids of the locked or encrypted sessions that a user may read now, by active grants.

    One query where no grant is open, and two or more where one is.
    """
    return granted_records(user)


def record_for(user: User, record_id: UUID) -> SessionRecord:
    """Registry row of a session whose content this user may not see yet, with its store, subject and the subject's ids:
    two queries. Raises Http404; an erased session is unknown.

    A distributed registry is asked for a UUID on all servers. While one of them is away, a session on another one is
    found if it was opened by its ID.
    """
    records = SessionRecord.objects.on_record().with_names()
    try:
        return get_object_or_404(records, pk=record_id)
    except OperationalError as problem:
        session_id = opened_id(record_id) if is_part_away(problem) else None
        if session_id is None:
            raise
    return get_object_or_404(records, session_id=session_id, pk=record_id)


def open_by_id(user: User, session_id: str) -> SessionRecord | None:
    """Registry row of the newest session with this ID in any store; None if there is none. One server is asked."""
    record = SessionRecord.objects.on_record().newest_first().filter(session_id=session_id).first()
    if record:
        # Encrypted: an ID may name a subject, and no erasure looks here.
        sealed = derived_fernet("opened session").encrypt(session_id.encode()).decode()
        cache.set(opened_key(record.pk), sealed, OPENED_FOR.total_seconds())
    return record


def opened_id(record_id: UUID) -> str | None:
    """The ID by which a session was opened a few minutes ago; None if it was not."""
    sealed = cache.get(opened_key(record_id))
    try:
        return derived_fernet("opened session").decrypt(sealed).decode() if sealed else None
    except InvalidToken:  # the secret key has changed since
        return None


def opened_key(record_id: UUID) -> str:
    return f"opened-session:{record_id}"


def subject_for(user: User, subject_id: UUID) -> Subject:
    """A subject that this operator may see. Raises Http404."""
    return get_object_or_404(Subject.objects.select_related("merged_into"), pk=subject_id)


def store_for(user: User, name: str) -> SessionStore:
    """A store that this operator may see. Raises Http404."""
    return get_object_or_404(SessionStore, name=name)


def alias_for(user: User, subject: Subject, alias_id: int) -> SubjectAlias:
    """One of the ids of a subject. Raises Http404."""
    return get_object_or_404(subject.aliases, pk=alias_id)


def pattern_for(user: User, store: SessionStore, pattern_id: int) -> SessionIdPattern:
    """One of the patterns of a store. Raises Http404."""
    return get_object_or_404(SessionIdPattern.objects.of(store), pk=pattern_id)


def watched_path_for(user: User, watched_id: int) -> WatchedPath:
    """A watched path that this operator may change. Raises Http404."""
    return get_object_or_404(WatchedPath, pk=watched_id)


def redaction_for(user: User, redaction_id: UUID) -> Redaction:
    """Redaction with its run, for all users who may request one. Raises Http404."""
    return get_object_or_404(
        Redaction.objects.with_people(),
        pk=redaction_id,
    )


def unlock_request_for(user: User, unlock_id: UUID) -> UnlockRequest:
    """A request to unlock sessions, for all who may see their page. Raises Http404."""
    return get_object_or_404(UnlockRequest, pk=unlock_id)
