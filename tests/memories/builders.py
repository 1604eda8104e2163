"""Memories for tests, as verbs and the gate leave them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import F, Model, QuerySet

from memadmin import audit
from memadmin.accounts.approvals.models import Approval
from memadmin.client import embedding
from memories_app.models import ApprovalRule, Distillation, Evidence, LearningStop, Memory, Recall, Review, Signal
from memories_app.review import rules
from sessions_app.models import Subject
from tests.builders import make_session
from tests.people import proven


def proposed(statement: str = "Drinks tea.", *, subject: Subject | None = None, **columns: Any) -> Memory:
    """A proposal that was screened, and found without risks where `risk_flags` names none."""
    memory = Memory.objects.create(statement=statement, subject=subject, **{"kind": Memory.Kind.FACT} | columns)
    memory.refresh_from_db()
    Memory.objects.filter(pk=memory.pk).update(screened_hash=memory.content_hash)
    memory.refresh_from_db()
    return memory


def approved(
    statement: str = "Drinks tea.", *by: User, subject: Subject | None = None, is_embedded: bool = False, **columns: Any
) -> Memory:
    """A memory that these people approved; by default as many new ones as must."""
    memory = proposed(statement, subject=subject, **columns)
    people = by or [reviewer_number(number) for number in range(1 + memory.needs_two)]
    for person in people:
        decided(memory, person)
    if is_embedded:
        embedder = embedding.load(settings.EMBEDDER)
        assert embedder is not None
        memory.embedding, memory.embedder = embedder.embed([statement])[0], embedder.name
        memory.embedded_hash = memory.content_hash
    memory.status = Memory.Status.APPROVED
    with proven(people[-1]):
        memory.save(update_fields=["status", "embedding", "embedder", "embedded_hash"])
    memory.refresh_from_db()
    return memory


def decided(memory: Memory, by: User | ApprovalRule, decision: str = "approve", **columns: Any) -> Review:
    """A decision about the current text, by a person, or by a rule in a job.

    That of a second person is about an approval that the first asked for.
    """
    whose: dict[str, Any] = {"rule": by} if isinstance(by, ApprovalRule) else {"reviewer": by}
    approval = None
    if isinstance(by, User) and decision == "approve" and "approval" not in columns:
        approval = asked_before(memory, by)
    with proven(audit.Actor("job", "rules") if isinstance(by, ApprovalRule) else by):
        if approval and isinstance(by, User):
            approval.decision, approval.decided_by = "approved", by
            approval.save()
            whose["approval"] = approval
        return Review.objects.create(
            memory=memory, decision=decision, **{"content_hash": memory.content_hash} | whose | columns
        )


def asked_before(memory: Memory, by: User) -> Approval | None:
    """The approval for which another person, who approved before, asks."""
    first = memory.reviews.filter(decision="approve").exclude(reviewer=by).exclude(reviewer=None).first()
    if first is None or first.reviewer is None:
        return None
    with proven(first.reviewer):
        return Approval.objects.create(kind="memory", object_ref=memory.pk, digest="0", asked_by=first.reviewer)


def approval_rule(name: str = "sure ones", **columns: Any) -> ApprovalRule:
    """A rule that somebody has saved."""
    with proven(reviewer_number(0)):
        return ApprovalRule.objects.create(name=name, **columns)


def apply_rules() -> int:
    """Approves by rules as the job does."""
    with audit.acting(audit.Actor("job", "apply_approval_rules")):
        return rules.apply_rules()


def date_back(reviews: QuerySet[Review], by: timedelta) -> None:
    """Decisions were made so much earlier; without triggers, because they refuse another time."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        reviews.update(decided_at=F("decided_at") - by)
        cursor.execute("SET LOCAL session_replication_role = origin")


def user_quote(memory: Memory, words: str = "Tea, please.", **columns: Any) -> Evidence:
    """Evidence as the console leaves it that found the quote in a user's item of a session of the subject. The memory
    is the console's own, unless it has the name of another proposer."""
    Memory.objects.filter(pk=memory.pk, extractor="").update(extractor="rules/1")
    record = make_session(subject=memory.subject)
    said = {"record_id": record.pk, "session_id": record.session_id, "item_id": "1", "speaker": "user", "tools": []}
    return Evidence.objects.create(memory=memory, quote=words, **{**said, "said_by_user": True} | columns)


def reviewer_number(number: int) -> User:
    return User.objects.get_or_create(username=f"reviewer_{number}")[0]


def one_of_each(memory: Memory, words: str = "Tea, please.") -> list[Model]:
    """A row of every kind that raw edits show around a memory; what can say something says these words."""
    signal = Signal.objects.create(kind="correction", text=words, memory=memory)
    rule = approval_rule("sure ones, as raw edits show them")
    return [
        memory,
        memory.versions.get(),
        Evidence.objects.create(memory=memory, quote=words, signal=signal),
        signal,
        decided(memory, rule, content_hash="of another text", note=words),
        rule,
        LearningStop.objects.create(subject=Subject.objects.create()),
        Recall.objects.create(),
        Distillation.objects.create(record_id=memory.pk, distiller="rules/1"),
    ]
