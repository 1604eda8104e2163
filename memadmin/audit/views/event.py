"""One event: all that is known of it, and the proof that it is in the log."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from memadmin.audit import access, checkpoints
from memadmin.audit.audited import EVENT_VIEWED
from memadmin.audit.details import details_of
from memadmin.audit.listing import listed
from memadmin.audit.models import AuditEvent
from memadmin.audit.naming import Names
from memadmin.audit.recording import before_showing
from memadmin.web.requests import OperatorRequest

SHOWN_RECORDS = 50
SHOWN_ROWS = 50


@require_safe
@never_cache
@permission_required("audit.view_auditevent", raise_exception=True)
def event(request: OperatorRequest, event_id: UUID) -> HttpResponse:
    """Everything of one event. Its details may tell of people, so opening it is an event, too."""
    shown = access.event_for(request.user, event_id)
    before, after = AuditEvent.objects.around(shown)
    before_showing(EVENT_VIEWED, by=request.user, target=shown, subject=shown.subject_ref)
    latest = checkpoints.latest()
    sealed_size = latest.size if latest else 0
    names = Names(request.user)
    names.want_any(shown.shown[:SHOWN_RECORDS])
    (row,) = listed([shown], names, sealed_size=sealed_size)
    parts = list(AuditEvent.objects.rows_of(shown)[: SHOWN_ROWS + 1])
    context = {
        "event": shown,
        "row": row,
        "also_shown": [(names.of_any(ref), ref) for ref in shown.shown[:SHOWN_RECORDS]],
        "not_listed": len(shown.shown[SHOWN_RECORDS:]),
        "details": details_of(shown, request.user),
        "parts": listed(parts[:SHOWN_ROWS], names, sealed_size=sealed_size),
        "has_more_parts": len(parts) > SHOWN_ROWS,
        "before": before,
        "after": after,
    }
    return render(request, "audit/event.html", context)
