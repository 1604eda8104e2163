"""Django admin of accounts and roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

# Imported first, so that the models are registered before they are unregistered.
import allauth.account.admin
import allauth.mfa.admin
import allauth.socialaccount.admin
import allauth.usersessions.admin  # noqa: F401
from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import FilteredSelectMultiple
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator

from memadmin import audit
from memadmin.accounts import access, user_actions
from memadmin.accounts.people import services as people
from memadmin.accounts.raw_edits import ReasonedEdits, operator, why_of
from memadmin.accounts.role_requests import services as role_requests
from memadmin.accounts.role_requests.services import AccountRight, is_guarded
from memadmin.audit.audit_events import RAW_EDIT_MADE
from memadmin.web.reauth import recently_authenticated

# Secrets of second factors, sign-in sessions and links to company accounts must not be edited raw.
for model in apps.get_models():
    if model.__module__.startswith("allauth.") and admin.site.is_registered(model):
        admin.site.unregister(model)

admin.site.unregister([User, Group])

confirmed = method_decorator(recently_authenticated(doing="change users and roles"))


class RoleListFilter(admin.RelatedFieldListFilter):
    """Django's filter by groups, under our name for them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "role"


@admin.register(User)
class OperatorAdmin(ReasonedEdits, UserAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Administrators create accounts and assign roles.

    Only superusers may assign single permissions, such as `raw_edit`, and change superusers: else anyone who may change
    accounts could grant themselves all rights. Rights that open content, decide or administer become requests, which
    another administrator confirms; taking rights away needs no second person.
    """

    # No bulk deletion: each deleted user is confirmed separately.
    actions = None
    list_display = ("username", "first_name", "last_name", "is_active", "last_login")
    list_filter = (("groups", RoleListFilter), "is_active", "is_superuser")
    # Without is_staff, which is not used here (see admin_site.py).
    fieldsets = (
        (None, {"fields": ["username", "password", "is_active"]}),
        ("Person", {"fields": ["first_name", "last_name", "email"]}),
        ("Rights", {"fields": ["groups", "user_permissions", "is_superuser"]}),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    )

    change_form_template = "admin/person.html"
    change_user_password_template = "admin/person_password.html"

    @confirmed
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return leaving_an_administrator(request, super().changeform_view, *args, **kwargs)

    @confirmed
    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return leaving_an_administrator(request, super().delete_view, *args, **kwargs)

    @confirmed
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Django's view saves through its form, so the reason is checked before and recorded around it."""
        person = self.get_object(request, unquote(id))
        if request.method != "POST" or not self.has_change_permission(request, person):
            return super().user_change_password(request, id, form_url)
        why = why_of(request)
        try:
            with transaction.atomic():
                taken = role_requests.request_again(person, by=operator(request), why=why) if person else []
                with audit.recording(RAW_EDIT_MADE, by=operator(request)) as event:
                    response = super().user_change_password(request, id, form_url)
                    event.is_void = response.status_code != HTTPStatus.FOUND
                    event.target, event.counters = person, {"rows": 1}
                    event.reason_code, event.details = why.code, why.details
                if event.is_void:
                    transaction.set_rollback(True)
        except role_requests.RoleRequestRefused as problem:
            messages.error(request, str(problem))
            return redirect("admin:auth_user_change", id)
        if event.is_void:
            response.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        else:
            tell_rights_taken(request, taken)
        return response

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Saves the account without the rights that need a second person; `save_related` requests them."""
        wanted, held = rights_in(form.cleaned_data), list[AccountRight]()
        if change:
            people.lock_administrators()
            stored = User.objects.select_for_update().get(pk=obj.pk)
            form.was_administrator = people.administrators().filter(pk=stored.pk).exists()
            held = role_requests.rights_of(stored)
            if obj.is_active and (not stored.is_active or is_taken_over(stored, obj, by=operator(request))):
                # All rights that it has, also those that this form does not show: activating it gives them.
                is_shown = "user_permissions" in form.cleaned_data
                wanted, held = [*wanted, *(right for right in held if right.permission and not is_shown)], []
        form.rights_to_request = [right for right in wanted if right not in held and right.is_guarded]
        for right in form.rights_to_request:
            if right.role:
                form.cleaned_data["groups"] = form.cleaned_data["groups"].exclude(pk=right.role.pk)
            elif right.permission is None:
                obj.is_superuser = False
            elif "user_permissions" in form.cleaned_data:
                others = form.cleaned_data["user_permissions"].exclude(pk=right.permission.pk)
                form.cleaned_data["user_permissions"] = others
            else:
                obj.user_permissions.remove(right.permission)
        super().save_model(request, obj, form, change)
        if not change or is_taken_over(stored, obj, by=operator(request)):
            role_requests.note_access(obj, by=operator(request))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if change and form.was_administrator:
            people.require_an_administrator()
        for right in form.rights_to_request:
            try:
                role_requests.request_role(form.instance, right, by=operator(request), why=why_of(request))
            except role_requests.RoleRequestRefused as problem:
                messages.warning(request, str(problem))
            else:
                messages.warning(
                    request, f"Not in effect yet: {right}. Another administrator has to confirm it under Role requests."
                )

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        people.lock_administrators()
        was_administrator = people.administrators().filter(pk=obj.pk).exists()
        super().delete_model(request, obj)
        if was_administrator:
            people.require_an_administrator()

    def get_urls(self) -> list[URLPattern]:
        reset = self.admin_site.admin_view(self.reset_second_factor)
        return [
            path("<int:person_id>/second-factor/reset/", reset, name="auth_user_reset_second_factor"),
            *super().get_urls(),
        ]

    @method_decorator(recently_authenticated(doing="reset a second factor"))
    def reset_second_factor(self, request: HttpRequest, person_id: int) -> HttpResponse:
        by = operator(request)
        if not self.has_change_permission(request):
            raise PermissionDenied
        person = access.person_for(by, person_id)
        if request.method != "POST":
            context = {**self.admin_site.each_context(request), "title": "Reset second factor", "person": person}
            return render(request, "admin/reset_second_factor.html", context)
        try:
            taken = people.reset_second_factor(person, by=by, why=why_of(request))
        except (user_actions.OwnSecondFactor, role_requests.RoleRequestRefused) as problem:
            messages.error(request, str(problem))
        else:
            tell_rights_taken(request, taken)
            messages.success(
                request,
                "Second factors reset. The person was signed out everywhere and must set up a new second factor"
                " at the next sign-in.",
            )
        return redirect("admin:auth_user_change", person_id)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        in_our_words = {
            "labels": {"groups": "Roles"},
            "widgets": {"groups": FilteredSelectMultiple("roles", is_stacked=False)},
            "help_texts": {
                "groups": "The account has the permissions of all its roles.",
                "is_active": "An account that is not active cannot sign in. Take this instead of deleting accounts.",
            },
        }
        return super().get_form(request, obj, change=change, **in_our_words, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        always = ["last_login", "date_joined"]
        return always if request.user.is_superuser else [*always, "user_permissions", "is_superuser"]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        if obj and obj.is_superuser and not request.user.is_superuser:
            return False
        return super().has_change_permission(request, obj)


def leaving_an_administrator(
    request: HttpRequest, view: Callable[..., HttpResponse], *args: Any, **kwargs: Any
) -> HttpResponse:
    """The answer of a view of Django admin, or its page again with the reason where nobody could administer accounts.

    The view has rolled its change back then.
    """
    try:
        return view(request, *args, **kwargs)
    except people.LastAdministrator as problem:
        messages.error(request, str(problem))
        return redirect(request.path)


def rights_in(cleaned: Mapping[str, Any]) -> list[AccountRight]:
    """Rights that a form gives; a form without a field gives none of its kind. The roles are locked."""
    roles = Group.objects.filter(pk__in=cleaned.get("groups", ())).select_for_update(no_key=True)
    permissions = Permission.objects.filter(pk__in=cleaned.get("user_permissions", ())).select_related("content_type")
    superuser = [AccountRight()] if cleaned.get("is_superuser") else []
    return [
        *(AccountRight(role=role) for role in roles),
        *(AccountRight(permission=each) for each in permissions),
        *superuser,
    ]


def is_taken_over(stored: User, changed: User, *, by: User) -> bool:
    """True if another person changes the address with which the company's provider finds the account."""
    return by.pk != stored.pk and changed.email.casefold() != stored.email.casefold()


def tell_rights_taken(request: HttpRequest, taken: list[AccountRight]) -> None:
    if taken:
        rights = ", ".join(map(str, taken))
        messages.warning(
            request,
            f"Taken away until another administrator confirms them under Role requests: {rights}. You could sign in to"
            " this account now.",
        )


@admin.register(Group)
class RoleAdmin(ReasonedEdits, GroupAdmin):
    """Roles. Their permissions are defined in roles.py; superusers may change them.

    A role with members gets no permission that needs a second person: each member would get it at once.
    """

    actions = None

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)

        class RoleForm(form):  # type: ignore[misc, valid-type]  # built by Django at runtime
            def clean_permissions(self) -> Any:
                wanted = self.cleaned_data["permissions"].select_related("content_type")
                if not self.instance.pk:
                    return wanted
                role = Group.objects.select_for_update(no_key=True).get(pk=self.instance.pk)
                added = wanted.exclude(pk__in=role.permissions.values("pk"))
                if role.user_set.exists() and is_guarded(added):
                    raise ValidationError(
                        "This role has members, who would get these permissions without a second person. Add a new"
                        " role with them, and give it to each person."
                    )
                return wanted

        return RoleForm

    changeform_view = confirmed(GroupAdmin.changeform_view)
    delete_view = confirmed(GroupAdmin.delete_view)
