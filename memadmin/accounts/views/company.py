"""Redirects to the company's sign-in and back."""

from __future__ import annotations

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.providers.openid_connect import views as openid_connect
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from requests import RequestException

from memadmin.accounts.oidc import refuse


@login_not_required
@require_safe
@never_cache
def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Begins the company sign-in. A link instead of a form, because the policy forbids forms to other hosts.

    It must be followed from one of our pages or typed, so that other sites cannot start a sign-in.
    """
    if not settings.OIDC_ISSUER:
        raise Http404
    if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
        return redirect("accounts:login")
    # Drops other parameters of django-allauth, such as connecting two accounts.
    request.GET = QueryDict(urlencode({"next": request.GET.get("next", "")}))
    try:
        response: HttpResponse = openid_connect.login(request, provider_id)
    # The provider's configuration is unavailable or incomplete.
    except (RequestException, KeyError, ValueError):
        return refused(request)
    return response


@login_not_required
@require_safe
@never_cache
def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    if not settings.OIDC_ISSUER:
        raise Http404
    try:
        response: HttpResponse = openid_connect.callback(request, provider_id)
    except (RequestException, KeyError, ValueError):
        return refused(request)
    return response


def refused(request: HttpRequest) -> HttpResponse:
    try:
        refuse(request, "provider")
    except ImmediateHttpResponse as answer:
        response: HttpResponse = answer.response
        return response
