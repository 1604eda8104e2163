"""Views of approval rules, checks of their samples, and review health."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.models import ApprovalRule, Memory
from memories_app.pages import access, read_audit
from memories_app.review import rules
from memories_app.review.digest import setup_for, want_digest
from memories_app.review.forms import RuleForm
from memories_app.review.health import LOOKED_BACK, paces
from memories_app.review.proposal_expiry import WARNED_BEFORE, count_lapsed
from memories_app.review.queue import QueueFilter, for_rows, next_to_decide, queue_status, rows_of
from memories_app.review.views.queue import REVIEW
from memories_app.services.refusals import MemoryActionRefused

VIEW = "memories_app.view_approvalrule"
ADD, CHANGE = "memories_app.add_approvalrule", "memories_app.change_approvalrule"

MOST_RULES = 50
MOST_SAMPLES = 20


@operator_page(VIEW)
def rule_list(request: OperatorRequest) -> HttpResponse:
    """Rules with their results for the last month, and samples that wait for a check."""
    samples = list(rules.samples_to_see().select_related("rule")[:MOST_SAMPLES])
    memories = {
        memory.pk: memory
        for memory in for_rows(Memory.objects.all()).filter(pk__in=[sample.memory_id for sample in samples])
    }
    listed = [memories[sample.memory_id] for sample in samples]
    read_audit.listed(listed)
    context = {
        "rules": [(rule, rules.hindsight(rule)) for rule in ApprovalRule.objects.all()[:MOST_RULES]],
        "samples": list(zip(samples, rows_of(listed, request.user), strict=True)),
    }
    return render(request, "memories/rules.html", context)


@operator_page(ADD, methods="GET, POST")
def new_rule(request: OperatorRequest) -> HttpResponse:
    return edit(request, ApprovalRule())


@operator_page(CHANGE, methods="GET, POST")
def rule(request: OperatorRequest, rule_id: UUID) -> HttpResponse:
    return edit(request, access.rule_for(request.user, rule_id))


def edit(request: OperatorRequest, changed: ApprovalRule) -> HttpResponse:
    """The form of a rule. "try" shows past decisions that it would have made, and saves nothing."""
    is_new = changed._state.adding
    form = RuleForm(request.POST if request.method == "POST" else None, instance=changed)
    status, hindsight = 200, None
    if request.method != "POST":
        hindsight = None if is_new else rules.hindsight(changed)
    elif not form.is_valid():
        status = 422
    elif "try" in request.POST:
        hindsight = rules.hindsight(form.instance)
    else:
        rules.save_rule(form.instance, by=request.user, values=form.cleaned_data)
        messages.success(
            request,
            "The rule is saved."
            if form.instance.is_active
            else "The rule is saved, but not active: it approves nothing until you activate it.",
        )
        return redirect("reviews:rules")
    context = {"form": form, "is_new": is_new, "hindsight": hindsight, "rule": changed}
    return render(request, "memories/rule.html", context, status=status)


@operator_page(REVIEW, methods="POST")
def judge(request: OperatorRequest, review_id: UUID) -> HttpResponse:
    """Confirms an approval by a rule, or returns it to the queue; in the queue of samples the next one follows."""
    sample = access.sample_for(request.user, review_id)
    agreed = request.POST.get("agreed") == "yes"
    try:
        rules.judge_sample(sample, by=request.user, agreed=agreed)
    except MemoryActionRefused as problem:
        messages.error(request, str(problem))
    else:
        messages.success(
            request,
            "Agreement with the sample saved." if agreed else "Returned to the queue; agents no longer recall it.",
        )
    filters = QueueFilter(request.GET, request.user)
    if filters.active.get("show") != "sampled":
        return redirect("reviews:rules")
    following = next_to_decide(filters, after=sample.memory, user=request.user)
    where = reverse("reviews:review", args=[following.pk]) if following else reverse("reviews:list")
    return redirect(f"{where}?{filters.query_string()}")


@operator_page(REVIEW)
def health(request: OperatorRequest) -> HttpResponse:
    """The page of review health."""
    context = {
        "queue_status": queue_status(),
        "paces": paces(),
        "samples_waiting": rules.samples_to_see()[:1000].count(),
        "lapsed": count_lapsed(within=LOOKED_BACK),
        "lifetime": settings.PROPOSAL_LIFETIME,
        "warned_before": WARNED_BEFORE,
        "digest": setup_for(request.user),
    }
    return render(request, "memories/health.html", context)


@operator_page(REVIEW, methods="POST")
def digest(request: OperatorRequest) -> HttpResponse:
    """Subscribes to the daily mail, or unsubscribes."""
    wanted = request.POST.get("wanted") == "yes"
    want_digest(request.user, wanted=wanted)
    messages.success(
        request, "You are subscribed to the daily mail." if wanted else "You are unsubscribed from the daily mail."
    )
    return redirect("reviews:health")
