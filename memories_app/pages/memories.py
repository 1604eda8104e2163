"""Pages of memories: the list, one memory with versions, evidence and uses, and its retirement."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from memadmin.counting import counted
from memadmin.home.saved_views import has_saved_views
from memadmin.replica import from_replica
from memadmin.web.filters import sentences
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.audit_events import EraseReason, RetireReason
from memories_app.extensions import beside_memory
from memories_app.learning.proposing import propose_change
from memories_app.models import Memory
from memories_app.pages import access, read_audit, view_models
from memories_app.pages.filters import MemoryFilter
from memories_app.pages.forms import EraseForm, RetireForm, StatementForm, ToolForm
from memories_app.pages.search import fetch_matching
from memories_app.recall.view_models import recall_chart
from memories_app.services import erasing, retiring
from memories_app.services.refusals import MemoryActionRefused, Overtaken
from sessions_app import access as session_access
from sessions_app.search.remembered import remember_search
from sessions_app.search_syntax import Unsearchable
from sessions_app.services.revealing import REVEAL
from sessions_app.views.refusals import refused

MEMORIES = ListPage("memories/list.html", salt="memories", fragment="memories")
RECALLS_SHOWN = 20


def filters_for(query: QueryDict, user: User) -> MemoryFilter:
    return MemoryFilter(query, is_masked=not user.has_perm(REVEAL))


@operator_page("memories_app.read_memory")
@has_saved_views(
    "memories:list",
    "memories_app.read_memory",
    lambda query, user: MemoryFilter(query, is_masked=not user.has_perm(REVEAL)),
)
@from_replica
def memory_list(request: OperatorRequest) -> HttpResponse:
    is_masked = not request.user.has_perm(REVEAL)
    filters = filters_for(request.GET, request.user)
    memories = filters.memories().defer("embedding", "words", "data")
    is_search = filters.parsed and not filters.errors
    fetch = fetch_matching(memories, str(filters.parsed)) if is_search else None
    page = MEMORIES.page(request, memories, fetch=fetch)
    shown = view_models.shown_memories(page.rows)
    if filters.parsed and is_masked:
        shown = view_models.matching_when_masked(shown, str(filters.parsed))
    read_audit.listed([each.memory for each in shown])
    context = {"filters": filters, "memories": view_models.memory_rows(shown)}
    return MEMORIES.render(request, context, page, status=422 if filters.problems else 200)


@operator_page("memories_app.read_memory", methods="POST")
def search(request: OperatorRequest) -> HttpResponse:
    """Stores the typed words and redirects to the list, so that no address contains them."""
    try:
        remembered = remember_search(request.user, request.POST.get("q", ""))
    except Unsearchable as problem:
        return refused(request, str(problem))
    query = QueryDict(request.POST.get("filters", ""), mutable=True)
    query["search"] = str(remembered.pk)
    return redirect(f"{reverse('memories:list')}?{query.urlencode()}")


@operator_page("memories_app.read_memory")
def memory(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    return memory_page(request, access.memory_for(request.user, memory_id), RetireForm())


def memory_page(request: OperatorRequest, shown: Memory, form: RetireForm) -> HttpResponse:
    evidence = list(shown.evidence.order_by("-version", "said_at", "pk"))
    quotes = view_models.quotes_for(request.user, evidence)
    context = {
        "memory": shown,
        "statement": view_models.shown_memories([shown])[0].statement,
        "quotes": quotes,
        "versions": view_models.shown_versions(shown),
        "reviews": shown.reviews.select_related("reviewer", "rule").order_by("-decided_at", "-pk"),
        "proposals": shown.proposals.awaiting_review().defer("embedding", "words")[:5],
        "uses": view_models.uses_of(shown, RECALLS_SHOWN),
        "recall_chart": recall_chart(shown),
        "feedback": view_models.feedback_on(shown),
        "form": form,
        "erase_form": EraseForm(),
        "panels": beside_memory.answers(request.user, shown),
    }
    read_audit.memory(request, shown, quotes)
    return render(request, "memories/memory.html", context, status=422 if form.errors else 200)


@operator_page("memories_app.retire_memory", methods="POST")
def retire(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    shown = access.memory_for(request.user, memory_id)
    form = RetireForm(request.POST)
    if not form.is_valid():
        return memory_page(request, shown, form)
    try:
        retiring.retire_memory(shown, by=request.user, reason=RetireReason(form.cleaned_data["reason"]))
    except MemoryActionRefused as problem:
        messages.warning(request, str(problem))
    else:
        messages.success(request, "Retired: agents no longer recall it from their next run on.")
    return redirect(shown)


@operator_page("memories_app.read_memory", "memories_app.erase_version", methods="POST")
def erase_version(request: OperatorRequest, memory_id: UUID, number: int) -> HttpResponse:
    version = access.version_for(request.user, memory_id, number)
    form = EraseForm(request.POST)
    address = reverse("memories:memory", args=[memory_id])
    if not form.is_valid():
        return refused(request, *sentences(form))
    try:
        erasing.erase_version(version, by=request.user, reason=EraseReason(form.cleaned_data["reason"]))
    except MemoryActionRefused as problem:
        messages.warning(request, str(problem))
    else:
        messages.success(request, f"The text of version {number} is erased.")
    return redirect(address)


@operator_page("memories_app.read_memory", "memories_app.review_memory", methods="GET, POST")
def change(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    """Proposes a new text for a memory, which another reviewer must approve."""
    shown = access.memory_for(request.user, memory_id)
    statement = view_models.shown_memories([shown])[0].statement
    form = StatementForm(request.POST if request.method == "POST" else None, initial={"statement": statement})
    problem, status = "", 200
    if form.is_valid():
        said = {name: form.cleaned_data[name] for name in ("statement", "content_hash")}
        try:
            propose_change(shown, by=request.user, **said)
        except MemoryActionRefused as refusal:
            problem, status = str(refusal), 409 if isinstance(refusal, Overtaken) else 422
        else:
            messages.success(
                request, "Another reviewer has to approve your change. Agents read the current text until then."
            )
            return redirect(shown)
    elif form.is_bound:
        status = 422
    context = {"memory": shown, "statement": statement, "form": form, "problem": problem}
    read_audit.memory(request, shown, [])
    return render(request, "memories/change.html", context, status=status)


@operator_page("memories_app.review_memory", methods="POST")
def revalidate(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    shown = access.memory_for(request.user, memory_id)
    try:
        retiring.ask_revalidation(shown, by=request.user)
    except MemoryActionRefused as problem:
        messages.warning(request, str(problem))
    else:
        messages.success(request, "Returned to the review queue. Agents recall it again after approval.")
    return redirect(shown)


@operator_page("memories_app.read_memory", methods="GET, POST")
def learned_from(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    """Memories from one session, and their joint retirement."""
    if request.method == "POST" and not request.user.has_perm("memories_app.retire_memory"):
        raise PermissionDenied
    record = session_access.record_for(request.user, record_id)
    form = RetireForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        reason = RetireReason(form.cleaned_data["reason"])
        count = retiring.retire_learned_from(record.pk, by=request.user, reason=reason)
        messages.success(request, f"{counted(count, 'memories')} retired.")
        return redirect("memories:learned-from", record.pk)
    page = list(retiring.learned_from(record.pk).defer("embedding", "words")[: MEMORIES.size + 1])
    context = {
        "record": record,
        "memories": view_models.shown_memories(page[: MEMORIES.size]),
        "has_more": len(page) > MEMORIES.size,
        "form": form,
    }
    read_audit.listed(page[: MEMORIES.size])
    return render(request, "memories/learned_from.html", context, status=422 if form.errors else 200)


@operator_page("memories_app.read_memory", methods="GET, POST")
def learned_by_tool(request: OperatorRequest) -> HttpResponse:
    """Memories that may come from one tool, and their joint retirement. The tool's name is not personal data, so it is
    in the address."""
    if request.method == "POST" and not request.user.has_perm("memories_app.retire_memory"):
        raise PermissionDenied
    asked = ToolForm(request.GET or None)
    form = RetireForm(request.POST if request.method == "POST" else None)
    context: dict[str, Any] = {"asked": asked, "form": form}
    if not asked.is_valid():
        is_wrong = bool(asked.errors) or request.method == "POST"
        return render(request, "memories/learned_by_tool.html", context, status=422 if is_wrong else 200)
    tool = asked.cleaned_data["tool"]
    if form.is_valid():
        reason = RetireReason(form.cleaned_data["reason"])
        count = retiring.retire_learned_by_tool(tool, by=request.user, reason=reason)
        messages.success(request, f"{counted(count, 'memories')} retired.")
        return redirect(f"{reverse('memories:learned-by-tool')}?{urlencode({'tool': tool})}")
    page = list(retiring.learned_by_tool(tool).defer("embedding", "words")[: MEMORIES.size + 1])
    context |= {
        "tool": tool,
        "memories": view_models.shown_memories(page[: MEMORIES.size]),
        "has_more": len(page) > MEMORIES.size,
    }
    read_audit.listed(page[: MEMORIES.size])
    return render(request, "memories/learned_by_tool.html", context, status=422 if form.errors else 200)
