"""Signing in and out: django-allauth's flow under our pages."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.views import LoginView
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import NON_FIELD_ERRORS
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from memadmin import audit
from memadmin.accounts import audit_events
from memadmin.accounts.forms import SignInForm
from memadmin.accounts.middleware import ENDED, open_without_second_factor
from memadmin.accounts.oidc import PROVIDER_ID


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):  # type: ignore[misc]  # allauth has no types
    form_class = SignInForm
    template_name = "accounts/login.html"

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        # The session ended while a page was open, and a refresh of a fragment was redirected here: the fragment would
        # show a login form. Reloading the page leads here with the return address.
        if request.htmx and not request.htmx.boosted:  # type: ignore[attr-defined]
            return HttpResponseClientRefresh()
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        company = (
            {"url": company_url(self.get_next_url()), "name": settings.OIDC_NAME} if settings.OIDC_ISSUER else None
        )
        ended = self.request.session.pop(ENDED) if ENDED in self.request.session else ""
        return context | {"company": company, "ended": ended}

    def form_invalid(self, form: Form) -> HttpResponse:
        is_too_many = form.has_error(NON_FIELD_ERRORS, "too_many_login_attempts")
        status = HTTPStatus.TOO_MANY_REQUESTS if is_too_many else HTTPStatus.UNPROCESSABLE_ENTITY
        response: HttpResponse = self.render_to_response(self.get_context_data(form=form), status=status)
        return response


def company_url(target: str | None) -> str:
    address = reverse("openid_connect_login", kwargs={"provider_id": PROVIDER_ID})
    return f"{address}?{urlencode({'next': target})}" if target else address


@login_not_required
@open_without_second_factor
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends the session and clears the browser's cache.

    Cookies are not cleared: a browser would clear those of the whole company domain. The session cookie is invalid
    without its row.
    """
    person = request.user
    if person.is_authenticated:
        audit.record_alone(audit_events.SIGNED_OUT, by=person, target=person)
    get_adapter().logout(request)
    response = redirect("accounts:login")
    response["Clear-Site-Data"] = '"cache"'
    return response
