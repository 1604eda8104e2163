"""One event is shown to be in the log; a changed one is not."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.utils.timezone import now
from pytest_django import Settings

from memadmin import audit
from memadmin.audit.models import AuditAnchor, AuditCheckpoint, AuditEvent, AuditVerdict
from memadmin.audit.transparency import anchors, proofs, status, tree_store
from memadmin.audit.transparency.notes import verified
from memadmin.audit.transparency.sequencer import Sequencer
from tests.agents import run_sql
from tests.audit.consistency import is_consistent
from tests.audit.events import TRIED, record_events

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_log")]


@pytest.fixture
def anchor_file(settings: Settings, tmp_path: Path) -> Path:
    settings.ANCHOR_PATH = tmp_path / "anchor.jsonl"
    return tmp_path / "anchor.jsonl"


def make_log(*counts: int) -> list[AuditEvent]:
    """A checkpoint after each of these numbers of events."""
    for count in counts:
        record_events(count)
        Sequencer().finish()
    return list(AuditEvent.objects.order_by("number"))


def test_every_event_leads_to_a_signed_root() -> None:
    events = make_log(3, 5, 300)
    for index, event in enumerate(events):
        proof = proofs.proof_of(event)
        assert proof.holds
        assert proof.index == index
        assert verified(proof.note) == proof.checkpoint
        assert proof.checkpoint.size == next(size for size in (3, 8, 308) if size > index)
        assert proof.signed_at == proof.checkpoint.at


def test_proof_leads_to_what_is_anchored(anchor_file: Path) -> None:
    event = make_log(3)[0]
    make_log(4)
    assert proofs.proof_of(event).anchors == []
    anchors.publish()
    proof = proofs.proof_of(event)
    assert proof.holds
    assert proof.checkpoint.size == 7
    assert [anchor.sink for anchor in proof.anchors] == [f"file:{anchor_file}"[-64:]] or proof.anchors[0].sink
    assert proof.signed_at < proof.checkpoint.at


def test_changed_event_leads_nowhere() -> None:
    make_log(5)
    event = AuditEvent.objects.order_by("number")[2]
    event.outcome = "denied"
    assert not proofs.proof_of(event).holds


def test_new_event_is_not_provable_yet() -> None:
    make_log(2)
    record_events(1)
    newest = AuditEvent.objects.latest("number")
    with pytest.raises(proofs.NotSequenced, match="takes a few seconds"):
        proofs.proof_of(newest)
    Sequencer().step()
    with pytest.raises(proofs.NotSigned, match="signed within a minute"):
        proofs.proof_of(newest)
    Sequencer().finish()
    assert proofs.proof_of(newest).holds


def test_damaged_tree_is_said_to_be_damaged() -> None:
    event = make_log(5)[4]
    run_sql("ALTER TABLE audit_leaf DISABLE TRIGGER ALL; DELETE FROM audit_leaf WHERE index = 1")
    with pytest.raises(tree_store.TreeDamaged, match="Run verify_audit"):
        proofs.proof_of(event)


def test_proof_file_tells_of_people_only_when_asked() -> None:
    with transaction.atomic():
        audit.record(TRIED, details={"reason": "a person called"})
    (event,) = make_log(1)[:1]
    proof = proofs.proof_of(event)
    assert b"a person called" not in proof.as_file()
    told = json.loads(proof.as_file(with_details=True))
    assert json.loads(told["details"]["text"]) == {"reason": "a person called"}
    assert told["event"]["commitment"]


def test_checkpoints_are_consistent() -> None:
    make_log(3, 5)
    old, new = AuditCheckpoint.objects.order_by("size")
    found = proofs.consistency_of(old, new)
    path = [bytes.fromhex(hash_) for hash_ in found["path"]]
    assert is_consistent(bytes(old.root), 3, bytes(new.root), 8, path)


class TestStatus:
    def test_of_an_empty_log_is_only_that_it_is_not_anchored(self) -> None:
        found = status.log_status()
        assert (found.size, found.unsequenced, found.unsigned, found.anchored_size) == (0, 0, 0, 0)
        assert [problem.code for problem in found.problems] == ["not_anchored"]
        assert found.problems[0].sentence == "Not anchored: the database owner could rewrite this log."

    def test_of_a_log_that_is_signed_and_anchored_is_well(self, anchor_file: Path) -> None:
        make_log(3)
        anchors.publish()
        record_events(2)
        Sequencer().step()
        record_events(1)
        found = status.log_status()
        assert not found.problems
        assert (found.size, found.unsequenced, found.unsigned, found.anchored_size) == (5, 1, 2, 3)
        assert found.anchored_at

    def test_tells_of_events_that_wait(self, anchor_file: Path) -> None:
        make_log(1)
        anchors.publish()
        record_events(1)
        self.age_events(timedelta(seconds=11))
        (problem,) = status.log_status().problems
        assert problem.code == "unsequenced"
        (seconds,) = re.findall(r"have waited (\d+) s", problem.sentence)
        assert 11 <= int(seconds) < 60

    def test_tells_of_a_missing_key(self, anchor_file: Path, settings: Settings) -> None:
        settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
        record_events(1)
        Sequencer().step()
        self.age_events(timedelta(minutes=4))
        assert [problem.code for problem in status.log_status().problems] == ["unsigned"]

    def test_tells_of_an_anchor_that_fails(self, anchor_file: Path) -> None:
        make_log(1)
        anchor_file.mkdir()
        anchors.publish()
        assert not status.log_status().problems
        self.age_events(timedelta(minutes=16))
        (problem,) = status.log_status().problems
        assert problem.code == "unanchored"
        assert "Not anchored for 16 min" in problem.sentence
        assert "Is a directory" in problem.sentence

    def test_of_a_log_at_rest_stays_well(self, anchor_file: Path) -> None:
        make_log(1)
        anchors.publish()
        self.age_events(timedelta(days=30))
        assert not status.log_status().problems

    def test_tells_of_an_anchor_that_knows_another_root(self, anchor_file: Path, settings: Settings) -> None:
        make_log(1)
        anchors.publish()
        note = json.loads(anchor_file.read_text())["note"]
        run_sql("ALTER TABLE audit_anchor DISABLE TRIGGER ALL; DELETE FROM audit_anchor")
        other = AuditCheckpoint.objects.get()
        assert other.note == note
        run_sql("ALTER TABLE audit_checkpoint DISABLE TRIGGER ALL")
        run_sql(f"UPDATE audit_checkpoint SET note = replace(note, '{note.splitlines()[2]}', '{'A' * 43}=')")
        anchors.publish()
        assert status.log_status().problems[0].code == "refused"

    @staticmethod
    def age_events(by: timedelta) -> None:
        seconds = by.total_seconds()
        run_sql(
            "ALTER TABLE audit_event DISABLE TRIGGER ALL;"
            f"UPDATE audit_event SET at = at - interval '{seconds} seconds';"
            "ALTER TABLE audit_event ENABLE TRIGGER ALL"
        )


class TestPublishing:
    def test_brings_each_checkpoint_once(self, anchor_file: Path) -> None:
        assert anchors.publish() == []
        make_log(1)
        assert [tried.outcome for tried in anchors.publish()] == ["anchored"]
        assert anchors.publish() == []
        make_log(1)
        anchors.publish()
        assert [json.loads(line)["size"] for line in anchor_file.read_text().splitlines()] == [1, 2]

    def test_tries_again_after_a_failure_but_not_at_once(self, anchor_file: Path) -> None:
        make_log(1)
        anchor_file.mkdir()
        assert [tried.outcome for tried in anchors.publish()] == ["failed"]
        anchor_file.rmdir()
        assert anchors.publish() == []
        assert [tried.outcome for tried in anchors.publish(at_once=True)] == ["anchored"]

    def test_one_place_that_fails_does_not_keep_the_others_from_it(self, anchor_file: Path, settings: Settings) -> None:
        settings.ANCHOR_URL = "http://127.0.0.1:9/"
        make_log(1)
        assert {tried.sink.split(":")[0]: tried.outcome for tried in anchors.publish()} == {
            "file": "anchored",
            "webhook": "failed",
        }


def test_latest_verdict_is_the_newest() -> None:
    assert status.latest_verdict() is None
    for verdict, days in (("ok", 1), ("broken", 0)):
        AuditVerdict.objects.create(verdict=verdict, size=1, at=now() - timedelta(days=days))
    found = status.latest_verdict()
    assert found
    assert found.verdict == "broken"
    assert AuditAnchor.objects.count() == 0
