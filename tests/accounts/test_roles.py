"""What the roles may, apart from the addresses, which are in matrix.py."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from memadmin.accounts import roles
from memadmin.accounts.templatetags.accounts import roles as role_names
from tests.accounts.matrix import ADMINISTRATOR, AUDITOR, ROLES, SUPPORT
from tests.people import person, signed_in


@pytest.mark.django_db
def test_raw_edit_comes_with_no_role() -> None:
    assert not Group.objects.filter(permissions__codename="raw_edit").exists()


@pytest.mark.django_db
def test_person_who_was_given_raw_edit_enters_the_admin() -> None:
    helper = person(SUPPORT)
    helper.user_permissions.add(Permission.objects.get(codename="raw_edit"))
    assert signed_in(helper).get("/admin/").status_code == 200


@pytest.mark.django_db
def test_staff_flag_alone_opens_nothing() -> None:
    helper = person()
    User.objects.filter(pk=helper.pk).update(is_staff=True)
    assert signed_in(helper).get("/admin/").status_code == 403


@pytest.mark.django_db
@pytest.mark.parametrize("role", [AUDITOR, ADMINISTRATOR])
def test_role_without_content_has_no_permission_to_read_it(role: str) -> None:
    assert not person(role).has_perm("sessions_app.read_content")


@pytest.mark.django_db
def test_roles_are_named_in_alphabetical_order() -> None:
    assert role_names(person(SUPPORT, AUDITOR)) == f"{AUDITOR}, {SUPPORT}"
    assert role_names(person()) == "no role"


@pytest.mark.django_db
def test_roles_may_what_the_table_says_and_no_more() -> None:
    """The migrations of all features together arrive at the table."""
    for name, permissions in roles.ROLES.items():
        given = Group.objects.get(name=name).permissions.values_list("content_type__app_label", "codename")
        assert sorted(permissions) == sorted(".".join(each) for each in given), name


@pytest.mark.django_db
def test_making_the_roles_again_keeps_what_was_added_to_one() -> None:
    extra = Permission.objects.get(codename="raw_edit")
    Group.objects.get(name=SUPPORT).permissions.add(extra)
    apps = MigrationLoader(connection).project_state().apps
    with connection.schema_editor() as editor:
        roles.give(roles.ROLES).code(apps, editor)
    assert Group.objects.filter(name__in=ROLES).count() == len(ROLES)
    assert Group.objects.get(name=SUPPORT).permissions.contains(extra)
