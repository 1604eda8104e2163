"""Session-id patterns of a store: saving them, trying them, and finding subjects with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, F, Value, When

from memadmin import audit
from sessions_app import audit_events
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, Subject, SubjectKind, SubjectSource
from sessions_app.patterns import Pattern, PatternMatch
from sessions_app.services.subjects import SubjectWasErased, erasure_explained, subject_for_key

SAMPLE_SESSIONS = 20

SHARES_SESSIONS = 1_000
"""Number of newest sessions on which patterns are tried: all sessions of a store would take longer the more it has."""

BATCH_SESSIONS = 200
"""Number of registry rows that are locked at once; agents that write to these sessions wait for the batch."""


class PatternNameTaken(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(f"This store already has a pattern named “{name}”.")


class NoSuchPattern(Exception):
    def __init__(self) -> None:
        super().__init__("This pattern was deleted in the meantime.")


@dataclass(frozen=True, slots=True)
class Trial:
    """Results of a pattern for the newest sessions of a store, newest first; None where it does not match."""

    matches: Sequence[tuple[str, PatternMatch | None]]

    @property
    def match_count(self) -> int:
        return sum(match is not None for _, match in self.matches)


def try_pattern(store: SessionStore, text: str) -> Trial:
    """Result of a pattern on the newest sessions; saves nothing. Raises PatternError."""
    pattern = Pattern.parse(text)
    newest = SessionRecord.objects.on_record().filter(store=store).newest_first()
    ids = newest.values_list("session_id", flat=True)[:SAMPLE_SESSIONS]
    return Trial([(session_id, pattern.match(session_id)) for session_id in ids])


@dataclass(frozen=True, slots=True)
class Shares:
    """Number of a store's newest sessions for which each pattern is the first match, by its id."""

    looked_at: int
    by_pattern: Mapping[int, int]

    @property
    def left(self) -> int:
        """Sessions that no pattern matches."""
        return self.looked_at - sum(self.by_pattern.values())


def shares_of(store: SessionStore, patterns: Sequence[SessionIdPattern]) -> Shares:
    """Results of the current patterns, in the order given, whether or not subjects were set by hand. One query."""
    newest = SessionRecord.objects.on_record().filter(store=store).newest_first()
    ids = newest.values_list("session_id", flat=True)[:SHARES_SESSIONS] if patterns else ()
    parsed = [(row.pk, Pattern.parse(row.pattern)) for row in patterns]
    first = (next((pk for pk, pattern in parsed if pattern.match(session_id)), None) for session_id in ids)
    counts = Counter(first)
    looked_at = counts.total()
    return Shares(looked_at, {pk: counts[pk] for pk, _ in parsed})


@transaction.atomic
def add_pattern(store: SessionStore, *, name: str, text: str, subject_kind: SubjectKind, by: User) -> SessionIdPattern:
    """A new pattern, tried after all others. Raises PatternError and PatternNameTaken."""
    Pattern.parse(text)
    patterns = patterns_to_change(store)
    check_name(patterns, name)
    try_sessions_again(store)
    with audit.recording(audit_events.PATTERN_ADDED, by=by) as event:
        event.target = pattern = SessionIdPattern.objects.create(
            store=store, position=len(patterns), name=name, pattern=text, subject_kind=subject_kind
        )
    return pattern


@transaction.atomic
def change_pattern(
    pattern: SessionIdPattern, *, name: str, text: str, subject_kind: SubjectKind, by: User
) -> SessionIdPattern:
    """Sessions keep their subjects. Raises PatternError, PatternNameTaken and NoSuchPattern."""
    Pattern.parse(text)
    patterns = patterns_to_change(pattern.store)
    pattern = current(pattern, patterns)
    check_name([other for other in patterns if other.pk != pattern.pk], name)
    audit.record(audit_events.PATTERN_CHANGED, by=by, target=pattern)
    try_sessions_again(pattern.store)
    pattern.name, pattern.pattern, pattern.subject_kind = name, text, subject_kind
    pattern.save(update_fields=["name", "pattern", "subject_kind"])
    return pattern


@transaction.atomic
def move_pattern_up(pattern: SessionIdPattern, *, by: User) -> None:
    """Moves a pattern one place up; the first one stays where it is. Raises NoSuchPattern."""
    patterns = patterns_to_change(pattern.store)
    place = patterns.index(current(pattern, patterns))
    if place:
        audit.record(audit_events.PATTERN_MOVED, by=by, target=pattern)
        try_sessions_again(pattern.store)
        patterns[place - 1 : place + 1] = [patterns[place], patterns[place - 1]]
    number(patterns)


@transaction.atomic
def delete_pattern(pattern: SessionIdPattern, *, by: User) -> None:
    """Deletes a pattern. Sessions that have a subject keep it; deleting twice is no error."""
    patterns = patterns_to_change(pattern.store)
    if any(other.pk == pattern.pk for other in patterns):
        audit.record(audit_events.PATTERN_DELETED, by=by, target=pattern)
        try_sessions_again(pattern.store)
    number([other for other in patterns if other.pk != pattern.pk])
    SessionIdPattern.objects.filter(pk=pattern.pk).delete()


