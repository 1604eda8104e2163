"""Views of decisions: each redirects to the next proposal, with a minute to undo."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django_htmx.http import push_url

from memadmin.web.filters import sentences
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.audit_events import RejectReason
from memories_app.models import Memory
from memories_app.pages import access, read_audit
from memories_app.pages.forms import ReadForm
from memories_app.review import decisions
from memories_app.review.bulk_decisions import chosen, decide_many
from memories_app.review.claiming import refuse_unread, release
from memories_app.review.forms import EditForm, ManyForm, MergeForm, RejectForm, SnoozeForm
from memories_app.review.proposal_expiry import reopen_proposal
from memories_app.review.queue import QueueFilter, next_to_decide, rows_of
from memories_app.review.undoing import undo_decision
from memories_app.review.views.queue import REVIEW, proposal_page
from memories_app.services.refusals import MemoryActionRefused, Overtaken

DONE = {"approve": "approved", "reject": "rejected", "snooze": "snoozed"}


@operator_page(REVIEW, methods="POST")
def approve(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    form = ReadForm(request.POST)

    def decide(memory: Memory) -> Memory:
        return decisions.approve_memory(memory, by=request.user, **form.cleaned_data)

    return decided(request, memory_id, form, decide)


@operator_page(REVIEW, methods="POST")
def edit(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    """Approves with a changed text."""
    form = EditForm(request.POST)

    def decide(memory: Memory) -> Memory:
        said = dict(form.cleaned_data)
        changes = {name: said.pop(name) for name in ("statement", "kind")}
        changes["statement"] = changes["statement"].strip()
        return decisions.edit_and_approve(memory, by=request.user, changes=changes, **said)

    return decided(request, memory_id, form, decide)


@operator_page(REVIEW, methods="POST")
def reject(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    form = RejectForm(request.POST)

    def decide(memory: Memory) -> Memory:
        said = {name: form.cleaned_data[name] for name in ("content_hash", "reason", "note")}
        return decisions.reject_memory(memory, by=request.user, **said)

    return decided(request, memory_id, form, decide)


@operator_page(REVIEW, methods="POST")
def merge(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    form = MergeForm(request.POST)

    def decide(memory: Memory) -> Memory:
        into = access.memory_for(request.user, form.cleaned_data["into"])
        said = {name: form.cleaned_data[name] for name in ("content_hash", "note")}
        return decisions.merge_memory(memory, by=request.user, into=into, **said)

    return decided(request, memory_id, form, decide)


@operator_page(REVIEW, methods="POST")
def snooze(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    form = SnoozeForm(request.POST)

    def decide(memory: Memory) -> Memory:
        return decisions.snooze_memory(memory, by=request.user, length=form.cleaned_data["length"])

    return decided(request, memory_id, form, decide, what="snoozed")


@operator_page(REVIEW, methods="POST")
def wake(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    return put_back(request, memory_id, decisions.wake_memory, "The proposal is back in the queue and claimed by you.")


@operator_page(REVIEW, methods="POST")
def reopen(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    """Returns an expired proposal to the queue."""
    return put_back(request, memory_id, reopen_proposal, "The proposal is back in the queue and claimed by you.")


@operator_page(REVIEW, methods="POST")
def undo(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    return put_back(request, memory_id, undo_decision, "Undone: the proposal is back in the queue and claimed by you.")


@operator_page(REVIEW, methods="POST")
def accept_base(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    """Records that the difference to the current memory was read."""
    memory = access.memory_for(request.user, memory_id)
    form = ReadForm(request.POST)
    if not form.is_valid():
        return refused(request, memory, MemoryActionRefused(memory, " ".join(sentences(form))))
    try:
        decisions.accept_base(memory, by=request.user, base_version=form.cleaned_data["base_version"] or 0)
    except MemoryActionRefused as problem:
        return refused(request, memory, problem)
    return redirect(address_of(memory, request))


@operator_page(REVIEW, methods="POST")
def let_go(request: OperatorRequest, memory_id: UUID) -> HttpResponse:
    """Releases a claim without a decision."""
    release(access.memory_for(request.user, memory_id), by=request.user)
    return redirect(f"{reverse('reviews:list')}?{query_of(request)}")


@operator_page(REVIEW, methods="POST")
def decide_about_many(request: OperatorRequest) -> HttpResponse:
    """Shows how many selected proposals qualify, with reasons for the others; after confirmation decides."""
    back = f"{reverse('reviews:list')}?{urlencode({'as': 'table'})}&{query_of(request)}"
    form = ManyForm(request.POST)
    if not form.is_valid():
        for sentence in sentences(form):
            messages.error(request, sentence)
        return redirect(back)
    verb = form.cleaned_data["verb"]
    if not form.is_confirmed or form.lacks:
        looked_at = chosen(form.read, by=request.user, verb=verb)
        read_audit.listed([each.memory for each in looked_at])
        rows = list(zip(rows_of([each.memory for each in looked_at], request.user), looked_at, strict=True))
        context = {
            "verb": verb,
            "problem": form.lacks if form.is_confirmed else "",
            "reasons": RejectReason.choices,
            "reason": form.cleaned_data["reason"],
            "qualify": [row for row, each in rows if not each.why_not],
            "left": [(row, each.why_not) for row, each in rows if each.why_not],
            "count": len(form.read),
            "back": back,
            "query": query_of(request),
        }
        status = 422 if context["problem"] else 200
        return push_url(render(request, "memories/decide_many.html", context, status=status), url=False)
    outcome = decide_many(form.read, by=request.user, verb=verb, **form.said)
    done, left = len(outcome.done), len(outcome.left)
    said = f"{done} of {done + left} proposal{pluralize(done + left)} {DONE[verb]}."
    (messages.warning if left else messages.success)(
        request, said + (f" Not changed: {outcome.reasons}." if left else "")
    )
    return redirect(back)


def decided(
    request: OperatorRequest,
    memory_id: UUID,
    form: ReadForm | SnoozeForm,
    decide: Callable[[Memory], Memory],
    *,
    what: str = "decided",
) -> HttpResponse:
    """Makes a decision and redirects to the next proposal under the same filters; `what` names the undoable action."""
    memory = access.memory_for(request.user, memory_id)
    if not form.is_valid():
        edit_form = form if isinstance(form, EditForm) else None
        return refused(request, memory, MemoryActionRefused(memory, " ".join(sentences(form))), edit_form)
    try:
        refuse_unread(memory, by=request.user)
        memory = decide(memory)
    except MemoryActionRefused as problem:
        return refused(request, memory, problem, form if isinstance(form, EditForm) else None)
    following = next_to_decide(QueueFilter(request.GET, request.user), after=memory, user=request.user)
    query = "&".join(filter(None, [query_of(request), urlencode({what: memory.pk})]))
    where = reverse("reviews:review", args=[following.pk]) if following else reverse("reviews:list")
    return redirect(f"{where}?{query}")


def put_back(request: OperatorRequest, memory_id: UUID, verb: Callable[..., object], said: str) -> HttpResponse:
    """Returns a proposal to the queue, and stays on its page."""
    memory = access.memory_for(request.user, memory_id)
    try:
        verb(memory, by=request.user)
    except MemoryActionRefused as problem:
        return refused(request, memory, problem)
    messages.success(request, said)
    return redirect(address_of(memory, request))


def refused(
    request: OperatorRequest, memory: Memory, problem: MemoryActionRefused, edit_form: EditForm | None = None
) -> HttpResponse:
    """The current proposal with the reason why the decision was not saved: 409 for a lost race, else 422."""
    status = 409 if isinstance(problem, Overtaken) else 422
    page = proposal_page(request, memory, problem=problem, edit=edit_form, status=status)
    # A reload requests the proposal, not the verb.
    return push_url(page, address_of(memory, request))


def query_of(request: OperatorRequest) -> str:
    return QueueFilter(request.GET or QueryDict(request.POST.get("query", "")), request.user).query_string()


def address_of(memory: Memory, request: OperatorRequest) -> str:
    return f"{reverse('reviews:review', args=[memory.pk])}?{query_of(request)}"
