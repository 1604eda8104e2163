"""Panels about memories on pages of sessions and subjects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q
from django.template.loader import render_to_string
from django.urls import reverse

from memadmin.counting import COUNT_CAP, count_up_to, counted
from memories_app.learning.distilled_proposals import SUBJECT_SUMMARY
from memories_app.learning.forms import FeedbackForm
from memories_app.learning.remarks import remarks_on
from memories_app.learning.signals import stops_of
from memories_app.models import Evidence, Memory, Recall, RecalledMemory
from memories_app.pages import read_audit
from memories_app.pages.view_models import memory_rows, shown_memories
from memories_app.services.retiring import learned_from
from sessions_app.extensions import (
    ItemLink,
    Mark,
    Marks,
    Panel,
    SubjectMoment,
    SubjectTab,
    beside_item,
    beside_subject,
    beside_timeline,
    on_timeline,
    subject_moments,
    subject_tabs,
)
from sessions_app.items import ItemPage
from sessions_app.masking import Masker
from sessions_app.models import SessionRecord, Subject
from sessions_app.timeline.events import Message, Timeline, TimelineRun

READ = "memories_app.read_memory"

REMARKS_SHOWN = 5

MEMORIES_BESIDE = 4
"""Memories of a list beside a timeline; a link leads to all."""

RECALLS_READ = 50
"""The newest recalls of a session whose memories are listed beside its timeline."""

MEMORIES_SHOWN = 50

MOMENTS = 20


@beside_item
def feedback_panel(user: User, record: SessionRecord, item_id: str) -> Panel:
    """Feedback on an item, newest first, and its form. One query."""
    remarks = remarks_on(record, [item_id], reader=user).get(item_id, [])[: -REMARKS_SHOWN - 1 : -1]
    shown = {"record": record, "item_id": item_id, "remarks": remarks, "form": FeedbackForm()}
    return Panel("memories/_feedback.html", shown)


@dataclass(frozen=True, slots=True)
class RecalledHere:
    """A memory recalled in a session: the newest version used, and the number of times."""

    memory: Memory
    statement: str
    version: int
    count: int


@beside_timeline
def memories_panel(user: User, record: SessionRecord) -> Panel | None:
    """Memories learned from a session and recalled in it, the newest of each. Four queries, and the event."""
    if not user.has_perm(READ):
        return None
    all_learned = learned_from(record.pk)
    learned_count = count_up_to(all_learned)
    recalls = Recall.objects.filter(record_id=record.pk).order_by("-recalled_at").values_list("pk", flat=True)
    newest = list(recalls[: COUNT_CAP + 1])
    if not learned_count and not newest:
        return None
    masker = Masker()
    learned = list(all_learned.defer("embedding", "words")[:MEMORIES_BESIDE])
    recalled = recalled_in(newest[:RECALLS_READ], masker)[:MEMORIES_BESIDE]
    read_audit.listed([*dict.fromkeys([*learned, *(each.memory for each in recalled)])])
    shown = {
        "record": record,
        "learned": [(memory, masker.text(memory.statement)) for memory in learned],
        "learned_count": learned_count,
        "recalled": recalled,
        "recall_count": len(newest),
        "newest": newest[0] if newest else None,
    }
    return Panel("memories/_of_session.html", shown)


def recalled_in(recalls: Sequence[UUID], masker: Masker) -> list[RecalledHere]:
    """Memories used in these recalls, those of the newest first. One query."""
    if not recalls:
        return []
    used = RecalledMemory.objects.filter(recall__in=recalls, memory__isnull=False).order_by("-recalled_at", "place")
    found = defaultdict[Memory, list[int]](list)
    for each in used.select_related("memory").defer("memory__embedding", "memory__words"):
        assert each.memory
        found[each.memory].append(each.version)
    return [
        RecalledHere(memory, masker.text(memory.statement), versions[0], len(versions))
        for memory, versions in found.items()
    ]


@on_timeline
def memory_marks(user: User, record: SessionRecord, page: ItemPage, timeline: Timeline) -> Marks | None:
    """Marks of memories learned from these items, and of recalls in their runs. Two queries."""
    if not page.items or not user.has_perm(READ):
        return None
    return Marks(_learned(record, page), _recalled(record, page, timeline))


@on_timeline
def feedback_marks(user: User, record: SessionRecord, page: ItemPage, timeline: Timeline) -> Marks | None:
    """Feedback on the items of a page, and a link to give some at each answer. One query."""
    answers = [
        event.item.id
        for event in timeline.events
        if isinstance(event, Message) and event.role == "assistant" and event.body
    ]
    remarks = remarks_on(record, [item.id for item in page.items], reader=user)
    below = {
        item_id: render_to_string(
            "memories/_answer_feedback.html",
            {"record": record, "item_id": item_id, "remarks": given},
        )
        for item_id, given in remarks.items()
    }
    asks = {
        item_id: ItemLink(
            "Feedback",
            f"{reverse('sessions:item', args=[record.pk, item_id])}#feedback",
            reverse("memories:feedback", args=[record.pk, item_id]),
        )
        for item_id in answers
    }
    return Marks(asks=asks, below=below)


def _learned(record: SessionRecord, page: ItemPage) -> Mapping[str, Sequence[Mark]]:
    """One mark for each item that is evidence of a current memory."""
    sources = Evidence.objects.filter(
        record_id=record.pk, item_id__in=[item.id for item in page.items], memory__status__in=Memory.CURRENT
    )
    memories = defaultdict[str, dict[Memory, None]](dict)
    for evidence in sources.select_related("memory").only("item_id", "memory__status").order_by("item_id", "pk"):
        memories[evidence.item_id][evidence.memory] = None
    return {item_id: [_learned_mark(record, list(found))] for item_id, found in memories.items()}


def _learned_mark(record: SessionRecord, memories: Sequence[Memory]) -> Mark:
    if len(memories) > 1:
        return Mark("bulb", f"{len(memories)} memories", reverse("memories:learned-from", args=[record.pk]))
    is_approved = memories[0].status == Memory.Status.APPROVED
    return Mark("bulb", f"memory {'learned' if is_approved else 'proposed'}", memories[0].get_absolute_url())


RECALLS_MARKED = 200
"""Maximum of recalls marked on one page of a session."""

RECALLS_AT_RUN = 3

BEFORE_PAGE = timedelta(minutes=10)
"""Time before the first item in which a recall still belongs to a run that began on the page before."""


def _recalled(record: SessionRecord, page: ItemPage, timeline: Timeline) -> Mapping[str, Sequence[Mark]]:
    """A mark at the run of each of the first recalls, and one for the remaining ones."""
    first, last = page.items[0].written_at, page.items[-1].written_at
    recalls = Recall.objects.filter(record_id=record.pk)
    if page.has_earlier:
        recalls = recalls.filter(recalled_at__gte=first - BEFORE_PAGE) if first else recalls.none()
    if page.has_later:
        recalls = recalls.filter(recalled_at__lte=last) if last else recalls.none()
    marks = defaultdict[str, list[Mark]](list)
    for recall in recalls.annotate(memory_count=Count("memories")).order_by("recalled_at", "pk")[:RECALLS_MARKED]:
        run = run_at(timeline, recall.recalled_at, has_earlier=page.has_earlier)
        if run is not None:
            words = f"{counted(recall.memory_count, 'memories')} recalled"
            marks[run.anchor].append(Mark("brain", words, reverse("memories:recall-detail", args=[recall.pk])))
    return {anchor: first_of(several) for anchor, several in marks.items()}


def first_of(marks: Sequence[Mark]) -> Sequence[Mark]:
    """The first marks; the page of the next one links to the others."""
    shown, others = marks[:RECALLS_AT_RUN], marks[RECALLS_AT_RUN:]
    return [*shown, Mark("brain", f"{len(others)} more", others[0].url)] if len(others) > 1 else marks


def run_at(timeline: Timeline, instant: datetime, *, has_earlier: bool) -> TimelineRun | None:
    """The run active at an instant: the last one begun before. None if it is not on this page.

    The SDK stores the input of a run before it calls the model, which is when memories are recalled.
    """
    begun = [run for run in timeline.runs if run.started_at and run.started_at <= instant]
    if begun:
        return begun[-1]
    first = next(iter(timeline.runs), None)
    if first is None or first.started_at is None or (has_earlier and first.turns[0].is_input):
        return None
    return first


@beside_subject
def subject_panel(user: User, subject: Subject) -> Panel | None:
    """Numbers of approved and waiting memories about a subject, and whether learning is stopped. Three queries."""
    if not user.has_perm(READ):
        return None
    ids = subject.group_ids()
    counts = Memory.objects.filter(subject__in=ids).aggregate(
        approved=Count("pk", filter=Q(status=Memory.Status.APPROVED)),
        waiting=Count("pk", filter=Q(status__in=Memory.AWAITING)),
        summaries=ArrayAgg(
            "pk",
            filter=Q(kind=Memory.Kind.SUMMARY, key=SUBJECT_SUMMARY, status=Memory.Status.APPROVED),
            order_by="-proposed_at",
        ),
    )
    summary = next(iter(counts.pop("summaries") or ()), None)
    is_stopped = stops_of(ids).exists()
    return Panel(
        "memories/_of_subject.html", {"subject": subject, "is_stopped": is_stopped, "summary": summary, **counts}
    )


@subject_tabs
def memories_tab(user: User, subject: Subject) -> SubjectTab | None:
    """The tab with the subject's memories. No query before it is opened."""
    return SubjectTab("memories", "Memories", lambda: memories_of(subject)) if user.has_perm(READ) else None


