"""The home page: what waits for the person, what changed since yesterday, charts, and the newest sessions."""

from __future__ import annotations

from django.db import OperationalError
from django.http import HttpResponse
from django.shortcuts import render

from memadmin.home.parts import home_page
from memadmin.web.errors import is_part_away
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from sessions_app.listing import ListedSession, with_previews
from sessions_app.models import SessionRecord
from sessions_app.views import read_audit

NEWEST_SESSIONS = 8


@operator_page()
def overview(request: OperatorRequest) -> HttpResponse:
    """Each part is for users who may open its page; users without any see what their role can do here."""
    home, sessions, is_away = home_page(request.user), list[ListedSession](), False
    if request.user.has_perm("sessions_app.read_content"):
        newest = SessionRecord.objects.on_record().newest_first()[:NEWEST_SESSIONS]
        try:
            sessions = with_previews(newest, reader=request.user)
        # The first page after signing in has parts that need no sessions.
        except OperationalError as problem:
            if not is_part_away(problem):
                raise
            is_away = True
    # Content, unlike the parts: nothing is shown without its event.
    read_audit.listed(sessions)
    context = {"home": home, "sessions": sessions, "is_away": is_away}
    return render(request, "sessions/overview.html", context)
