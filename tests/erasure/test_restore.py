"""A restored backup: what was erased is back, nothing is shown, the erasures are repeated, and it is gone again."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils.timezone import now

from memadmin.audit.log.proofs import share_keys
from memadmin.erasure.models import SubjectRequest, SuppressionEntry
from memadmin.erasure.suppression import entering
from memadmin.erasure.suppression import ledger as ledger_module
from memadmin.erasure.suppression.ledger import Ledger, LedgerError, session_digests, subject_digests
from memadmin.runs import engine
from memadmin.runs.models import Run
from memories_app.models import Memory
from sessions_app.models import SessionRecord, SubjectAlias
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, attach_main_store, run_sql, value_of
from tests.builders import make_subject
from tests.erasure.builders import approved, work_off
from tests.erasure.restoring import dump, restored
from tests.memories.builders import approved as approved_memory
from tests.people import signed_in

State = SubjectRequest.State


def messages_of(name: str) -> int:
    return int(value_of(f"SELECT count(*) FROM agent_messages WHERE session_id = '{name}'"))


def test_the_drill(agent_tables: None, ledger: Ledger, officer: User, second: User) -> None:
    attach_main_store()
    ada, bob = make_subject("ada-1"), make_subject("bob-1")
    for name, subject in (("a1", ada), ("b1", bob)):
        add_items(name, "one", "two")
        attach_sessions(SessionRecord.objects.filter(session_id=name), subject, by=officer)
        approved_memory(f"likes {name}", subject=subject)
    add_items("late", "of ada, without a subject at the time of the backup")
    backup = dump()

    attach_sessions(SessionRecord.objects.filter(session_id="late"), ada, by=officer)
    work_off(approved(ada, by=officer, second=second))
    assert (messages_of("a1"), messages_of("late"), messages_of("b1")) == (0, 0, 2)
    assert "ada-1" not in ledger.path.read_text()
    assert signed_in(officer).get("/sessions/").status_code == 200

    with restored(backup):
        entering.check_again()
        # The control: without it the rest would prove nothing.
        assert (messages_of("a1"), messages_of("late")) == (2, 1)
        browser = signed_in(User.objects.get(username=officer.username))
        refused = browser.get("/sessions/")
        assert refused.status_code == 503
        assert "replay_suppressions" in refused.content.decode()
        assert "ada-1" not in refused.content.decode()
        assert Client().get("/healthz").status_code == 200
        ready = Client().get("/readyz")
        assert ready.status_code == 503
        assert "older than 1 erasure" in ready.json()["problems"][0]

        out = StringIO()
        call_command("replay_suppressions", "--json", stdout=out)
        assert json.loads(out.getvalue()) == {"entries": 1, "subjects": 1, "unfinished": []}
        assert (messages_of("a1"), messages_of("late"), messages_of("b1")) == (0, 0, 2)
        assert [memory.statement for memory in Memory.objects.all()] == ["likes b1"]
        assert not SubjectAlias.objects.filter(key="ada-1").exists()
        assert SubjectRequest.objects.get().channel == "replay"
        assert browser.get("/sessions/").status_code == 200
        call_command("replay_suppressions", stdout=StringIO())
        assert SubjectRequest.objects.count() == 1


def test_nothing_is_shown_until_a_store_that_is_away_was_erased(
    agent_tables: None, ledger: Ledger, officer: User
) -> None:
    attach_main_store()
    ada = make_subject("ada-1")
    add_items("a1", "one")
    attach_sessions(SessionRecord.objects.filter(session_id="a1"), ada, by=officer)
    ledger.append(uuid4(), subjects=subject_digests("user", "ada-1"), sessions=[], after=0)
    run_sql("ALTER TABLE agent_messages RENAME TO hidden")
    with pytest.raises(CommandError, match="does not respond"):
        call_command("replay_suppressions", stdout=StringIO())
    assert entering.reason_not_to_serve()
    run_sql("ALTER TABLE hidden RENAME TO agent_messages")
    Run.objects.update(retry_at=None)
    call_command("replay_suppressions", stdout=StringIO())
    assert messages_of("a1") == 0
    assert not entering.reason_not_to_serve()


def test_a_ledger_that_was_changed_is_refused(ledger: Ledger, db: None) -> None:
    for number in range(3):
        ledger.append(uuid4(), subjects=subject_digests("user", str(number)), sessions=[], after=0)
    lines = ledger.path.read_text().splitlines(keepends=True)
    for wrong in (
        lines[1:],
        [lines[0], lines[2]],
        [lines[1], lines[0], lines[2]],
        [lines[0].replace('"number":1', '"number":7'), *lines[1:]],
        ["no JSON\n", *lines[1:]],
        ["[]\n", *lines],
    ):
        ledger.path.write_text("".join(wrong))
        with pytest.raises(LedgerError):
            ledger.entries()
    ledger.path.write_text("".join(lines) + '{"number": 4, "at": "2')
    assert [entry.number for entry in ledger.entries()] == [1, 2, 3]
    assert ledger.append(uuid4(), subjects=[], sessions=[], after=9).number == 10
    assert [entry.number for entry in ledger.entries()] == [1, 2, 3, 10]


def test_an_erasure_does_not_begin_without_its_entry(
    agent_tables: None, ledger: Ledger, settings: Any, officer: User, second: User, tmp_path: Path
) -> None:
    attach_main_store()
    ada = make_subject("ada-1")
    add_items("a1", "one")
    attach_sessions(SessionRecord.objects.filter(session_id="a1"), ada, by=officer)
    settings.SUPPRESSION_LEDGER = tmp_path / "missing" / "suppressions.jsonl"
    request = approved(ada, by=officer, second=second)
    run = work_off(request)
    assert (run.state, messages_of("a1")) == (Run.State.WAITING, 1)
    assert "suppression ledger cannot be written" in run.reason
    settings.SUPPRESSION_LEDGER = ledger.path
    Run.objects.update(retry_at=None)
    engine.carry_on(run)
    assert messages_of("a1") == 0
    assert SuppressionEntry.objects.get().request_id == request.id


def test_a_new_secret_key_leaves_the_ledger_valid(
    agent_tables: None, ledger: Ledger, settings: Any, officer: User
) -> None:
    attach_main_store()
    ada = make_subject("ada-1")
    for name in ("a1", "stray"):
        add_items(name, "one")
    attach_sessions(SessionRecord.objects.filter(session_id="a1"), ada, by=officer)
    ledger.append(
        uuid4(), subjects=subject_digests("user", "ada-1"), sessions=session_digests("main", "stray"), after=0
    )
    old, settings.SECRET_KEY = settings.SECRET_KEY, "a new key of this installation, long enough"
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(LedgerError, match="MEMADMIN_OLD_SECRET_KEYS"):
        ledger.entries()
    settings.SECRET_KEY_FALLBACKS = [old]
    share_keys()
    ledger.append(uuid4(), subjects=[], sessions=[], after=0)
    assert [entry.number for entry in ledger.entries()] == [1, 2]

    call_command("replay_suppressions", stdout=StringIO())
    assert (messages_of("a1"), messages_of("stray")) == (0, 0)
    assert not entering.reason_not_to_serve()


def test_an_erasure_that_is_just_beginning_hides_nothing(ledger: Ledger, officer: User, second: User) -> None:
    request = approved(make_subject("ada-1"), by=officer, second=second)
    ledger.append(request.id, subjects=subject_digests("user", "ada-1"), sessions=[], after=0)
    # As a restored database has it: a worker held a lease when the backup was made.
    Run.objects.update(state=Run.State.RUNNING, lease_until=now() - timedelta(seconds=1))
    assert "older than 1 erasure" in entering.difference(ledger, set())
    Run.objects.update(lease_until=now() + timedelta(seconds=60))
    assert not entering.difference(ledger, set())
    ledger.append(uuid4(), subjects=[], sessions=[], after=0)
    assert "older than 1 erasure" in entering.difference(ledger, set())


def test_a_line_of_the_ledger_is_verified_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = []
    compute = ledger_module._macs

    def counted(*parts: str) -> list[str]:
        codes.append(parts[0])
        return compute(*parts)

    monkeypatch.setattr(ledger_module, "_macs", counted)
    for _ in range(20):
        ledger.append(uuid4(), subjects=[], sessions=[], after=0)
    assert len(ledger.entries()) == 20
    assert len(codes) == 2 * 20, "one to write each line, and one to verify it"