def memories_of(subject: Subject) -> Panel:
    """The newest memories of a subject, whose event is saved. Three queries."""
    newest = Memory.objects.filter(subject__in=subject.group_ids()).newest_first().defer("embedding", "words", "data")
    page = list(newest[: MEMORIES_SHOWN + 1])
    rows = memory_rows(shown_memories(page[:MEMORIES_SHOWN]))
    read_audit.listed([row.memory for row in rows])
    shown = {"subject": subject, "rows": rows, "has_more": len(page) > MEMORIES_SHOWN}
    return Panel("memories/_subject_tab.html", shown)


@subject_moments
def memory_moments(user: User, subject: Subject) -> list[SubjectMoment] | None:
    """The newest proposals about a subject, and decisions about them. Two queries."""
    if not user.has_perm(READ):
        return None
    newest = Memory.objects.filter(subject__in=subject.group_ids()).newest_first()
    moments = []
    for memory in newest.only("kind", "status", "proposed_at", "decided_at", "source")[:MOMENTS]:
        address, kind = memory.get_absolute_url(), memory.get_kind_display()
        source = f"{kind}, {memory.get_source_display()}"
        moments.append(SubjectMoment(memory.proposed_at, "bulb", "Memory proposed", address, source))
        if memory.decided_at is not None:
            words = f"Memory {memory.get_status_display()}"
            moments.append(SubjectMoment(memory.decided_at, "checklist", words, address, kind))
    return moments
