"""Pages of people: the list, a new account, one account with its actions, and the page of an invitation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import Group, User
from django.forms import BoundField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.timezone import now
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from memadmin import audit
from memadmin.accounts import access, audit_events, open_sessions, user_actions
from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.models import Invitation, RoleRequest
from memadmin.accounts.people import invitations, services
from memadmin.accounts.people.forms import (
    AccountReasonForm,
    NewPersonForm,
    PasswordForm,
    PeopleFilters,
    RolesForm,
    people_called,
    ways_in,
)
from memadmin.accounts.people.listing import DUTIES, role_table, rows_of
from memadmin.accounts.role_requests import services as role_requests
from memadmin.accounts.role_requests.services import ADMINISTER, AccountRight
from memadmin.accounts.roles import ROLES
from memadmin.audit.pages.person_reads import reads_of
from memadmin.counting import counted
from memadmin.home.saved_views import has_saved_views
from memadmin.web.help.rights import rights_of
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest

VIEW, ADD, LOG = "accounts.view_people", "auth.add_user", "audit.view_auditevent"

PEOPLE = ListPage("accounts/people/list.html", salt="people")
MOST_WAITING = 20
LONGEST_SEARCH = 150

REFUSALS = (services.PersonError, role_requests.RoleRequestRefused, user_actions.OwnSecondFactor)


@operator_page(VIEW, methods="GET, POST")
@has_saved_views("people:list", VIEW, lambda query, _: PeopleFilters(query))
def people(request: OperatorRequest) -> HttpResponse:
    """The accounts, by page; a search for a name comes by POST, because names must not be in addresses."""
    filters = PeopleFilters(request.GET)
    text = request.POST.get("q", "").strip()[:LONGEST_SEARCH]
    page = PEOPLE.page(request, filters.apply())
    waiting = RoleRequest.objects.awaiting_decision(now()).with_people()[:MOST_WAITING]
    context = {
        "filters": filters,
        "text": text,
        "rows": rows_of(list(people_called(text)) if text else page.rows),
        "waiting": list(waiting) if request.user.has_perm(ADMINISTER) else [],
        "role_names": list(ROLES),
        "role_table": role_table(),
    }
    return PEOPLE.render(request, context, page, status=400 if filters.problems else 200)


@operator_page(ADD, ADMINISTER, methods="GET, POST")
@recently_authenticated(doing="add an account")
def new(request: OperatorRequest) -> HttpResponse:
    """One form for an account, its roles and its invitation."""
    form = NewPersonForm(request.POST or None)
    if request.method != "POST":
        return new_page(request, form)
    if not form.is_valid():
        return new_page(request, form, status=422)
    values = form.cleaned_data
    try:
        person, change = services.add_person(
            **{name: values[name] for name in ("username", "name", "email", "roles")}, by=request.user, why=form.why
        )
    except REFUSALS as problem:
        form.add_error(None, str(problem))
        return new_page(request, form, status=403)
    tell_change(request, change)
    if values["way"] == "company":
        return redirect("people:person", person.pk)
    return invited(request, person, is_mailed=values["way"] == "mail", why=form.why)


def new_page(request: OperatorRequest, form: NewPersonForm, *, status: int = 200) -> HttpResponse:
    context = {"form": form, "role_options": role_options(form["roles"])}
    return render(request, "accounts/people/new.html", context, status=status)


def invited(request: OperatorRequest, person: User, *, is_mailed: bool, why: audit.Why) -> HttpResponse:
    """Mails a new link, or shows it, once: the page is not stored anywhere. Raises what `services.invite` raises."""
    token, taken = services.invite(person, by=request.user, is_mailed=is_mailed, why=why)
    if is_mailed:
        if invitations.mail_link(person, token):
            messages.success(request, "The link was mailed.")
        else:
            messages.error(request, "The mail server did not take the mail. Try again later, or show the link instead.")
        return redirect("people:person", person.pk)
    context = {
        "person": person,
        "link": (settings.CONSOLE_URL or f"{request.scheme}://{request.get_host()}") + invitations.path_of(token),
        "until": now() + invitations.LINK_LIFETIME,
        "taken": [str(right) for right in taken],
    }
    return render(request, "accounts/people/link.html", context)


def tell_change(request: HttpRequest, change: services.RoleChange) -> None:
    if change.given or change.taken:
        parts = [*(f"{name} given" for name in change.given), *(f"{name} taken away" for name in change.taken)]
        messages.success(request, f"In effect: {', '.join(parts)}.")
    if change.requested:
        messages.warning(
            request, f"Not in effect yet: {', '.join(change.requested)}. Another administrator has to confirm it."
        )


def tell_taken(request: HttpRequest, taken: list[AccountRight]) -> None:
    if taken:
        rights = ", ".join(map(str, taken))
        messages.warning(request, f"Not in effect until another administrator confirms it: {rights}.")


@dataclass(frozen=True, slots=True)
class RoleOption:
    """A role to tick, with its checkbox."""

    name: str
    duties: str
    checkbox: Any
    is_requested: bool


def role_options(field: BoundField, requested: Iterable[str] = ()) -> list[RoleOption]:
    requested = set(requested)
    return [
        RoleOption(
            name=(name := str(option.choice_label)),
            duties=DUTIES.get(name, ""),
            checkbox=option,
            is_requested=name in requested,
        )
        for option in field
    ]


@operator_page(VIEW)
def person(request: OperatorRequest, person_id: int) -> HttpResponse:
    return person_page(request, shown_person(person_id))


def shown_person(person_id: int) -> User:
    return access.found(User.objects.defer("password").filter(pk=person_id).first())


def person_page(
    request: OperatorRequest, shown: User, *, problem: str = "", status: int = 200, form: RolesForm | None = None
) -> HttpResponse:
    (row,) = rows_of([shown])
    factors = list(Authenticator.objects.filter(user=shown).order_by("created_at", "pk"))
    codes = next((factor for factor in factors if factor.type == Authenticator.Type.RECOVERY_CODES), None)
    waiting = list(RoleRequest.objects.awaiting_decision(now()).with_people().filter(person=shown))
    may_change = request.user.has_perm(ADMINISTER) and (request.user.is_superuser or not shown.is_superuser)
    form = form or RolesForm(initial={"roles": shown.groups.all()})
    unused = Invitation.objects.filter(person=shown, used_at__isnull=True)
    context = {
        "row": row,
        "shown": shown,
        "is_self": shown.pk == request.user.pk,
        "waiting": [
            (each, new_rights(each.role, row.roles), approvals.steps_for(each, request.user)) for each in waiting
        ],
        "open_sessions": open_sessions.open_to(shown),
        "this_session": open_sessions.key_of(request),
        "factors": [factor for factor in factors if factor is not codes],
        "codes_left": len(codes.wrap().get_unused_codes()) if codes else 0,
        "link": unused.order_by("-expires_at").first(),
        "reads": reads_of(shown, viewer=request.user) if request.user.has_perm(LOG) else None,
        "may_change": may_change,
        "may_decide": request.user.has_perm(ADMINISTER),
        "form": form,
        "role_options": role_options(form["roles"], requested=(each.right_label for each in waiting)),
        "problem": problem,
    }
    return render(request, "accounts/people/person.html", context, status=status)


def new_rights(role: Group | None, held: list[str]) -> list[str]:
    """Permissions that a role would add to those of a person, in words. One query."""
    if role is None:
        return []
    had = {permission for name in held for permission in ROLES.get(name, ())}
    added = [permission for permission in ROLES.get(role.name, ()) if permission not in had]
    return [right.label for right in rights_of(added)]


@operator_page(ADMINISTER, methods="POST")
@recently_authenticated(doing="change roles")
def roles(request: OperatorRequest, person_id: int) -> HttpResponse:
    shown = access.person_for(request.user, person_id)
    form = RolesForm(request.POST)
    if not form.is_valid():
        return person_page(request, shown, form=form, status=422)
    try:
        change = services.change_roles(shown, form.cleaned_data["roles"], by=request.user, why=form.why)
    except REFUSALS as problem:
        return person_page(request, shown, problem=str(problem), form=form, status=409)
    tell_change(request, change)
    # Who took the right to see accounts away from themselves has no such page any more.
    return redirect("people:person", person_id) if access.has_still(request.user, VIEW) else redirect("/")


@dataclass(frozen=True, slots=True)
class AccountStep:
    """An action on an account with a page that says what it does and asks for the reason."""

    title: str
    sentence: str
    button: str
    is_dangerous: bool = False


OFF_STEP = AccountStep(
    "Switch off",
    "The person is signed out everywhere at once and cannot sign in. Roles stay with the account, and its events in the"
    " audit log keep their name. Links for setting the password end.",
    "Switch account off",
    is_dangerous=True,
)
ON_STEP = AccountStep(
    "Switch on",
    "The person can sign in again. Roles that open content, decide or administer are requested again: another"
    " administrator confirms them.",
    "Switch account on",
)
FACTOR_STEP = AccountStep(
    "Reset second factors",
    "Verify who the person is by another channel first. All second factors and recovery codes are removed, the person"
    " is signed out everywhere and sets up a new one at the next sign-in. Roles that open content, decide or administer"
    " are requested again, because you could sign in to this account now.",
    "Reset second factors",
    is_dangerous=True,
)
LINK_STEP = AccountStep(
    "Link to set a password",
    "The person sets a new password with the link, once and within three days; earlier links end. If you choose to see"
    " the link, roles that open content, decide or administer are requested again, because you could sign in to this"
    " account then.",
    "Make link",
)


def step(
    request: OperatorRequest,
    person_id: int,
    shown_step: AccountStep,
    take: Callable[[User, AccountReasonForm], HttpResponse],
    *,
    ways: Iterable[tuple[str, str]] = (),
) -> HttpResponse:
    """The page of an action, or the action. `ways` are the ways to hand over a link."""
    shown = access.person_for(request.user, person_id)
    form = AccountReasonForm(request.POST if request.method == "POST" else None)
    problem, status = "", 200
    if request.method == "POST":
        if form.is_valid():
            try:
                return take(shown, form)
            except REFUSALS as refused:
                problem, status = str(refused), 409
        else:
            status = 422
    context = {"shown": shown, "step": shown_step, "form": form, "problem": problem, "ways": ways}
    return render(request, "accounts/people/step.html", context, status=status)


def back(request: HttpRequest, person_id: int, done: str, taken: list[AccountRight] | None = None) -> HttpResponse:
    messages.success(request, done)
    tell_taken(request, taken or [])
    return redirect("people:person", person_id)


@operator_page(ADMINISTER, methods="GET, POST")
@recently_authenticated(doing="switch an account off")
def switch_off(request: OperatorRequest, person_id: int) -> HttpResponse:
    def take(shown: User, form: AccountReasonForm) -> HttpResponse:
        services.switch_off(shown, by=request.user, why=form.why)
        return back(request, person_id, "The account is switched off.")

    return step(request, person_id, OFF_STEP, take)


@operator_page(ADMINISTER, methods="GET, POST")
@recently_authenticated(doing="switch an account on")
def switch_on(request: OperatorRequest, person_id: int) -> HttpResponse:
    def take(shown: User, form: AccountReasonForm) -> HttpResponse:
        taken = services.switch_on(shown, by=request.user, why=form.why)
        return back(request, person_id, "The account is switched on.", taken)

    return step(request, person_id, ON_STEP, take)


@operator_page(ADMINISTER, methods="GET, POST")
@recently_authenticated(doing="reset a second factor")
def reset_second_factor(request: OperatorRequest, person_id: int) -> HttpResponse:
    def take(shown: User, form: AccountReasonForm) -> HttpResponse:
        taken = services.reset_second_factor(shown, by=request.user, why=form.why)
        return back(request, person_id, "Second factors were reset, and the person was signed out everywhere.", taken)

    return step(request, person_id, FACTOR_STEP, take)


@operator_page(ADMINISTER, methods="GET, POST")
@recently_authenticated(doing="make a link to set a password")
def make_link(request: OperatorRequest, person_id: int) -> HttpResponse:
    def take(shown: User, form: AccountReasonForm) -> HttpResponse:
        return invited(request, shown, is_mailed=request.POST.get("way") == "mail", why=form.why)

    ways = [(way, words) for way, words in ways_in() if way != "company"]
    return step(request, person_id, LINK_STEP, take, ways=ways)


@operator_page(ADMINISTER, methods="POST")
def sign_out(request: OperatorRequest, person_id: int) -> HttpResponse:
    """Signs the person out everywhere; also the administrator, where it is their own account."""
    shown = access.person_for(request.user, person_id)
    count = user_actions.end_sessions(shown, UserSession.objects.filter(user=shown), by=request.user)
    if shown.pk == request.user.pk:
        return redirect("accounts:login")
    messages.success(request, f"Signed out of {counted(count, 'sessions')}.")
    return redirect("people:person", person_id)


@operator_page(ADMINISTER, methods="POST")
def end_session(request: OperatorRequest, person_id: int, browser_id: int) -> HttpResponse:
    shown = access.person_for(request.user, person_id)
    user_actions.end_sessions(shown, [access.own_session(shown, browser_id)], by=request.user)
    messages.success(request, "The session was ended.")
    return redirect("people:person", person_id)


@login_not_required
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """The page on which an invited person sets a password; signing in, with the second factor, comes after it."""
    try:
        invited_person = invitations.person_invited_by(token)
        form = PasswordForm(request.POST if request.method == "POST" else None, person=invited_person)
        if not form.is_valid():
            status = HTTPStatus.UNPROCESSABLE_ENTITY if form.is_bound else HTTPStatus.OK
            context = {"form": form, "person": invited_person}
            return render(request, "accounts/people/invitation.html", context, status=status)
        invitations.accept(token, form.cleaned_data["password"])
    except invitations.InvalidLink as invalid:
        if invalid.person:
            audit.record_alone(
                audit_events.INVITATION_REFUSED,
                target=invalid.person,
                outcome="denied",
                reason_code=invalid.reason_code,
            )
        return render(request, "accounts/people/invalid_link.html", status=HTTPStatus.GONE)
    return render(request, "accounts/people/password_set.html", {"login": reverse("accounts:login")})
