"""Memories for tests, as verbs and the gate leave them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Model

from memadmin.client import embedding
from memories_app.models import ApprovalRule, Distillation, Evidence, LearningStop, Memory, Recall, Review, Signal
from sessions_app.models import Subject
from tests.builders import make_session


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
        Review.objects.create(memory=memory, reviewer=person, decision="approve", content_hash=memory.content_hash)
    if is_embedded:
        embedder = embedding.load(settings.EMBEDDER)
        assert embedder is not None
        memory.embedding, memory.embedder = embedder.embed([statement])[0], embedder.name
        memory.embedded_hash = memory.content_hash
    memory.status = Memory.Status.APPROVED
    memory.save(update_fields=["status", "embedding", "embedder", "embedded_hash"])
    memory.refresh_from_db()
    return memory


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
    rule = ApprovalRule.objects.create(name="sure ones, as raw edits show them")
    return [
        memory,
        memory.versions.get(),
        Evidence.objects.create(memory=memory, quote=words, signal=signal),
        signal,
        Review.objects.create(memory=memory, rule=rule, decision="approve", content_hash="of another text", note=words),
        rule,
        LearningStop.objects.create(subject=Subject.objects.create()),
        Recall.objects.create(),
        Distillation.objects.create(record_id=memory.pk, distiller="rules/1"),
    ]
