"""Two worker programs on one database: what one has begun when it is killed, the other one ends."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from memadmin.audit.models import AuditEvent
from memadmin.erasure import services
from memadmin.erasure.models import SubjectRequest
from memadmin.runs.models import Run
from tests.agents import attach_main_store, run_sql, second_connection
from tests.approvals import shown
from tests.erasure.builders import awaiting
from tests.erasure.faults import erased_of, items_of, with_sessions
from tests.ops.hosts import Machine, machines
from tests.people import person
from tests.waiting import wait_until

pytestmark = [pytest.mark.release, pytest.mark.django_db(transaction=True)]

WAITS = """
SELECT count(*) FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND application_name = 'memadmin' AND datname = current_database()
"""


@pytest.fixture
def officer(agent_tables: None) -> User:
    attach_main_store()
    return person("compliance", "support", "administrator")


def test_what_a_killed_worker_has_begun_another_one_ends(officer: User, tmp_path: Path) -> None:
    second = person("compliance", "reviewer")
    request = awaiting(with_sessions("ada", by=officer), by=officer)
    with machines(tmp_path, workers=2) as workers, second_connection() as other:
        # The worker stands still in the middle of its work, before the signals of this person.
        other.execute("LOCK TABLE memories_app_signal IN ACCESS EXCLUSIVE MODE")
        services.approve_request(request, by=second, typed="ada", shown=shown(request), window=timedelta(0))
        working = by_whom(request, workers)
        working.kill()
        other.rollback()
        # The time passes after which nobody waits for the killed one any more.
        run_sql("UPDATE runs_run SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
        wait_until(lambda: is_erased(request))
    assert items_of("ada") == 0
    assert erased_of(request)["sessions/main"] == 50
    assert AuditEvent.objects.filter(type="request.started", object_ref=request.id).count() == 1


def by_whom(request: SubjectRequest, workers: list[Machine]) -> Machine:
    """The worker that has begun, once it waits for the lock."""

    def pid() -> str:
        run = Run.objects.get(subject_request=request)
        return run.worker.rpartition(":")[2] if run.lease_until else ""

    def stands_still() -> bool:
        with second_connection() as other:
            return bool(pid()) and other.execute(WAITS.encode()).fetchone() == (1,)

    wait_until(stands_still)
    return next(worker for worker in workers if worker.program.pid == int(pid()))


def is_erased(request: SubjectRequest) -> bool:
    """Nothing is left to do but the receipt, for which the log must be signed: these workers have no key."""
    run = Run.objects.get(subject_request=request)
    return run.state == Run.State.WAITING and run.reason.startswith("The receipt cannot be issued yet.")
