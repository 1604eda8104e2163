"""An erasure that is killed at any of its transactions: another process finishes it, and the counts are exact."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as ours
from django.contrib.auth.models import User
from django.db import connection

from memadmin.erasure.models import ErasureStep, RequestNote, SubjectRequest, SuppressionEntry
from memadmin.erasure.suppression import entering
from memadmin.runs.models import Run
from memories_app.models import Memory, Signal
from sessions_app.models import SessionRecord, Subject, SubjectAlias
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, attach_main_store, run_sql
from tests.builders import make_subject
from tests.erasure import killed
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import items_of
from tests.forks import PROCESSES
from tests.memories.builders import proposed
from tests.people import person

ITEMS = 25
MOST_KILLS = 400


def make_person(key: str, officer: User) -> Subject:
    subject = make_subject(key)
    for number in range(2):
        add_items(f"{key}:{number}", *(f"item {item}" for item in range(ITEMS)))
        attach_sessions(SessionRecord.objects.filter(session_id=f"{key}:{number}"), subject, by=officer)
    proposed(f"about {key}", subject=subject)
    Signal.objects.create(subject=subject, kind="preference", text=f"of {key}")
    return subject


def kill_at(point: int, request: SubjectRequest, ledger: Path) -> bool:
    """Whether a process that works on the erasure came to this point, and was killed there."""
    assert request.run is not None
    args = (connection.settings_dict["NAME"], ours.DATA_DIR, ledger, request.run.pk, point)
    worker = PROCESSES.Process(target=killed.main, args=args)
    worker.start()
    worker.join()
    run_sql("UPDATE runs_run SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
    run_sql("UPDATE runs_run SET retry_at = NULL WHERE state = 'waiting' AND cursor = '{}'")
    assert worker.exitcode in (0, -signal.SIGKILL)
    return worker.exitcode == -signal.SIGKILL


@pytest.mark.slow
def test_killed_at_every_point_it_is_finished_with_exact_counts(
    agent_tables: None, tmp_path: Path, settings: Any
) -> None:
    """Each process is killed one point later than the last, until a transaction is committed; then the next one is
    tried so: around and within every transaction of the erasure a process dies once.
    """
    ledger = tmp_path / "suppressions.jsonl"
    settings.SUPPRESSION_LEDGER = ledger
    officer, second = person("compliance"), person("compliance", "reviewer")
    attach_main_store()
    bystander, subject = make_person("bystander", officer), make_person("person", officer)
    request = approved(subject, by=officer, second=second)
    kills, point, committed = 0, 1, None
    while kill_at(point, request, ledger):
        kills += 1
        assert kills < MOST_KILLS
        request.refresh_from_db()
        # E-1: nothing is gone of which the request, its ledger entry and the fence do not say so.
        if items_of("person") < 2 * ITEMS:
            assert request.is_started
            assert str(request.id) in ledger.read_text()
        assert request.run
        run = Run.objects.get(pk=request.run.pk)
        point, committed = (point + 1 if run.chunk_at == committed else 1), run.chunk_at
    work_off(request)
    assert request.state == SubjectRequest.State.SCANNING
    assert kills > 45, "fewer kills than the erasure has transactions"
    assert items_of("person") == 0
    assert not SessionRecord.objects.filter(session_id__startswith="person:").exists()
    assert not SubjectAlias.objects.filter(subject=subject).exists()
    counts = {step.name: step.erased for step in ErasureStep.objects.filter(request=request)}
    assert (counts["sessions"], counts["memories"], counts["signals"]) == (2 * ITEMS, 1, 1)
    assert counts["identity"] == 3
    assert request.notes.filter(code=RequestNote.Code.STARTED).count() == 1
    assert json.loads(request.receipt)["payload"]["counts"]["sessions/main"] == 2 * ITEMS
    assert SuppressionEntry.objects.count() == 1
    entering.check_again()
    assert not entering.reason_not_to_serve()
    assert items_of("bystander") == 2 * ITEMS
    assert Memory.objects.get().subject == bystander
    assert Signal.objects.get().subject == bystander
