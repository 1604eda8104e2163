"""Pages of retention policies: the list, one policy with its versions, changes and the simulator."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.services import ApprovalError, NotAllowed
from memadmin.retention import audit_events
from memadmin.retention.models import LegalHold, PolicyVersion, RetentionPolicy
from memadmin.retention.policies import access, explaining, services, view_models
from memadmin.retention.policies.comparing import could_take_more, differences
from memadmin.retention.policies.forms import (
    NEW_POLICY,
    ExplainForm,
    PolicyApprovalForm,
    PolicyForm,
    ReasonForm,
    initial_of,
    is_marked,
    mark_of,
)
from memadmin.retention.policies.simulation import Simulation, simulate
from memadmin.retention.policies.wording import hours, unit_of
from memadmin.retention.sweep.view_models import newest_runs
from memadmin.web.addresses import uuid_in
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app.models import SessionRecord

VIEW, CHANGE, APPROVE = "retention.view_policy", services.CHANGE, services.APPROVE

SIMULATE, PROPOSE = "simulate", "propose"
"""Steps of the form of a change; without one it only shows the fields of another target."""


# --- the list ---------------------------------------------------------------------------------------------------------


@operator_page(VIEW)
def policy_list(request: OperatorRequest) -> HttpResponse:
    """Changes that need a decision, the newest runs and the policies; the session of the address is explained."""
    record_id = uuid_in(request.GET.get("session", ""))
    found = access.sessions_named(request.user, str(record_id)) if record_id else []
    form = ExplainForm(initial={"value": str(record_id)} if found else None)
    return list_page(request, form, found[:1])


def list_page(
    request: OperatorRequest, form: ExplainForm, found: list[SessionRecord], *, status: int = 200
) -> HttpResponse:
    in_force = list(PolicyVersion.objects.in_force())
    changes = list(PolicyVersion.objects.open().with_names().order_by("approval__asked_at", "pk"))
    current = {version.policy_id: version for version in in_force}
    context = {
        "changes": [view_models.PendingChange.of(change, current.get(change.policy_id)) for change in changes],
        "stages": view_models.ladder(in_force, changes),
        "is_default_only": len(in_force) == 1 and not changes,
        "hold_count": LegalHold.objects.in_force().count(),
        "others": view_models.out_of_force(in_force, changes),
        "newest": newest_runs(request.user),
        "form": form if request.user.has_perm(access.READ_SESSIONS) else None,
        "explanation": explanation_of(found[0]) if len(found) == 1 else None,
        "several": found if len(found) > 1 else (),
    }
    return render(request, "retention/policies.html", context, status=status)


def explanation_of(record: SessionRecord) -> dict[str, Any]:
    return {"record": record, "explained": explaining.explain_session(record), "may_view": True}


@operator_page(VIEW, access.READ_SESSIONS, methods="POST")
def explain_session(request: OperatorRequest) -> HttpResponse:
    """Leads to the explanation of the session, or to a choice. Sent by POST: a session id can contain a name."""
    form = ExplainForm(request.POST)
    found = access.sessions_named(request.user, form.cleaned_data["value"]) if form.is_valid() else []
    if len(found) == 1:
        return redirect(f"{reverse('policies:list')}?session={found[0].pk}#explain")
    if form.is_valid() and not found:
        form.add_error("value", "No session has this ticket or ID.")
    return list_page(request, form, found, status=200 if found else 422)


# --- a new version ----------------------------------------------------------------------------------------------------


@operator_page(CHANGE, methods="GET, POST")
def new_policy(request: OperatorRequest) -> HttpResponse:
    return form_page(request, None, None)


@operator_page(CHANGE, methods="GET, POST")
def change_policy(request: OperatorRequest, policy_id: UUID) -> HttpResponse:
    changed = access.policy_for(request.user, policy_id)
    return form_page(request, changed, services.current_version(changed))


def form_page(request: OperatorRequest, changed: RetentionPolicy | None, current: PolicyVersion | None) -> HttpResponse:
    """The form of a new version: first its fields, then the preview, then the proposal."""
    if request.method != "POST":
        # A policy that is not in force begins with what it said last.
        last = current or (changed.versions.order_by("-number").first() if changed else None)
        form = PolicyForm(policy=changed, initial=initial_of(last) if last else NEW_POLICY)
        return show_form(request, form, current)
    step = request.POST.get("step", "")
    if step not in (SIMULATE, PROPOSE):
        form = PolicyForm(policy=changed, initial=request.POST.dict())
        return show_form(request, form, current)
    form = PolicyForm(request.POST, policy=changed, needs_reason=step == PROPOSE)
    if not form.is_valid():
        return show_form(request, form, current, status=422)
    content = form.content
    if step == PROPOSE and is_marked(request.POST.get("previewed", ""), content, changed):
        return propose(request, form, current, content)
    if step == PROPOSE:
        form.notices.append("This differs from what was previewed, so nothing was saved. This is its preview.")
    return simulated(request, form, current, content)


def propose(
    request: OperatorRequest, form: PolicyForm, current: PolicyVersion | None, content: dict[str, Any]
) -> HttpResponse:
    reason = form.cleaned_data["reason"]
    try:
        if form.policy is None:
            version = services.propose_policy(form.cleaned_data["name"], content, reason=reason, by=request.user)
        else:
            version = services.propose_change(form.policy, content, reason=reason, by=request.user)
    except services.PolicyError as problem:
        return show_form(request, form, current, problem=str(problem), status=409)
    if version.awaits_approval:
        messages.success(request, "The change was proposed. Another person has to approve it.")
    else:
        messages.success(request, "The policy is in force: it only keeps data for longer.")
    return redirect(version.policy)


def simulated(
    request: OperatorRequest, form: PolicyForm, current: PolicyVersion | None, content: dict[str, Any]
) -> HttpResponse:
    policy = form.policy or RetentionPolicy(name=form.cleaned_data["name"])
    draft = PolicyVersion(policy=policy, number=0, **content)
    in_force = current.rule() if current else None
    simulation = previewed(request, draft)
    return show_form(
        request,
        form,
        current,
        simulation=simulation,
        mark=mark_of(content, form.policy),
        differences=differences(in_force, draft.rule()) if in_force else (),
        needs_approval=could_take_more(in_force, draft.rule()),
    )


def previewed(request: OperatorRequest, draft: PolicyVersion) -> Simulation:
    """The simulation of a draft, after its event was committed."""
    audit.before_showing(audit_events.RETENTION_PREVIEWED, by=request.user)
    return simulate(draft, services.rules_in_force())


def grace_words() -> str:
    """The grace period: "24 hours"."""
    return hours(services.grace())


def show_form(
    request: OperatorRequest, form: PolicyForm, current: PolicyVersion | None, *, status: int = 200, **context: Any
) -> HttpResponse:
    shown = {
        "form": form,
        "policy": form.policy,
        "current": current,
        "grace": grace_words(),
        **context,
    }
    return render_page_or_fragment(request, "retention/policy_form.html", shown, fragment="fields", status=status)


@operator_page(CHANGE, methods="GET, POST")
def end_policy(request: OperatorRequest, policy_id: UUID) -> HttpResponse:
    """The end of a policy: what others would take then, and the proposal with a reason."""
    ending = access.policy_for(request.user, policy_id)
    current = services.current_version(ending)
    if current is None or ending.is_default:
        problem = services.DefaultStays() if ending.is_default else services.ChangeAlreadyDecided()
        return policy_page(request, ending, problem=str(problem), status=409)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            services.end_policy(ending, reason=form.cleaned_data["reason"], by=request.user)
        except services.PolicyError as problem:
            return policy_page(request, ending, problem=str(problem), status=409)
        messages.success(request, "The end of the policy was proposed. Another person has to approve it.")
        return redirect(ending)
    content = {name: getattr(current, name) for name in PolicyVersion.CONTENT}
    draft = PolicyVersion(policy=ending, number=0, **content | {"is_end": True})
    context = {
        "policy": ending,
        "form": form,
        "simulation": previewed(request, draft),
        "grace": grace_words(),
    }
    return render(request, "retention/end.html", context, status=422 if form.errors else 200)


# --- one policy -------------------------------------------------------------------------------------------------------


@operator_page(VIEW)
def policy(request: OperatorRequest, policy_id: UUID) -> HttpResponse:
    return policy_page(request, access.policy_for(request.user, policy_id))


def policy_page(
    request: OperatorRequest, shown: RetentionPolicy, *, problem: str = "", status: int = 200, **context: Any
) -> HttpResponse:
    versions = list(shown.versions.with_names())
    current = services.current_version(shown)
    change = next((version for version in versions if version.is_open), None)
    user = request.user
    page: dict[str, Any] = {
        "policy": shown,
        "current": current,
        "facts": view_models.facts(current.rule()) if current else (),
        "lines": view_models.history(versions, current),
        "problem": problem,
        "may_change": user.has_perm(CHANGE),
    }
    if change:
        steps = approvals.steps_for(change, user)
        may_cancel = change.is_in_grace and user.has_perm(CHANGE)
        page |= {
            "change": change,
            "differences": differences(current.rule() if current else None, None if change.is_end else change.rule()),
            "stored": view_models.stored_preview(change),
            "unit": unit_of(change),
            "steps": steps,
            "needs_typing": steps.decide and services.needs_typing(change),
            "approval_form": PolicyApprovalForm(),
            "stop": "Cancel change"
            if may_cancel
            else "Withdraw"
            if steps.withdraw
            else "Reject"
            if steps.reject
            else "",
            "stop_form": ReasonForm(),
            "grace": grace_words(),
        }
    return render(request, "retention/policy.html", page | context, status=status)


@operator_page(VIEW, methods="POST")
def preview_change(request: OperatorRequest, policy_id: UUID, version_number: int) -> HttpResponse:
    """The policy with what its open change would take now."""
    version = access.version_for(request.user, policy_id, version_number)
    if not version.is_open:
        return policy_page(request, version.policy, problem=str(services.ChangeAlreadyDecided()), status=409)
    return policy_page(request, version.policy, simulation=previewed(request, version))


@operator_page(APPROVE, methods="POST")
@recently_authenticated(doing="approve a change of a retention policy")
def approve_change(request: OperatorRequest, policy_id: UUID, version_number: int) -> HttpResponse:
    version = access.version_for(request.user, policy_id, version_number)
    form = PolicyApprovalForm(request.POST)
    values = form.cleaned_data if form.is_valid() else {"shown": request.POST.get("shown", "")}
    try:
        services.approve_change(version, by=request.user, **values)
    except services.NotConfirmed as missing:
        form.add_error("confirmation", str(missing))
        return policy_page(request, version.policy, status=422, approval_form=form)
    except ApprovalError as problem:
        return refused_page(request, version, problem)
    messages.success(request, "The change was approved. It can be cancelled until it takes effect.")
    return redirect(version.policy)


@operator_page(VIEW, methods="POST")
def stop_change(request: OperatorRequest, policy_id: UUID, version_number: int) -> HttpResponse:
    """Withdraws, rejects or cancels a change, with a reason."""
    version = access.version_for(request.user, policy_id, version_number)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return policy_page(request, version.policy, status=422, stop_form=form)
    try:
        services.stop_change(version, reason=form.cleaned_data["reason"], by=request.user)
    except (ApprovalError, services.ChangeAlreadyDecided) as problem:
        return refused_page(request, version, problem)
    messages.success(request, "The change was stopped. The policy stays as it is.")
    return redirect(version.policy)


def refused_page(request: OperatorRequest, version: PolicyVersion, problem: Exception) -> HttpResponse:
    """The policy as it is now, and why nothing was saved."""
    status = 403 if isinstance(problem, NotAllowed) else 409
    return policy_page(request, version.policy, problem=str(problem), status=status)
