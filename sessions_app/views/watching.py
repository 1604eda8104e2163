"""Actions on watched paths: check now, and stop watching."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize

from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.services import path_watch
from sessions_app.stores.base import StoreUnavailable


@operator_page("sessions_app.add_sessionstore", methods="POST")
@recently_authenticated(doing="check for new stores")
def check(request: OperatorRequest) -> HttpResponse:
    """Connects new places of every watched path, and reports how many."""
    try:
        looks = [path_watch.check_now(watched, by=request.user) for watched in path_watch.watched_paths()]
    except StoreUnavailable as away:
        messages.error(request, str(away))
    else:
        new = sum(len(each.connected) for each in looks)
        messages.success(request, f"Checked for new files: {new:,} new store{pluralize(new)}.")
    return redirect("sessions:stores")


@operator_page("sessions_app.change_sessionstore", methods="POST")
@recently_authenticated(doing="stop watching a path")
def remove(request: OperatorRequest, watched_id: int) -> HttpResponse:
    watched = access.watched_path_for(request.user, watched_id)
    path_watch.stop_watching(watched, by=request.user)
    messages.success(request, f"“{watched.name}” is no longer watched. Its stores are kept.")
    return redirect("sessions:stores")
