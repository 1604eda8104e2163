"""Subjects: their ids, and merging two that are one.

A merged subject keeps its sessions and aliases and only points to the one it was merged into. So merging moves
nothing, undoing it is exact, and a session attached to either side at the same moment is found on both ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, transaction

from memadmin import audit
from sessions_app import audit_events
from sessions_app.models import Subject, SubjectAlias, SubjectKind, SubjectSource
from sessions_app.registry import ERASED
from sessions_app.services.deletion_guards import refusals_explained


class SubjectError(Exception):
    """An operation that is not possible with these subjects; the message is a sentence for an operator."""


class BadKey(SubjectError):
    def __init__(self) -> None:
        super().__init__(f"An ID has 1 to {key_length()} characters, and no NUL.")


class UnknownKey(SubjectError):
    def __init__(self, kind: str, key: str) -> None:
        self.kind, self.key = kind, key
        super().__init__(f"There is no subject with the {kind} ID {key}.")


class SubjectWasErased(SubjectError):
    def __init__(self) -> None:
        super().__init__(
            "The data of this subject was erased, and nothing is stored about it again. The command reopen_subject"
            " allows a new start under one of its IDs. Nothing was changed."
        )


class SubjectConflict(SubjectError):
    """The request contradicts the current state, perhaps since a moment ago. `subject` is the one it is about."""

    def __init__(self, subject: Subject, sentence: str) -> None:
        self.subject = subject
        super().__init__(sentence)


class AliasTaken(SubjectConflict):
    def __init__(self, alias: SubjectAlias) -> None:
        sentence = f"{alias.kind} {alias.key} already belongs to another subject. Merge the two if they are the same."
        super().__init__(alias.subject, sentence)


class LastAlias(SubjectConflict):
    def __init__(self, subject: Subject) -> None:
        super().__init__(subject, "This is the only ID of the subject. Add another one before removing it.")


class AlreadyMerged(SubjectConflict):
    def __init__(self, subject: Subject) -> None:
        super().__init__(subject, "This subject is already merged into another one.")


class NotMerged(SubjectConflict):
    def __init__(self, subject: Subject) -> None:
        super().__init__(subject, "This subject is not merged; the merge may already have been undone.")


class MergeIntoItself(SubjectConflict):
    def __init__(self, subject: Subject) -> None:
        super().__init__(subject, "Both IDs already belong to the same subject.")


@contextmanager
def erasure_explained() -> Iterator[None]:
    """Converts refusals of triggers about erased subjects inside the block to SubjectWasErased."""
    try:
        yield
    except DatabaseError as problem:
        if getattr(problem.__cause__, "sqlstate", None) != ERASED:
            raise
        raise SubjectWasErased from problem


def known_subject(kind: str, key: str) -> Subject:
    """The subject with this id, as it was registered: possibly one that was merged since. Raises UnknownKey."""
    alias = SubjectAlias.objects.select_related("subject").filter(kind=kind, key=key).first() if is_key(key) else None
    if alias is None:
        raise UnknownKey(kind, key)
    return alias.subject


def subject_for_key(kind: SubjectKind, key: str, source: SubjectSource | Literal[""] = "") -> Subject:
    """The subject with this id, created if there is none; two callers at once get the same one.

    `source` is stored with a created id. Raises BadKey, and SubjectWasErased when this subject or id was erased.
    """
    if not is_key(key):
        raise BadKey
    try:
        subject = known_subject(kind, key)
    except UnknownKey:
        pass
    else:
        if subject.erased_at:
            raise SubjectWasErased
        return subject
    try:
        with erasure_explained(), transaction.atomic():
            subject = Subject.objects.create()
            SubjectAlias.objects.create(subject=subject, kind=kind, key=key, is_primary=True, source=source)
            return subject
    except IntegrityError:
        # Another process registered it a moment ago; the constraint made us wait until it had committed.
        return known_subject(kind, key)


def merge_target(subject: Subject) -> Subject:
    """The subject itself, or the one that it was merged into in the end. One query for each step."""
    while subject.merged_into_id is not None:
        subject = Subject.objects.get(pk=subject.merged_into_id)
    return subject


@erasure_explained()
@transaction.atomic
def merge_subjects(source: Subject, into: Subject, *, by: User) -> Subject:
    """Merges two subjects until it is undone; returns the remaining one, which is `into` or what that became.

    Raises AlreadyMerged, MergeIntoItself and SubjectWasErased. Only a subject that is not merged is merged, and only
    into another such, with both rows locked; so no sequence of merges can make a circle.
    """
    while True:
        into = merge_target(into)
        locked = {
            subject.pk: subject
            for subject in Subject.objects.select_for_update(no_key=True)
            .filter(pk__in=[source.pk, into.pk])
            .order_by("pk")
        }
        source, into = locked[source.pk], locked[into.pk]
        if source.merged_into_id is not None:
            raise AlreadyMerged(source)
        if source.pk == into.pk:
            raise MergeIntoItself(source)
        if into.merged_into_id is None:
            break
    audit.record(audit_events.SUBJECTS_MERGED, by=by, target=source, subject=source, shown=[into])
    source.merged_into = into
    source.save(update_fields=["merged_into"])
    return into


@erasure_explained()
@refusals_explained()
@transaction.atomic
def undo_merge(subject: Subject, *, by: User) -> Subject:
    """Separates a merged subject again, with everything that was its own.

    Raises NotMerged, SubjectWasErased and DeletionRefused.
    """
    subject = Subject.objects.select_for_update(no_key=True).get(pk=subject.pk)
    if subject.merged_into_id is None:
        raise NotMerged(subject)
    audit.record(audit_events.MERGE_UNDONE, by=by, target=subject, subject=subject, shown=[subject.merged_into_id])
    subject.merged_into = None
    subject.save(update_fields=["merged_into"])
    return subject


def add_alias(subject: Subject, *, kind: SubjectKind, key: str, by: User) -> SubjectAlias:
    """Adds an id to a subject. Raises BadKey, SubjectWasErased, and AliasTaken when it belongs to a subject already."""
    if not is_key(key):
        raise BadKey
    same = SubjectAlias.objects.select_related("subject").filter(kind=kind, key=key)
    if taken := same.first():
        raise AliasTaken(taken)
    try:
        with erasure_explained(), transaction.atomic(), audit.recording(audit_events.ALIAS_ADDED, by=by) as event:
            event.target = alias = SubjectAlias.objects.create(
                subject=subject, kind=kind, key=key, source=SubjectSource.OPERATOR
            )
            event.subject = subject
            return alias
    except IntegrityError:
        raise AliasTaken(same.get()) from None


@erasure_explained()
@transaction.atomic
def remove_alias(alias: SubjectAlias, *, by: User) -> None:
    """Removes one id of a subject; its sessions stay. Raises LastAlias and SubjectWasErased."""
    subject = Subject.objects.select_for_update(no_key=True).get(pk=alias.subject_id)
    others = subject.aliases.exclude(pk=alias.pk)
    if not others.exists():
        raise LastAlias(subject)
    audit.record(audit_events.ALIAS_REMOVED, by=by, target=alias, subject=subject)
    alias.delete()
    if not others.filter(is_primary=True).exists():
        others.filter(pk=others.values_list("pk", flat=True)[0]).update(is_primary=True)


def is_key(key: str) -> bool:
    return 0 < len(key) <= key_length() and "\0" not in key


def key_length() -> int:
    return SubjectAlias._meta.get_field("key").max_length or 0
