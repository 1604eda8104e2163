"""Overview, the first page after signing in: waiting decisions, and the states of stores as last checked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.timezone import now

from memadmin.accounts.audit_events import ROLE_GRANTED
from memadmin.accounts.grants import services as grants
from memadmin.accounts.models import ContentGrant, RoleRequest
from memadmin.accounts.role_requests import services as role_requests
from memadmin.audit.models import AuditEvent
from memadmin.audit.transparency import checkpoints
from memadmin.audit.transparency.status import latest_verdict
from memadmin.counting import count_up_to
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from sessions_app.extensions import beside_overview, on_overview
from sessions_app.listing import ListedSession, with_previews
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.views import read_audit
from sessions_app.views.stores import CheckedStore, states_of_stores

NEWEST_SESSIONS = 8

STORES_SHOWN = 8
"""Number of stores beside them, those with problems first."""
ROLES_ARE_NEWS = timedelta(days=7)


@operator_page()
def overview(request: OperatorRequest) -> HttpResponse:
    """Each part is for users who may open its page; users without any see what their role can do here."""
    context: dict[str, Any] = {
        "tiles": on_overview.answers(request.user),
        "panels": beside_overview.answers(request.user),
    }
    sessions, stores = list[ListedSession](), list[SessionStore]()
    if request.user.has_perm("sessions_app.view_sessionstore"):
        stores = list(SessionStore.objects.worst_first()[:STORES_SHOWN])
        context |= {"checked_stores": [CheckedStore(each) for each in stores], "states": states_of_stores()}
    if request.user.has_perm("sessions_app.read_content"):
        on_record = SessionRecord.objects.on_record()
        sessions = with_previews(on_record.newest_first()[:NEWEST_SESSIONS], reader=request.user, stores=stores)
        context |= {
            "without_subject": count_up_to(on_record.without_subject()),
            "with_findings": count_up_to(on_record.with_findings()),
            "sessions": sessions,
        }
    if request.user.has_perm("audit.view_auditevent"):
        context |= {"checkpoint": checkpoints.latest(), "verdict": latest_verdict()}
    if request.user.has_perm(grants.DECIDE):
        every = ContentGrant.objects.exclude(requested_by=request.user)
        context["grants_to_decide"] = count_up_to(every.awaiting_decision(now()))
        context["grants_to_review"] = count_up_to(every.awaiting_review(now()))
        granted = AuditEvent.objects.filter(type=ROLE_GRANTED.name, at__gt=now() - ROLES_ARE_NEWS)
        context["roles_granted"] = count_up_to(granted)
    if request.user.has_perm(role_requests.ADMINISTER):
        context["roles_to_confirm"] = count_up_to(RoleRequest.objects.awaiting_decision(now()))
    read_audit.listed(sessions)
    return render(request, "sessions/overview.html", context)
