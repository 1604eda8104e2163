"""What a test with real transactions leaves to the next one: a database as an installation has it, and nothing else."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from procrastinate.contrib.django.models import ProcrastinateJob

from memadmin.accounts.roles import ROLES
from memadmin.audit.jobs import verify_log
from memadmin.audit.models import AuditEvent
from tests.people import person

pytestmark = pytest.mark.django_db(transaction=True)


def rights() -> set[tuple[str, str]]:
    return set(Permission.objects.values_list("group__name", "codename").exclude(group=None))


def flush() -> None:
    call_command("flush", interactive=False, verbosity=0)


def how_it_stands(table: str) -> tuple[object, ...]:
    """Its size, and what the planner believes of it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_relation_size(oid), relpages, reltuples FROM pg_class WHERE relname = %s", [table])
        return tuple(cursor.fetchone())


def test_roles_come_back_as_migrations_made_them_and_all_else_goes() -> None:
    before = rights()
    assert {name for name, _ in before} == set(ROLES)
    person("support")
    verify_log.defer()
    Group.objects.get(name="auditor").delete()
    Group.objects.get(name="support").permissions.clear()
    Group.objects.create(name="another")
    flush()
    assert rights() == before
    assert Group.objects.count() == len(ROLES)
    for model in (User, AuditEvent, ProcrastinateJob):
        assert not model._default_manager.exists()
    assert Group.objects.create(name="one more").pk > max(Group.objects.values_list("pk", flat=True)[: len(ROLES)])


def test_roles_that_nobody_changed_stay() -> None:
    before = rights()
    person("support")
    flush()
    assert rights() == before
    assert not User.objects.exists()


def test_the_log_is_guarded_again() -> None:
    person("support")
    assert AuditEvent.objects.exists()
    flush()
    assert not AuditEvent.objects.exists()
    person("support")
    with pytest.raises(DatabaseError, match="insert-only"), transaction.atomic():
        AuditEvent.objects.all()._raw_delete("default")


@pytest.mark.parametrize("analyzed", [False, True])
def test_large_and_analyzed_tables_are_new_again_with_all_that_refers_to_them(analyzed: bool) -> None:
    before, new = rights(), (0, 0, -1)
    flush()
    User.objects.bulk_create(User(username=f"{number:0>150}") for number in range(1 if analyzed else 1000))
    if analyzed:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE auth_user")
    User.objects.latest("pk").groups.add(Group.objects.get(name="support"))
    flush()
    assert how_it_stands("auth_user") == new
    assert how_it_stands("auth_user_groups") == new
    assert rights() == before
