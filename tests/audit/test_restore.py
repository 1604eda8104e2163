"""An older dump was restored: events wait until a signed record says what is lost, and then the log goes on."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from memadmin.audit.models import AuditAnchor, AuditEvent, AuditLeaf, AuditPending
from memadmin.audit.transparency import (
    anchors,
    checkpoints,
    epochs,
    notes,
    sequencer,
    status,
    tree_store,
    verification,
)
from memadmin.audit.transparency.notes import SigningKey
from memadmin.audit.transparency.sequencer import OlderStateRestored, Sequencer
from tests.audit.events import assert_sequenced, earlier_state, record_events, write_events
from tests.meanwhile import somebody_else

pytestmark = [pytest.mark.django_db(transaction=True)]


class LooksNowhere(Sequencer):
    """The broken variant: goes on from whatever it finds."""

    def _look_outside(self) -> None:
        pass


def grow(count: int) -> None:
    write_events(count)
    Sequencer().finish()
    anchors.publish()


@pytest.fixture
def anchor(empty_log: None, settings: Settings, tmp_path: Path) -> Path:
    """The anchor's file of an empty log."""
    path = settings.ANCHOR_PATH = tmp_path / "anchor.jsonl"
    return path


@pytest.fixture
def restored(anchor: Path) -> Path:
    """A log that was anchored at 20 events and restored to 12."""
    grow(12)
    with earlier_state():
        grow(8)
    return anchor


def verdict() -> tuple[str, set[str]]:
    report = verification.verify(wait=lambda seconds: None)
    return report.verdict, {finding.kind for finding in report.findings}


def test_events_wait_and_everybody_is_told_why(restored: Path) -> None:
    record_events(3)
    with pytest.raises(OlderStateRestored, match="has a checkpoint of size 20, and the log is shorter"):
        Sequencer().step()
    assert (tree_store.size(), AuditPending.objects.count()) == (12, 3)
    problems = {problem.code: problem.sentence for problem in status.log_status().problems}
    assert "begin_epoch" in problems["refused"]
    assert verdict() == ("broken", {"restored_backup"})
    with pytest.raises(CommandError, match="the log is shorter"):
        call_command("sequence_audit", once=True)


def test_whoever_does_not_look_writes_over_what_is_lost(restored: Path) -> None:
    write_events(8)
    LooksNowhere().finish()
    assert tree_store.size() == 20
    assert verdict() == ("broken", {"rewrite"})


def test_signed_record_lets_the_log_go_on(restored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record_events(3)
    call_command("begin_epoch", reason="restored_backup", as_json=True)
    assert json.loads(capsys.readouterr().out) == {"epoch": 2, "size": 13, "lost_size": 20}
    begun = checkpoints.latest()
    assert begun
    assert (begun.epoch, begun.size, begun.replaced and begun.replaced[0]) == (2, 13, 20)
    event = AuditEvent.objects.get(type="log.epoch_begun")
    assert AuditLeaf.objects.get(event_number=event.number).index == 12
    assert (event.reason_code, event.counters) == ("restored_backup", {"epoch": 2, "size": 12, "lost_size": 20})
    Sequencer().step()
    assert_sequenced()
    # What is lost stays told, and contradicts nothing.
    assert verdict() == ("epoch", {"epoch"})
    assert not status.log_status().problems
    assert [json.loads(line)["epoch"] for line in restored.read_text().splitlines()] == [1, 1, 2]


def test_the_log_grows_past_its_old_size(restored: Path) -> None:
    epochs.begin_epoch(reason_code="restored_backup")
    for _ in range(3):
        grow(5)
    assert tree_store.size() == 28
    assert verdict() == ("epoch", {"epoch"})


def test_it_can_happen_twice(restored: Path) -> None:
    epochs.begin_epoch(reason_code="restored_backup")
    grow(10)
    with earlier_state():
        grow(10)
    with pytest.raises(OlderStateRestored):
        Sequencer().step()
    assert epochs.begin_epoch(reason_code="restored_backup").epoch == 3
    grow(4)
    assert verdict() == ("epoch", {"epoch"})


def test_a_restore_to_before_the_first_checkpoint(anchor: Path) -> None:
    with earlier_state():
        grow(5)
    write_events(2)
    with pytest.raises(OlderStateRestored):
        Sequencer().step()
    assert epochs.begin_epoch(reason_code="restored_backup").size == 1
    Sequencer().step()
    assert_sequenced()
    assert verdict() == ("epoch", {"epoch"})


def test_a_record_that_owns_up_to_less_than_was_known_is_no_excuse(restored: Path) -> None:
    """Whoever took away more than they say."""
    known = anchors.newest_beyond(None, checkpoints.trusted_keys(checkpoints.latest()))
    assert known
    lines = restored.read_text()
    restored.write_text(lines.splitlines(keepends=True)[0])
    key = checkpoints.signer(known[1])
    assert key
    FileWith(restored).put(replace(known[1], size=15, root=bytes(32)), key)
    epochs.begin_epoch(reason_code="restored_backup")
    restored.write_text(lines)
    # The anchor lost the record, too.
    assert verdict() == ("broken", {"epoch", "restored_backup", "cut_anchor"})


def test_no_epoch_begins_where_nothing_was_restored(anchor: Path) -> None:
    grow(3)
    with pytest.raises(CommandError, match="No anchor has a newer checkpoint than the database"):
        call_command("begin_epoch", reason="restored_backup")
    assert not AuditEvent.objects.filter(type="log.epoch_begun").exists()


def test_an_epoch_needs_a_key(restored: Path, settings: Settings) -> None:
    settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
    with pytest.raises(CommandError, match="Set MEMADMIN_SIGNING_KEY"):
        call_command("begin_epoch", reason="moved")


def test_notes_of_strangers_stop_nobody(anchor: Path) -> None:
    """Whoever can write to the anchor's file cannot bring the log to a stand."""
    grow(3)
    latest = checkpoints.latest()
    assert latest
    FileWith(anchor).put(replace(latest, size=1000), SigningKey(latest.origin, bytes(32)))
    record_events(1)
    assert Sequencer().step()
    assert_sequenced()
    assert verdict() == ("ok", set())


def test_what_a_place_on_another_machine_tells_counts_too(anchor: Path) -> None:
    """There nobody looks each time; the job that brings checkpoints is told."""
    grow(3)
    sequencing = Sequencer()
    sequencing.step()
    AuditAnchor.objects.create(checkpoint_size=9, sink="s3:bucket", outcome="ahead", receipt="s3:bucket knows better.")
    record_events(1)
    with pytest.raises(OlderStateRestored, match="knows better"):
        sequencing.step()


def test_running_sequencer_notices_it_and_goes_on_by_itself(anchor: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequencer, "LOOK_SECONDS", 0)
    monkeypatch.setattr(sequencer, "PAUSE_SECONDS", 0.05)
    stop = threading.Event()
    grow(12)
    with somebody_else() as start:
        with earlier_state():
            grow(8)
        running = start(lambda: Sequencer().run(stop))
        record_events(2)
        while not AuditAnchor.objects.filter(outcome="ahead").exists():
            assert not running.done()
        assert tree_store.size() == 12
        epochs.begin_epoch(reason_code="restored_backup")
        while AuditPending.objects.exists():
            assert not running.done()
        stop.set()
        running.result(30)
    assert tree_store.size() == 15
    assert_sequenced()


class FileWith:
    """Puts a note at the end of an anchor's file, whatever it says."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, checkpoint: notes.Checkpoint, key: SigningKey) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"note": notes.sign(checkpoint, key)}) + "\n")
