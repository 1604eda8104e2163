"""Views of the review queue: the list, and one proposal with its context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.timezone import now

from memadmin.home.saved_views import has_saved_views
from memadmin.web.fragments import wants_fragment
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.audit_events import RejectReason
from memories_app.models import Memory, Review
from memories_app.pages import access, read_audit
from memories_app.review.claiming import ClaimedByOther, claim, is_claimed_by_other, last_review
from memories_app.review.context import ReviewContext, review_context
from memories_app.review.forms import EditForm, QuestionForm
from memories_app.review.queue import (
    QueueFilter,
    age,
    around,
    ends_of,
    for_rows,
    hints_of,
    next_to_decide,
    queue_status,
    rows_of,
)
from memories_app.review.recall_change import recall_change
from memories_app.review.rules import samples_to_see
from memories_app.review.undoing import UNDO_WITHIN
from memories_app.services.refusals import MemoryActionRefused, Overtaken
from sessions_app.masking import Masker

READ, REVIEW = "memories_app.read_memory", "memories_app.review_memory"

PROPOSALS = ListPage("memories/reviews.html", salt="reviews")
MOST_DECISIONS = 50


@operator_page(REVIEW)
@has_saved_views("reviews:list", REVIEW, QueueFilter)
def review_queue(request: OperatorRequest) -> HttpResponse:
    """The list with the queue's status, or a table for bulk decisions."""
    filters = QueueFilter(request.GET, request.user)
    is_table = request.GET.get("as") == "table"
    page = PROPOSALS.page(request, for_rows(filters.queryset()))
    read_audit.listed(page.rows)
    context = queue_context(request, filters) | {"is_table": is_table, "rows": rows_of(page.rows, request.user)}
    return PROPOSALS.render(request, context, page, status=400 if filters.problems else 200)