def patterns_to_change(store: SessionStore) -> list[SessionIdPattern]:
    """The store's patterns in order, for this transaction alone."""
    SessionStore.objects.select_for_update(no_key=True).filter(pk=store.pk).first()
    return list(SessionIdPattern.objects.of(store))


def try_sessions_again(store: SessionStore) -> None:
    """Counts all sessions of the store as not tried from now on."""
    SessionStore.objects.filter(pk=store.pk).update(patterns_version=F("patterns_version") + 1)


def current(pattern: SessionIdPattern, patterns: Sequence[SessionIdPattern]) -> SessionIdPattern:
    for candidate in patterns:
        if candidate.pk == pattern.pk:
            return candidate
    raise NoSuchPattern


def check_name(others: Sequence[SessionIdPattern], name: str) -> None:
    if any(other.name == name for other in others):
        raise PatternNameTaken(name)


def number(patterns: Sequence[SessionIdPattern]) -> None:
    for position, pattern in enumerate(patterns):
        pattern.position = position
    SessionIdPattern.objects.bulk_update(patterns, ["position"])


def apply_patterns(store: SessionStore, *, limit: int = 5_000) -> int:
    """Finds the subjects and tickets of sessions that lack one; returns how many sessions got a subject.

    Whoever registered the rest: an agent may know the subject, and the pattern the ticket. Each session is tried once,
    and again after the patterns changed: so with nothing new this costs two small queries, however many sessions stay
    without a subject. At most about `limit` sessions at a time. Subjects that the client registered or an operator set
    are never changed.
    """
    version, rules = rules_of(store)
    if not rules:
        return 0
    found = 0
    for _ in range(0, limit, BATCH_SESSIONS):
        batch = list(SessionRecord.objects.awaiting_patterns(store, version)[:BATCH_SESSIONS])
        found += apply_to_batch(store, batch, rules, version)
        if len(batch) < BATCH_SESSIONS:
            break
    return found


@dataclass(frozen=True, slots=True)
class PatternRule:
    subject_kind: SubjectKind
    pattern: Pattern


def rules_of(store: SessionStore) -> tuple[int, list[PatternRule]]:
    """The store's patterns in order, and the version they have at least."""
    version = SessionStore.objects.values_list("patterns_version", flat=True).get(pk=store.pk)
    patterns = SessionIdPattern.objects.of(store)
    return version, [PatternRule(SubjectKind(row.subject_kind), Pattern.parse(row.pattern)) for row in patterns]


def first_match(session_id: str, rules: Sequence[PatternRule]) -> tuple[PatternMatch, SubjectKind] | None:
    for rule in rules:
        if match := rule.pattern.match(session_id):
            return match, rule.subject_kind
    return None


def apply_to_batch(
    store: SessionStore, batch: Sequence[SessionRecord], rules: Sequence[PatternRule], version: int
) -> int:
    decisions = []
    # Subjects are made before any registry row is locked: their unique ids make others wait.
    for record in sorted(batch, key=lambda record: record.session_id):
        match, kind = first_match(record.session_id, rules) or (PatternMatch(), SubjectKind.USER)
        lacks_subject = record.subject_id is None and not record.subject_source
        decisions.append((record, match, subject_of(match, kind) if lacks_subject else None))
    with transaction.atomic():
        return sum(write_down(store, version, *decision) for decision in decisions)


def subject_of(match: PatternMatch, kind: SubjectKind) -> Subject | None:
    """The subject that a pattern found; None for one that was erased, whose sessions stay without a subject."""
    try:
        return subject_for_key(kind, match.subject, SubjectSource.PATTERN) if match.subject else None
    except SubjectWasErased:
        return None


def write_down(
    store: SessionStore, version: int, record: SessionRecord, match: PatternMatch, subject: Subject | None
) -> bool:
    """Records that a session was tried and the result; what it got meanwhile stays.

    Returns whether it has a subject from this pattern.
    """
    rows = SessionRecord.objects.awaiting_patterns(store, version).filter(session_id=record.session_id)
    tried = {
        "patterns_tried": version,
        "ticket": unless_set("ticket", match.ticket),
        "agent": unless_set("agent", match.agent),
    }
    has_subject = False
    if subject:
        without = rows.filter(SessionRecord.objects.all().subject_to_find_q())
        # A subject that was erased a moment ago gets no session.
        with suppress(SubjectWasErased), erasure_explained(), transaction.atomic():
            has_subject = bool(without.update(**tried, subject=subject, subject_source=SubjectSource.PATTERN))
    rows.update(**tried)
    return has_subject


def unless_set(column: str, value: str) -> Case:
    """The value, unless one is set: agents and operators know better than a pattern."""
    return Case(When(**{column: ""}, then=Value(value)), default=F(column))
