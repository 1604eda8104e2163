"""Labels of subjects, sessions and stores in the audit log, as far as its reader may see them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from django.contrib.auth.models import User
from django.urls import reverse

from memadmin.accounts.grants.services import DECIDE
from memadmin.audit.log.label_registry import (
    MOST_FOUND,
    Name,
    by_ref,
    finds,
    finds_by_part,
    groups,
    guard_values,
    names,
    short,
    with_id,
)
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
from sessions_app.redaction.services import REDACT
from sessions_app.search.identifiers import aliases_like, sessions_beginning, tickets_like
from sessions_app.services import unlocking
from sessions_app.services.subjects import merge_target

SESSION = "sessions_app.sessionrecord"
SUBJECT = "sessions_app.subject"
READ = "sessions_app.read_content"

ALIASES_COMPARED = 3 * MOST_FOUND
"""Subject ids that are read for MOST_FOUND subjects: a subject can have several that contain the text."""

# Keys, session ids and tickets identify people.
for kind in (SUBJECT, "sessions_app.subjectalias"):
    guard_values(kind, "sessions_app.view_subject")
for kind in (SESSION, "sessions_app.agentsession", "sessions_app.agentmessage"):
    guard_values(kind, "sessions_app.read_content")


@names(SUBJECT)
def subject_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Primary id of each subject, for users who may see subjects. Two queries."""
    if not viewer.has_perm("sessions_app.view_subject"):
        return {}
    subjects = Subject.objects.filter(pk__in=refs).prefetch_related("aliases")
    return {subject.pk: Name(subject.label or str(subject), subject.get_absolute_url()) for subject in subjects}


@names(SESSION, noun="session")
def session_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Short id of each session, with a link for users who may read it. One query, or none."""
    if not viewer.has_perm("sessions_app.read_content"):
        return {}
    records = SessionRecord.objects.on_record().filter(pk__in=refs)
    return {record.pk: Name(f"session {short(record.pk)}", record.get_absolute_url()) for record in records}


@names("sessions_app.sessionstore")
def store_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    may_open = viewer.has_perm("sessions_app.view_sessionstore")
    return {
        ref: Name(f"store {store.name}", reverse("sessions:store", args=[store.name]) if may_open else "")
        for ref, store in by_ref(SessionStore.objects.all(), refs).items()
    }


@names("sessions_app.redaction", noun="redaction")
def redaction_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Short id of each redaction, with a link for users who may request one. One query."""
    may_open = viewer.has_perms([READ, REDACT])
    return {
        redaction.pk: Name(f"redaction {short(redaction.pk)}", redaction.get_absolute_url() if may_open else "")
        for redaction in Redaction.objects.filter(pk__in=refs).defer("text")
    }


@names("sessions_app.unlockrequest", noun="request to unlock sessions")
def unlock_request_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Short id of each request, with a link for users who request or decide. One query."""
    may_open = viewer.has_perm(unlocking.REQUEST) or viewer.has_perm(DECIDE)
    return {
        each.pk: Name(f"request to unlock {short(each.pk)}", each.get_absolute_url() if may_open else "")
        for each in UnlockRequest.objects.filter(pk__in=refs)
    }


@names("sessions_app.sessionidpattern")
def pattern_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    patterns = by_ref(SessionIdPattern.objects.select_related("store"), refs)
    return {ref: Name(f"pattern {pattern.name} of store {pattern.store.name}") for ref, pattern in patterns.items()}


@names("sessions_app.watchedpath")
def watched_path_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    may_open = viewer.has_perm("sessions_app.view_sessionstore")
    return {
        ref: Name(f"watched path {watched.name}", reverse("sessions:stores") if may_open else "")
        for ref, watched in by_ref(WatchedPath.objects.all(), refs).items()
    }


@finds(SUBJECT)
def subjects_called(viewer: User, text: str) -> Iterable[UUID]:
    """Subjects by their complete id in the host application, or by the beginning of our own. Two queries."""
    aliases = SubjectAlias.objects.filter(key=text).order_by("kind")
    return dict.fromkeys([*aliases.values_list("subject_id", flat=True), *with_id(Subject.objects.all(), text)])


@finds_by_part(SUBJECT)
def subjects_like(viewer: User, text: str) -> Iterable[UUID]:
    """Subjects by a part of their id in the host application, the closest first. One query along an index."""
    aliases = aliases_like(text).values_list("subject_id", flat=True)
    return dict.fromkeys(aliases[:ALIASES_COMPARED])


@finds(SESSION)
def sessions_called(viewer: User, text: str) -> Iterable[UUID]:
    """Sessions by their complete id in a store, their ticket, or the beginning of our id. At most four queries, each
    along an index.
    """
    sessions = SessionRecord.objects.all()
    stores = list(SessionStore.objects.values_list("pk", flat=True))
    return dict.fromkeys(
        [
            *sessions.filter(store__in=stores, session_id=text).values_list("pk", flat=True),
            *of_tickets([text]),
            *with_id(sessions, text),
        ]
    )


@finds_by_part(SESSION)
def sessions_like(viewer: User, text: str) -> Iterable[UUID]:
    """Sessions by a part of their ticket, or the beginning of their id in a store. At most three queries, each along an
    index.
    """
    tickets = list(tickets_like(text)[:MOST_FOUND])
    beginning = sessions_beginning(text).values_list("pk", flat=True)[:MOST_FOUND]
    return dict.fromkeys([*(of_tickets(tickets) if tickets else ()), *beginning])


def of_tickets(tickets: Collection[str]) -> list[UUID]:
    """The newest sessions of these tickets."""
    # The second condition is what the index is limited to.
    sessions = SessionRecord.objects.filter(ticket__in=tickets).exclude(ticket="").newest_first()
    return list(sessions.values_list("pk", flat=True)[:MOST_FOUND])


@groups(SUBJECT)
def one_subject(ref: UUID) -> list[UUID]:
    """Ids of a subject, of the one into which it was merged, and of all that were merged into that."""
    subject = Subject.objects.filter(pk=ref).first()
    if subject is None:
        return [ref]
    return [ref, *(other for other in merge_target(subject).group_ids() if other != ref)]