@operator_page(REVIEW)
def review(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    """One proposal; opening it claims it, and releases the previous claim of this person."""
    memory = access.memory_for(request.user, memory_id)
    problem: MemoryActionRefused | None = None
    if request.method == "GET" and memory.is_awaiting:
        try:
            claim(memory, by=request.user)
        except Overtaken as overtaken:
            problem = overtaken
    return proposal_page(request, memory, problem=problem)


@operator_page(REVIEW, methods="GET, POST")
def recall_after(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    """The recall preview of a proposal: a fragment that the page loads separately, and again for another query."""
    memory = access.memory_for(request.user, memory_id)
    form = QuestionForm(request.POST if request.method == "POST" else None)
    question, status = "", 200
    if form.is_bound:
        question, status = (form.cleaned_data["question"], 200) if form.is_valid() else ("", 422)
    change = recall_change(memory, reader=request.user, question=question) if memory.is_awaiting else None
    if change:
        read_audit.recall_change_viewed(request, memory, change.seen)
    then = {"recall_change": change, "question_form": form}
    if not wants_fragment(request):
        return proposal_page(request, memory, then=then, status=status)
    query = QueueFilter(request.GET, request.user).query_string()
    response = render(request, "memories/_recall_after.html", {"memory": memory, "query": query, **then}, status=status)
    patch_vary_headers(response, ["HX-Request", "HX-Boosted"])
    return response


def proposal_page(
    request: OperatorRequest,
    memory: Memory,
    *,
    problem: MemoryActionRefused | None = None,
    edit: EditForm | None = None,
    then: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page of a proposal in its current state, also after a refused decision."""
    filters = QueueFilter(request.GET, request.user)
    # After a lost race the current state is shown, not the one read before.
    memory = access.memory_for(request.user, memory.pk) if status != 200 else memory
    shown = review_context(memory, reader=request.user)
    in_queue = around(filters, memory) if memory.is_awaiting else list(for_rows(filters.queryset())[: PROPOSALS.size])
    read_audit.memory(request, memory, shown.evidence, others=[*in_queue, *(each.memory for each in shown.neighbours)])
    moment = now()
    is_claimed = isinstance(problem, ClaimedByOther) or is_claimed_by_other(memory, request.user, moment)
    may_decide = memory.is_awaiting and not is_claimed and memory.proposed_by_id != request.user.pk
    context = queue_context(request, filters) | {
        "memory": memory,
        "shown": shown,
        "rows": rows_of(in_queue, request.user),
        "problem": problem,
        "is_claimed_by_other": is_claimed,
        "may_decide": may_decide,
        "following": None if may_decide else next_to_decide(filters, after=memory, user=request.user),
        "decision": None if memory.is_awaiting else last_review(memory),
        "waited": age(moment - memory.awaiting_since),
        "ends_in": ends_of([memory], moment).get(memory.pk, ""),
        "hints": hints_of(memory),
        "sample": samples_to_see().filter(memory=memory).first() if memory.status == Memory.Status.APPROVED else None,
        "reasons": RejectReason.choices,
        "edit": edit or edit_form(memory, shown.statement),
        "may_approve": may_approve(memory, shown, request),
        **(then or {"question_form": QuestionForm()}),
    }
    return render(request, "memories/review.html", context, status=status)


def edit_form(memory: Memory, statement: str) -> EditForm:
    """The form with the statement as shown: masked values must be replaced or removed."""
    read = {"content_hash": memory.content_hash, "base_version": memory.base_version}
    return EditForm(initial=read | {"statement": statement, "kind": memory.kind})


def may_approve(memory: Memory, shown: ReviewContext, request: OperatorRequest) -> bool:
    """Whether the button is enabled; the verb checks all of it again."""
    own = {memory.proposed_by_id, shown.first.asked_by_id if shown.first else None}
    return memory.is_screened and not shown.is_base_changed and request.user.pk not in own


def queue_context(request: OperatorRequest, filters: QueueFilter) -> dict[str, Any]:
    """Context of the head of the queue, for all of its pages."""
    last = undoable(request)
    return {
        "filters": filters,
        "query": filters.query_string(),
        "queue_status": queue_status(),
        "undoable": last,
        "undoable_words": Masker().text(last.memory.statement) if last else "",
        "just_snoozed": just_snoozed(request),
    }


def undoable(request: OperatorRequest) -> Review | None:
    """The previous decision, while it can be undone."""
    try:
        decided = UUID(request.GET.get("decided", ""))
    except ValueError:
        return None
    mine = Review.objects.filter(memory=decided, reviewer=request.user, undone_at=None)
    return mine.filter(decided_at__gt=now() - UNDO_WITHIN).select_related("memory").order_by("-decided_at").first()


def just_snoozed(request: OperatorRequest) -> Memory | None:
    """The proposal that was just snoozed, if it still is."""
    try:
        snoozed = UUID(request.GET.get("snoozed", ""))
    except ValueError:
        return None
    waiting = Memory.objects.awaiting_review().filter(pk=snoozed, snoozed_until__gt=now())
    return waiting.only("pk", "snoozed_until").first()


@operator_page(REVIEW)
def my_decisions(request: OperatorRequest) -> HttpResponse:
    """The last decisions of this person, with a button to undo those that still can be."""
    mine = Review.objects.filter(reviewer=request.user).select_related("memory").order_by("-decided_at", "-pk")
    reviews = list(mine[:MOST_DECISIONS])
    read_audit.listed([review.memory for review in reviews])
    masker, newest = Masker(), set[UUID]()
    rows = []
    for review in reviews:
        # Only the latest decision about a memory can be undone.
        is_latest = review.memory_id not in newest
        newest.add(review.memory_id)
        may_undo = is_latest and review.undone_at is None and review.decided_at > now() - UNDO_WITHIN
        rows.append((review, masker.text(review.memory.statement), may_undo))
    return render(request, "memories/my_decisions.html", {"rows": rows, "undo_within": UNDO_WITHIN})
