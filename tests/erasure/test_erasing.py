"""An erasure from the approval to the receipt, on real tables of agents."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from memadmin import audit
from memadmin.client.subjects import Subject as SubjectInHost
from memadmin.erasure.data_map import places
from memadmin.erasure.holder_view_models import out_of_reach_lines
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.preview import Preview
from memadmin.runs.models import Run
from memories_app.models import Evidence, Memory, Recall, RecalledMemory, Signal
from sessions_app.audit_events import SESSION_DOWNLOADED
from sessions_app.encryption.subject_keys import key_folder
from sessions_app.models import SessionRecord, SessionStore, SubjectAlias
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, value_of
from tests.builders import make_subject
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import with_sessions
from tests.memories.builders import approved as approved_memory
from tests.sealed import NEW_KEY, secrets

State = SubjectRequest.State


def test_everything_about_the_person_goes_and_nothing_else(
    kept_main_store: SessionStore, officer: User, second: User
) -> None:
    subject, other = make_subject("ada-1"), make_subject("bob-1")
    for name in ("a1", "a2", "b1"):
        add_items(name, *(f"item {number} of {name}" for number in range(30)))
    attach_sessions(SessionRecord.objects.filter(session_id__startswith="a"), subject, by=officer)
    attach_sessions(SessionRecord.objects.filter(session_id="b1"), other, by=officer)
    memory, kept = approved_memory("likes tea", subject=subject), approved_memory("likes coffee", subject=other)
    Signal.objects.create(subject=subject, kind="preference", text="tea")
    recall = Recall.objects.create(subject=subject)
    RecalledMemory.objects.create(recall=recall, memory=memory, version=1, place=1)
    request = approved(subject, by=officer, second=second)

    run = work_off(request)

    request.refresh_from_db()
    assert (run.state, request.state) == (Run.State.WAITING, State.SCANNING), run.reason
    assert value_of("SELECT count(*) FROM agent_messages WHERE session_id LIKE 'a%'") == 0
    assert value_of("SELECT count(*) FROM agent_messages") == 30
    assert list(Memory.objects.all()) == [kept]
    assert not any(model.objects.exists() for model in (Signal, Recall, RecalledMemory, Evidence))
    assert not SubjectAlias.objects.filter(subject=subject).exists()
    assert not SessionRecord.objects.filter(session_id__in=["a1", "a2"]).exists()
    steps = {(step.name, step.place): (step.expected, step.erased) for step in ErasureStep.objects.all()}
    assert steps["sessions", "main"] == (60, 60)
    assert steps["memories", ""] == (1, 1)
    receipt = json.loads(request.receipt)["payload"]
    assert receipt["outcome"] == "complete"
    assert receipt["versions"]["data_map"] == hashlib.sha256(places.FILE.read_bytes()).hexdigest()[:12]
    assert receipt["counts"]["sessions/main"] == 60
    assert "ada-1" not in request.receipt


def test_files_that_were_downloaded_before_are_named(
    kept_main_store: SessionStore, officer: User, second: User
) -> None:
    """For GDPR article 19: those of this person alone, also after the preview."""
    ada, bob = with_sessions("ada-1", by=officer), with_sessions("bob-1", by=officer)
    of_ada, of_bob = (SessionRecord.objects.filter(subject=each).first() for each in (ada, bob))
    audit.record_alone(SESSION_DOWNLOADED, by=officer, target=of_bob)
    request = approved(ada, by=officer, second=second)
    assert "downloads" not in {row["code"] for row in request.preview["out_of_reach"]}
    for _ in range(2):
        audit.record_alone(SESSION_DOWNLOADED, by=officer, target=of_ada)
    work_off(request)
    (line,) = (line for line in out_of_reach_lines(request.preview["out_of_reach"]) if line.symbol == "download")
    assert line.count == "2 downloads"
    receipt = json.loads(request.receipt)["payload"]
    assert "downloads" in {row["code"] for row in receipt["out_of_reach"]}
    assert receipt["outcome"] == "complete"


def test_the_keys_of_the_person_are_destroyed(
    kept_main_store: SessionStore, officer: User, second: User, tmp_path: Path, settings: Any
) -> None:
    settings.SESSION_KEYS = secrets(new=NEW_KEY)
    settings.SUBJECT_KEYS_DIR = tmp_path / "subject-keys"
    settings.SUBJECT_KEYS_DIR.mkdir(mode=0o700)
    subject = make_subject("ada-1")
    folder = key_folder()
    assert folder is not None
    folder.key_for(SubjectInHost("ada-1", "user"))
    request = approved(subject, by=officer, second=second)
    assert {holder.name: holder.counted.rows for holder in Preview.of_json(request.preview).holders}[
        "subject_keys"
    ] == 1
    work_off(request)
    assert request.state == State.SCANNING
    assert folder.is_destroyed(SubjectInHost("ada-1", "user"))
    assert ErasureStep.objects.get(request=request, name="subject_keys").erased == 1


def test_of_a_shared_memory_the_persons_words_go_and_a_person_reads_what_is_left(
    kept_main_store: SessionStore, officer: User, second: User
) -> None:
    ada, bob = make_subject("ada-1"), make_subject("bob-1")
    for name, subject in (("a1", ada), ("b1", bob)):
        add_items(name, "Refunds take three days, I was told.")
        attach_sessions(SessionRecord.objects.filter(session_id=name), subject, by=officer)
    of_ada, of_bob = (SessionRecord.objects.get(session_id=name) for name in ("a1", "b1"))
    common, ours = approved_memory("Refunds take three days."), approved_memory("Cups come in green.")
    for memory, record in ((common, of_ada), (common, of_bob), (ours, of_ada)):
        Evidence.objects.create(memory=memory, record_id=record.pk, session_id=record.session_id, quote="three days")
    request = approved(ada, by=officer, second=second)
    work_off(request)
    assert request.state == State.SCANNING
    common.refresh_from_db()
    assert common.status == Memory.Status.NEEDS_REVALIDATION
    assert [quote.record_id for quote in common.evidence.all()] == [of_bob.pk]
    assert not Memory.objects.filter(pk=ours.pk).exists()
