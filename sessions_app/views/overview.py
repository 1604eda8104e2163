"""The home page: what waits for the person, what changed since yesterday, charts, and the newest sessions."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from memadmin.home.parts import home_page
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from sessions_app.listing import ListedSession, with_previews
from sessions_app.models import SessionRecord
from sessions_app.views import read_audit

NEWEST_SESSIONS = 8


@operator_page()
def overview(request: OperatorRequest) -> HttpResponse:
    """Each part is for users who may open its page; users without any see what their role can do here."""
    home, sessions = home_page(request.user), list[ListedSession]()
    if request.user.has_perm("sessions_app.read_content"):
        newest = SessionRecord.objects.on_record().newest_first()[:NEWEST_SESSIONS]
        sessions = with_previews(newest, reader=request.user)
    # Content, unlike the parts: nothing is shown without its event.
    read_audit.listed(sessions)
    return render(request, "sessions/overview.html", {"home": home, "sessions": sessions})
