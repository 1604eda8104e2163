"""What a test with real transactions leaves to the next one: a database as an installation has it, and nothing else."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from procrastinate.contrib.django.models import ProcrastinateJob

from memadmin.accounts.roles import ROLES
from memadmin.audit.jobs import verify_log
from memadmin.audit.models import AuditEvent
from tests.people import person

pytestmark = pytest.mark.django_db(transaction=True)


def rights() -> set[tuple[str, str]]:
    return set(Permission.objects.values_list("group__name", "codename").exclude(group=None))


def test_roles_come_back_as_migrations_made_them_and_all_else_goes() -> None:
    before = rights()
    assert {name for name, _ in before} == set(ROLES)
    person("support")
    verify_log.defer()
    Group.objects.get(name="auditor").delete()
    Group.objects.get(name="support").permissions.clear()
    Group.objects.create(name="another")
    call_command("flush", interactive=False, verbosity=0)
    assert rights() == before
    assert Group.objects.count() == len(ROLES)
    for model in (User, AuditEvent, ProcrastinateJob):
        assert not model._default_manager.exists()
    assert Group.objects.create(name="one more").pk > max(Group.objects.values_list("pk", flat=True)[: len(ROLES)])
