"""Re-authentication before actions that cannot be undone, for `web.reauth`.

A form sent without a recent sign-in is checked; if it is valid, the page at the same address asks the question and has
the input. The answer is sent with the input, and the action is carried out with it, at once. The input stays in the
browser all the time; the server stores none of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, cast

from allauth.account.authentication import get_authentication_records
from allauth.account.forms import ReauthenticateForm
from allauth.core import ratelimit
from allauth.mfa.base.forms import ReauthenticateForm as CodeForm
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import ReauthenticateWebAuthnForm as PasskeyForm
from allauth.mfa.webauthn.views import ReauthenticateWebAuthnView
from django.contrib.auth.models import User
from django.forms import Form
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django_htmx.http import HttpResponseClientRedirect

from memadmin import audit
from memadmin.accounts import audit_events
from memadmin.accounts.reauth import is_confirmed_recently, note_confirmation
from memadmin.web.reauth import READING, Rehearse, asks_for_proof
from memadmin.web.requests import OperatorRequest


@asks_for_proof
def ask_unless_recent(
    request: HttpRequest, doing: str, is_file: bool, rehearse: Rehearse | None
) -> HttpResponseBase | None:
    """None with a recent sign-in or the right answer; else the view's response to an invalid form, or the question."""
    if is_confirmed_recently(request):
        return None
    question = ReauthQuestion(cast(OperatorRequest, request))
    if question.is_answered():
        return None
    return (rehearse and rehearse()) or ask(question, doing=doing, is_file=is_file)


def ask(question: ReauthQuestion, *, doing: str, is_file: bool = False) -> HttpResponse:
    request = question.request
    if not request.accepts("text/html"):
        return JsonResponse(
            {"error": "Confirm it's you first: this action needs a sign-in from the last 5 minutes."}, status=403
        )
    if request.method in READING:
        came_from = way_back(request, otherwise="")
        query = {"next": came_from, "for": "file"} if is_file and came_from else {"next": request.get_full_path()}
        address = f"{reverse('accounts:confirm')}?{urlencode(query)}"
        return HttpResponseClientRedirect(address) if request.htmx else redirect(address)
    context = {"doing": doing, "question": question, "kept": list(typed(request)), "way_back": way_back(request)}
    response = render(request, "accounts/confirm_form.html", context, status=422)
    add_never_cache_headers(response)
    if request.htmx:
        # A fragment sent the request; the question replaces the whole page, and the next request is sent without htmx.
        response["HX-Retarget"] = "body"
        response["HX-Reswap"] = "innerHTML show:window:top"
    return response


def way_back(request: OperatorRequest, *, otherwise: str = "/") -> str:
    """Address of the page with the form or link, if the browser sends it."""
    now_shown = request.htmx.current_url if request.htmx else request.headers.get("Referer")
    came_from = request.POST.get(f"{ReauthQuestion.PREFIX}-from") or now_shown or otherwise
    is_ours = url_has_allowed_host_and_scheme(came_from, allowed_hosts={request.get_host()})
    return came_from if is_ours else otherwise


def typed(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """The fields of the form without those of the question."""
    for name, values in request.POST.lists():
        if name != "csrfmiddlewaretoken" and not name.startswith(f"{ReauthQuestion.PREFIX}-"):
            for value in values:
                yield name, str(value)


class ReauthQuestion:
    """The question for re-authentication: methods of this user, and the answer if the request contains one."""

    PREFIX = "confirm"

    def __init__(self, request: OperatorRequest, ways: Collection[str] = ("password", "code", "credential")) -> None:
        self.request = request
        possible = forms_for(request.user, request.POST)
        self.forms = {field: form for field, form in possible if field in ways}

    def is_answered(self) -> bool:
        """Whether the answer is correct; then the session stores it. After many attempts it is refused unchecked."""
        field, form = next(((field, form) for field, form in self.forms.items() if form.is_bound), ("", None))
        if form is None:
            return False
        if not ratelimit.consume(self.request, action="reauthenticate", user=self.request.user):
            form.add_error(field, "Too many failed attempts. Try again in a minute.")
            return False
        if not form.is_valid():
            return False
        if field == "password":
            note_confirmation(self.request)
        else:
            form.save()  # type: ignore[attr-defined]  # both of these have it
        person = self.request.user
        with_what = get_authentication_records(self.request, person)[-1]["type"] if field != "password" else field
        audit.record_alone(audit_events.CONFIRMED, by=person, target=person, reason_code=with_what)
        return True

    @property
    def problems(self) -> list[str]:
        return [str(error) for form in self.forms.values() for errors in form.errors.values() for error in errors]

    @property
    def challenge(self) -> dict[str, Any]:
        """Challenge for a passkey, new each time and stored in the session. Empty without a passkey."""
        if "credential" not in self.forms:
            return {}
        # allauth's own view creates the challenge; here it is used on another page.
        page = ReauthenticateWebAuthnView()
        page.setup(self.request)
        options: dict[str, Any] = page.get_context_data()["js_data"]["request_options"]
        return options


def forms_for(person: User, sent: QueryDict) -> Iterator[tuple[str, Form]]:
    """Forms by their only field; the submitted one is bound."""
    kinds = set(Authenticator.objects.filter(user=person).values_list("type", flat=True))
    ways: list[tuple[str, type[Form], bool]] = [
        ("password", ReauthenticateForm, person.has_usable_password()),
        ("code", CodeForm, bool(kinds & {Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES})),
        ("credential", PasskeyForm, Authenticator.Type.WEBAUTHN in kinds),
    ]
    for field, form, is_possible in ways:
        if is_possible:
            is_sent = f"{ReauthQuestion.PREFIX}-{field}" in sent
            yield field, form(sent if is_sent else None, user=person, prefix=ReauthQuestion.PREFIX)  # type: ignore[call-arg]
