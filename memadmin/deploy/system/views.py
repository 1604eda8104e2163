"""The page System."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from memadmin.deploy.system import components, last_check
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

VIEW = "accounts.view_system"


@operator_page(VIEW)
def system(request: OperatorRequest) -> HttpResponse:
    """The parts as they are now, and the last findings of the checks, with their age."""
    return system_page(request)


def system_page(request: OperatorRequest) -> HttpResponse:
    result, is_running = last_check.last_result(), last_check.is_running()
    context = {
        "result": result,
        "is_running": is_running,
        "is_due": not is_running and (result is None or result.is_stale),
        # Called by the whole page, not by the findings that refresh themselves.
        "parts": components.parts,
        "jobs": components.known_jobs,
        "versions": components.known_versions,
    }
    return render_page_or_fragment(request, "system/system.html", context, fragment="findings")


@operator_page(VIEW, methods="POST")
def check(request: OperatorRequest) -> HttpResponse:
    """Runs the checks, which takes seconds: an open page asks for it in the background and stays usable."""
    has_run = last_check.run_checks()
    if request.htmx:
        return system_page(request)
    messages.success(request, "Checked." if has_run else "The checks are running already.")
    return redirect("system:system")
