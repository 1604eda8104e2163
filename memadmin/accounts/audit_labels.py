"""Labels of accounts and roles in the audit log; its readers see the names of actors anyway."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from django.contrib.auth.models import Group, User
from django.urls import reverse

from memadmin.accounts.models import RoleRequest
from memadmin.audit.log import ids as ids
from memadmin.audit.log.label_registry import Name, by_ref, finds, names


@names("auth.user")
def user_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    may_open = viewer.has_perm("accounts.view_people")
    return {
        ref: Name(f"account {user.get_username()}", reverse("people:person", args=[user.pk]) if may_open else "")
        for ref, user in by_ref(User.objects.defer("password"), refs).items()
    }


@names("auth.group")
def role_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    return {ref: Name(f"role {role.name}") for ref, role in by_ref(Group.objects.all(), refs).items()}


@names("accounts.rolerequest")
def role_request_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    requests = RoleRequest.objects.select_related("role", "permission__content_type").filter(pk__in=refs)
    return {request.pk: Name(f"request of {request.right_label}") for request in requests}


@finds("auth.user")
def users_called(viewer: User, text: str) -> Iterable[UUID]:
    """Accounts by their user name."""
    return [ids.ref_of(user) for user in User.objects.defer("password").filter(username=text)]
