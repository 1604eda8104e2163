"""What was written before an upgrade gets its place after it."""

from __future__ import annotations

import importlib

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from memadmin.audit.models import AuditPending
from memadmin.audit.sequencer import Sequencer
from tests.agents import value_of
from tests.audit.events import assert_sequenced, write_events

ONE_TRIGGER = "0015_stamp_and_queue_at_once"
TRIGGERS = "SELECT string_agg(tgname, ' ' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = 'audit_event'::regclass"


def upgrade(*, back: bool = False) -> None:
    """To one trigger for each event, or back from it, in the transaction of the test."""
    migration = importlib.import_module(f"memadmin.audit.migrations.{ONE_TRIGGER}").Migration(ONE_TRIGGER, "audit")
    before = MigrationLoader(connection).project_state(("audit", "0014_leave_out_agents"))
    with connection.schema_editor() as editor:
        (migration.unapply if back else migration.apply)(before, editor)


@pytest.mark.django_db
def test_what_the_former_trigger_queued_gets_its_place() -> None:
    upgrade(back=True)
    assert "pgtrigger_enqueue" in value_of(TRIGGERS)
    waiting = AuditPending.objects.count()
    write_events(2)
    assert AuditPending.objects.count() == waiting + 2
    upgrade()
    assert "pgtrigger_enqueue" not in value_of(TRIGGERS)
    write_events(1)
    assert AuditPending.objects.count() == waiting + 3
    Sequencer().finish()
    assert_sequenced()


@pytest.mark.django_db
def test_going_back_lets_nobody_in() -> None:
    upgrade(back=True)
    for name in ("memadmin_enqueue_event", "memadmin_stamp_event"):
        assert value_of(f"SELECT has_function_privilege('public', '{name}()', 'EXECUTE')") is False
        assert value_of(f"SELECT proconfig[1] FROM pg_proc WHERE proname = '{name}'").startswith("search_path=")


@pytest.mark.django_db
def test_going_back_leaves_registering_its_search_path() -> None:
    """Without it a temporary table would come before ours."""
    name, former = "0019_whose_trigger_wrote", "0018_index_attached_sessions"
    path = "SELECT proconfig[1] FROM pg_proc WHERE proname = 'memadmin_register_session'"
    now = value_of(path)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = public")
    migration = importlib.import_module(f"sessions_app.migrations.{name}").Migration(name, "sessions_app")
    with connection.schema_editor() as editor:
        migration.unapply(MigrationLoader(connection).project_state(("sessions_app", former)), editor)
    assert value_of(path) == now == "search_path=public, pg_temp"
