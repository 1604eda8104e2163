"""Pages of a user's own account: ways to sign in, and active sign-ins."""

from __future__ import annotations

from http import HTTPStatus

from allauth.account.views import PasswordChangeView
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.db import transaction
from django.forms import Form
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from memadmin.accounts import access, open_sessions, user_actions
from memadmin.web import zones
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest


@operator_page()
def account(request: OperatorRequest) -> HttpResponse:
    factors = list(Authenticator.objects.filter(user=request.user).order_by("created_at", "pk"))
    codes = next((factor for factor in factors if factor.type == Authenticator.Type.RECOVERY_CODES), None)
    context = {
        "factors": [factor for factor in factors if factor is not codes],
        "codes_left": len(codes.wrap().get_unused_codes()) if codes else 0,
        "has_app": any(factor.type == Authenticator.Type.TOTP for factor in factors),
        "open_sessions": open_sessions.open_to(request.user),
        "times_in_utc": zones.chose_utc(request),
        "browser_zone": zones.browser_zone(request),
        "this_session": open_sessions.key_of(request),
    }
    return render(request, "accounts/account.html", context)


@operator_page(methods="POST")
def choose_times(request: OperatorRequest) -> HttpResponse:
    """Keeps the choice of UTC in a cookie of this browser, or forgets it."""
    response = redirect("accounts:account")
    if request.POST.get("times") == zones.UTC_CHOSEN:
        response.set_cookie(
            zones.CHOICE, zones.UTC_CHOSEN, zones.CHOICE_KEPT, secure=request.is_secure(), httponly=True, samesite="Lax"
        )
    else:
        response.delete_cookie(zones.CHOICE, samesite="Lax")
    return response


@operator_page(methods="POST")
def end_session(request: OperatorRequest, session_id: int) -> HttpResponse:
    user_actions.end_sessions(request.user, [access.own_session(request.user, session_id)], by=request.user)
    messages.success(request, "The sign-in was ended.")
    return redirect("accounts:account")


@operator_page(methods="POST")
def end_other_sessions(request: OperatorRequest) -> HttpResponse:
    others = UserSession.objects.filter(user=request.user).exclude(session_key=open_sessions.key_of(request))
    user_actions.end_sessions(request.user, others, by=request.user)
    messages.success(request, "You are signed out everywhere else.")
    return redirect("accounts:account")


@method_decorator([never_cache, transaction.atomic], name="dispatch")
class ChangePassword(PasswordChangeView):  # type: ignore[misc]  # allauth has no types
    """Changes the password after asking for the current one, and signs the user out everywhere else."""

    template_name = "accounts/password.html"

    def dispatch(self, request: OperatorRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if not request.user.has_usable_password():
            raise Http404
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response

    def form_valid(self, form: Form) -> HttpResponse:
        response: HttpResponse = super().form_valid(form)
        messages.success(self.request, "Password changed. You are signed out everywhere else.")
        return response

    def form_invalid(self, form: Form) -> HttpResponse:
        response: HttpResponse = super().form_invalid(form)
        response.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return response
