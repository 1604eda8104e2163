"""Pages for the purpose of reading and for the reading limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django_htmx.http import HttpResponseClientRedirect

from memadmin.accounts.content_access.rules import PurposeMissing, ReadingStopped, state_purpose, stated_in
from memadmin.accounts.purposes import Purpose
from memadmin.accounts.reauth_views import typed
from memadmin.web.pages import operator_page
from memadmin.web.reauth import READING
from memadmin.web.requests import OperatorRequest
from memadmin.web.widgets import select

PREFIX = "purpose"


class PurposeForm(forms.Form):
    """Purpose for reading conversations."""

    code = forms.ChoiceField(
        label="Purpose",
        choices=[("", "Choose a purpose"), *Purpose.choices],
        widget=select(),
        error_messages={
            "required": "Choose a purpose. It is recorded with every read.",
            "invalid_choice": "This purpose does not exist. Choose one from the list.",
        },
    )
    ticket = forms.CharField(
        label="Ticket (optional)",
        max_length=200,
        required=False,
        widget=forms.TextInput({"class": "form-control", "autocomplete": "off"}),
    )


class ContentAccess:
    """Middleware: responds when a view may not show content, and stores the purpose from that response's form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: OperatorRequest, view: Callable[..., Any], args: Any, kwargs: Any) -> None:
        # Public views may need to read the body themselves.
        if request.method != "POST" or not getattr(view, "login_required", True) or not request.user.is_authenticated:
            return
        if f"{PREFIX}-again" in request.POST:
            form = PurposeForm(request.POST, prefix=PREFIX)
            if form.is_valid():
                state_purpose(request, **form.cleaned_data)

    def process_exception(self, request: OperatorRequest, problem: Exception) -> HttpResponse | None:
        if isinstance(problem, PurposeMissing):
            return ask(request)
        if isinstance(problem, ReadingStopped):
            return stop(request, problem)
        return None


def ask(request: OperatorRequest) -> HttpResponse:
    if not request.accepts("text/html"):
        return JsonResponse(
            {"error": "State a purpose first: open any session in the console and choose a purpose."}, status=403
        )
    if request.htmx and not request.htmx.boosted:
        return HttpResponseClientRedirect(address_for(request.htmx.current_url_abs_path or "/"))
    if request.method in READING:
        return redirect(address_for(request.get_full_path()))
    # The submitted values are kept in the page and sent again with the purpose.
    is_again = f"{PREFIX}-again" in request.POST
    form = PurposeForm(request.POST if is_again else None, prefix=PREFIX)
    kept = [(name, value) for name, value in typed(request) if not name.startswith(f"{PREFIX}-")]
    kept.append((f"{PREFIX}-again", "yes"))
    context = {"form": form, "kept": kept, "action": request.get_full_path(), "hours": hours()}
    response = render(request, "accounts/purpose.html", context, status=422)
    add_never_cache_headers(response)
    return response


def stop(request: OperatorRequest, problem: ReadingStopped) -> HttpResponse:
    response = render(request, "accounts/reading_stopped.html", {"problem": problem}, status=429)
    if problem.seconds:
        response["Retry-After"] = str(problem.seconds)
    add_never_cache_headers(response)
    return response


def hours() -> str:
    count = round(settings.PURPOSE_LIMIT.total_seconds() / 3600)
    return "an hour" if count == 1 else f"{count} hours"


def address_for(next_page: str) -> str:
    return f"{reverse('accounts:purpose')}?{urlencode({'next': next_page})}"


@operator_page(methods="GET, POST")
def purpose(request: OperatorRequest) -> HttpResponse:
    """Form for the purpose; redirects to the requested page."""
    sent = request.POST if request.method == "POST" else None
    wanted = (request.POST if sent is not None else request.GET).get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()})
    onward = wanted if is_ours else ""
    stated = stated_in(request)
    initial = {"code": stated.code, "ticket": stated.ticket} if stated else None
    form = PurposeForm(sent, prefix=PREFIX, initial=initial)
    if sent is not None and form.is_valid():
        state_purpose(request, **form.cleaned_data)
        return redirect(onward or "/")
    context = {
        "form": form,
        "kept": [("next", onward)] if onward else [],
        "action": reverse("accounts:purpose"),
        "stated": stated,
        "hours": hours(),
    }
    return render(request, "accounts/purpose.html", context, status=422 if sent is not None else 200)
