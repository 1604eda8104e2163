"""Re-authentication page before a page that requires it."""

from __future__ import annotations

from http import HTTPStatus

from allauth.account.adapter import get_adapter
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from memadmin.accounts.middleware import open_without_second_factor
from memadmin.accounts.reauth import has_second_factor
from memadmin.accounts.reauth_views import ReauthQuestion
from memadmin.web.requests import OperatorRequest


@open_without_second_factor
@require_http_methods(["GET", "POST"])
@never_cache
def confirm(request: OperatorRequest) -> HttpResponse:
    question = ReauthQuestion(request)
    target = request.POST.get("next") or request.GET.get("next") or "/"
    if not get_adapter().is_safe_url(target):
        target = "/"
    is_for_file = "file" in (request.POST.get("for"), request.GET.get("for"))
    if request.method == "POST" and question.is_answered():
        if is_for_file:
            messages.success(request, "Confirmed. You can download files for the next 5 minutes.")
        return redirect(target)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if request.method == "POST" else HTTPStatus.OK
    layout = "base.html" if has_second_factor(request) else "bare.html"
    kept = [("for", "file")] if is_for_file else []
    context = {"question": question, "next": target, "layout": layout, "kept": kept}
    return render(request, "accounts/confirm.html", context, status=status)
