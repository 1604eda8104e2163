"""Pages of the second factor: sign-in, set-up, removal. The protocols are django-allauth's."""

from __future__ import annotations

from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView, ViewRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView
from allauth.mfa.webauthn.views import AddWebAuthnView, LoginWebAuthnView
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.forms import Form
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from memadmin.accounts import access, user_actions
from memadmin.accounts.middleware import open_without_second_factor
from memadmin.accounts.reauth import has_second_factor
from memadmin.accounts.reauth_views import ReauthQuestion
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest


class CheckSecondFactor(AuthenticateView):  # type: ignore[misc]  # allauth has no types
    """Second step of a sign-in, after the password; the user is not signed in yet."""

    template_name = "accounts/sign_in_second_factor.html"

    def form_invalid(self, form: Form) -> HttpResponse:
        response: HttpResponse = super().form_invalid(form)
        response.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return response


class SignInWithPasskey(LoginWebAuthnView):  # type: ignore[misc]
    """GET returns the challenge for the passkey to a script; POST takes the response. No user name is needed."""

    def form_invalid(self, form: Form) -> HttpResponse:
        return render(self.request, "accounts/passkey_refused.html", status=HTTPStatus.UNPROCESSABLE_ENTITY)


@open_without_second_factor
@require_http_methods(["GET", "POST"])
@never_cache
def second_factor(request: OperatorRequest) -> HttpResponse:
    """Page for users signed in without a second factor: use an existing one, or set one up."""
    if may_go_on(request):
        return redirect("accounts:account")
    question = ReauthQuestion(request, ways=("code", "credential"))
    if not question.forms:
        return render(request, "accounts/second_factor_missing.html")
    if question.is_answered():
        return redirect("/")
    status = HTTPStatus.UNPROCESSABLE_ENTITY if request.method == "POST" else HTTPStatus.OK
    return render(request, "accounts/second_factor_unused.html", {"question": question}, status=status)


def set_up(view: Any) -> Any:
    """Class decorator of pages that add a factor."""
    decorators = [
        open_without_second_factor,
        never_cache,
        recently_authenticated(doing="set up a second factor", reading=True),
        # The factor and its event, together.
        transaction.atomic,
    ]
    return method_decorator(decorators, name="dispatch")(view)


class WithLayout:
    """Adds the full layout only for users who may open its links."""

    request: OperatorRequest

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        return context | {"layout": layout_for(self.request)}

    def form_invalid(self, form: Form) -> HttpResponse:
        response: HttpResponse = super().form_invalid(form)  # type: ignore[misc]
        response.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return response


def numbers_of(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def layout_for(request: OperatorRequest) -> str:
    return "base.html" if may_go_on(request) else "bare.html"


def may_go_on(request: OperatorRequest) -> bool:
    return has_second_factor(request) or not settings.SECOND_FACTOR_REQUIRED


@set_up
class SetUpApp(WithLayout, ActivateTOTPView):  # type: ignore[misc]
    template_name = "accounts/set_up_app.html"


@set_up
class AddPasskey(WithLayout, AddWebAuthnView):  # type: ignore[misc]
    template_name = "accounts/add_passkey.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        # A passkey belongs to a host name; browsers create none at an IP address.
        numbers = numbers_of(urlsplit(f"//{self.request.get_host()}").hostname or "")
        context = {"numbers": numbers, "is_this_machine": numbers and numbers.is_loopback}
        return super().get_context_data(**kwargs) | context


@method_decorator(
    [require_safe, never_cache, recently_authenticated(doing="see recovery codes", reading=True)], name="dispatch"
)
class RecoveryCodes(ViewRecoveryCodesView):  # type: ignore[misc]
    """Recovery codes, shown once after their creation; later only the number of unused ones."""

    template_name = "accounts/recovery_codes.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        unused = context["unused_codes"]
        return context | {"codes": unused if context["can_view_codes"] else [], "left": len(unused)}


@method_decorator([require_POST, recently_authenticated(doing="make new recovery codes")], name="dispatch")
class NewRecoveryCodes(GenerateRecoveryCodesView):  # type: ignore[misc]
    def form_invalid(self, form: Form) -> HttpResponse:
        """Users without a second factor get no codes."""
        raise Http404


@require_POST
@recently_authenticated(doing="remove a second factor")
def remove(request: OperatorRequest, factor_id: int) -> HttpResponse:
    factor = access.own_second_factor(request.user, factor_id)
    try:
        user_actions.remove_second_factor(factor, by=request.user)
    except user_actions.LastSecondFactor as problem:
        messages.error(request, str(problem))
    else:
        messages.success(request, "The second factor is removed.")
    return redirect("accounts:account")
