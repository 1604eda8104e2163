"""The sequencer signs only what continues the log that was signed before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from pytest_django import Settings

from memadmin.audit.models import AuditCheckpoint, AuditLeaf, AuditPending, AuditVerdict
from memadmin.audit.transparency import anchors, checkpoints, notes, sequencer, status, tree_store, verified_tree
from memadmin.audit.transparency.notes import SigningKey
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.audit.transparency.tree import Frontier
from memadmin.audit.transparency.verified_tree import TreeRewritten
from memadmin.deploy.checks import operation
from tests.audit.events import as_owner, assert_sequenced, record_events, write_events
from tests.meanwhile import somebody_else
from tests.people import person, signed_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_log")]

SIZE = 12

REWRITE = (
    "UPDATE audit_event SET outcome = 'failed' WHERE number = (SELECT min(number) FROM audit_event)",
    "UPDATE audit_leaf SET hash = sha256('forged') WHERE index = 0",
)


class BelievesTheDatabase(Sequencer):
    """The broken variant: signs whatever the tables yield."""

    def _turn(self, *, is_last: bool) -> sequencer.Batch | None:
        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(verified_tree, "newest_of_ours", checkpoints.latest)
            patching.setattr(verified_tree, "_roots_to_find", lambda before: {})
            patching.setattr(verified_tree, "_compare_with_events", lambda start, stop: None)
            self._verified = None
            return super()._turn(is_last=is_last)


@pytest.fixture
def running() -> Sequencer:
    """A sequencer that has signed a log of 12 events."""
    running = Sequencer()
    write_events(SIZE)
    assert running.step(is_last=True)
    return running


def forged_root() -> bytes:
    """The root of what is stored now."""
    tree = Frontier()
    for hash_ in AuditLeaf.objects.order_by("index").values_list("hash", flat=True):
        tree.append(bytes(hash_))
    return tree.root()


def put_checkpoint(note: str, size: int = SIZE) -> None:
    as_owner("DELETE FROM audit_checkpoint")
    AuditCheckpoint.objects.create(
        size=size, root=forged_root(), at=checkpoints.database_now(), key_id="0" * 64, note=note
    )


def bad_signature() -> None:
    latest = checkpoints.latest()
    assert latest
    made_up = notes.sign(replace(latest, root=forged_root()), SigningKey(latest.origin, bytes(32)))
    put_checkpoint(made_up.replace(str(SigningKey(latest.origin, bytes(32)).public), str(latest.key)))


def other_key() -> None:
    latest = checkpoints.latest()
    assert latest
    put_checkpoint(notes.sign(replace(latest, root=forged_root()), SigningKey(latest.origin, bytes(32))))


FORGERIES: dict[str, Callable[[], None]] = {
    "a made-up row with a bad signature": bad_signature,
    "a row that another key has signed": other_key,
    "a row without a note": lambda: put_checkpoint("nothing"),
    "the old checkpoint": lambda: None,
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_root_is_not_signed(forgery: str, running: Sequencer) -> None:
    as_owner(*REWRITE)
    FORGERIES[forgery]()
    forged = AuditCheckpoint.objects.get()
    record_events(2)
    for candidate in (Sequencer(), running):
        # One that starts now, and one that has verified the log before it was rewritten.
        with pytest.raises(TreeRewritten, match="Nothing is signed"):
            candidate.step(is_last=True)
    assert AuditCheckpoint.objects.get() == forged
    assert (AuditLeaf.objects.count(), AuditPending.objects.count()) == (SIZE, 2)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_broken_variant_signs_it(forgery: str, running: Sequencer) -> None:
    as_owner(*REWRITE)
    FORGERIES[forgery]()
    record_events(2)
    batch = BelievesTheDatabase().step(is_last=True)
    assert batch
    assert batch.checkpoint
    assert batch.checkpoint.root == forged_root()


@pytest.mark.parametrize(
    "change",
    [
        ("DELETE FROM audit_checkpoint",),
        (f"DELETE FROM audit_leaf WHERE index >= {SIZE - 3}",),
        (f"UPDATE audit_leaf SET hash = sha256('forged') WHERE index = {SIZE - 1}",),
        ("UPDATE audit_leaf SET hash = sha256('forged') WHERE index = 0",),
    ],
    ids=["no checkpoint", "shorter", "last leaf", "first leaf"],
)
def test_running_process_remembers_what_it_has_verified(running: Sequencer, change: tuple[str, ...]) -> None:
    as_owner(*change)
    record_events(1)
    with pytest.raises(TreeRewritten):
        running.step(is_last=True)
    assert not AuditCheckpoint.objects.filter(size__gt=SIZE).exists()


LEAF = "INSERT INTO audit_leaf (index, event_number, hash) SELECT {index}, max(number), {hash} FROM audit_event"
UNSIGNED_LEAVES = {
    "of nothing": (LEAF.format(index=SIZE + 3, hash="sha256('forged')"), SIZE + 3),
    "without an event": (
        f"INSERT INTO audit_leaf (index, event_number, hash) VALUES ({SIZE + 3}, 999999999, sha256('forged'))",
        SIZE + 3,
    ),
    "changed": (f"UPDATE audit_leaf SET hash = sha256('forged') WHERE index = {SIZE + 1}", SIZE + 1),
    "whose event was changed": (
        "UPDATE audit_event SET outcome = 'failed' WHERE number ="
        f" (SELECT event_number FROM audit_leaf WHERE index = {SIZE + 1})",
        SIZE + 1,
    ),
}


@pytest.mark.parametrize("case", UNSIGNED_LEAVES)
def test_leaf_of_another_process_is_compared_with_its_event(
    case: str, running: Sequencer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest checkpoint does not cover it, so no root contradicts it."""
    monkeypatch.setattr(verified_tree, "MOST_EVENTS", 2)
    write_events(3)
    assert Sequencer().step()
    assert AuditCheckpoint.objects.count() == 1
    statement, index = UNSIGNED_LEAVES[case]
    if index == SIZE + 3:
        write_events(1)
    as_owner(statement)
    for candidate in (Sequencer(), running):
        with pytest.raises(TreeRewritten, match=f"The leaf of the audit log at {index} is not signed yet"):
            candidate.step(is_last=True)
    assert AuditCheckpoint.objects.count() == 1


@pytest.mark.parametrize("change", [f"size = {SIZE + 2}", "root = sha256('forged')"])
def test_row_of_a_checkpoint_that_differs_from_its_note_stops_it(running: Sequencer, change: str) -> None:
    as_owner(f"UPDATE audit_checkpoint SET {change}")
    record_events(1)
    for candidate in (Sequencer(), running):
        with pytest.raises(TreeRewritten, match="was signed for size 12 or another root"):
            candidate.step(is_last=True)


def test_changed_node_stops_it(running: Sequencer) -> None:
    write_events(300)
    running.step(is_last=True)
    as_owner("UPDATE audit_node SET hash = sha256('forged')")
    record_events(1)
    with pytest.raises(TreeRewritten, match="have changed since they were verified"):
        running.step(is_last=True)


def test_anchor_on_this_machine_is_compared_at_the_start(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody with the signing key has signed a rewritten log: the signature is good, and the anchor knows better."""
    settings.ANCHOR_PATH = tmp_path / "anchor.jsonl"
    write_events(SIZE)
    Sequencer().step(is_last=True)
    assert [made.outcome for made in anchors.publish()] == ["anchored"]
    as_owner(*REWRITE)
    latest = checkpoints.latest()
    assert latest
    key = checkpoints.signer(latest)
    assert key
    put_checkpoint(notes.sign(replace(latest, root=forged_root()), key))
    record_events(1)
    with pytest.raises(TreeRewritten, match=f"has another root for size {SIZE}"):
        Sequencer().step(is_last=True)
    monkeypatch.setattr(anchors, "newest_local", lambda *_: [])
    assert Sequencer().step(is_last=True), "nothing else would have stopped it"


def test_leaves_of_other_processes_are_read_once(running: Sequencer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on from its own tree, in small reads, and compares the root that the other has signed."""
    monkeypatch.setattr(verified_tree, "MOST_LEAVES", 5)
    other = Sequencer()
    for _ in range(3):
        write_events(7)
        other.step(is_last=True)
    read: list[tuple[int, int]] = []
    leaves = tree_store.leaves

    def note_read(start: int, stop: int) -> Iterator[bytes]:
        read.append((start, stop))
        return leaves(start, stop)

    monkeypatch.setattr(tree_store, "leaves", note_read)
    record_events(1)
    batch = running.step(is_last=True)
    assert batch
    assert batch.checkpoint
    assert read == [(12, 17), (17, 22), (22, 27), (27, 32), (32, 33)]
    read.clear()
    record_events(1)
    running.step(is_last=True)
    assert read == []
    assert_sequenced()


def test_process_without_a_key_sequences_and_checks_no_signature(settings: Settings) -> None:
    write_events(SIZE)
    Sequencer().step(is_last=True)
    settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
    write_events(3)
    batch = Sequencer().step(is_last=True)
    assert batch
    assert (batch.size, batch.checkpoint) == (SIZE + 3, None)


def test_key_that_was_lost_is_continued_once_it_is_trusted(running: Sequencer, settings: Settings) -> None:
    latest = checkpoints.latest()
    assert latest
    settings.SIGNING_KEY = bytes(32)
    record_events(1)
    with pytest.raises(TreeRewritten, match="list its public key in MEMADMIN_TRUSTED_KEYS"):
        Sequencer().step()
    settings.TRUSTED_KEYS = [str(latest.key)]
    batch = Sequencer().step()
    assert batch
    assert batch.checkpoint


def test_stop_is_shown_until_the_log_is_signed_again(running: Sequencer) -> None:
    client = signed_in(person("auditor"))
    as_owner("UPDATE audit_leaf SET hash = sha256('forged') WHERE index = 0")
    for _ in range(2):
        with pytest.raises(TreeRewritten):
            Sequencer().step(is_last=True)
    assert AuditVerdict.objects.count() == 1
    assert [problem.code for problem in status.log_status().problems] == ["stopped", "not_anchored"]
    assert status.latest_verdict() is None
    page = client.get(reverse("audit:list")).text
    assert "do not yield the signed root of size 12" in page
    assert "alert-danger" in page
    [finding] = [finding for finding in operation.log() if finding.check == "log-stopped"]
    assert finding.level == "error"
    assert "Run verify_audit" in finding.hint
    with pytest.raises(CommandError, match="Nothing is signed"):
        call_command("sequence_audit", once=True)
    as_owner(
        "UPDATE audit_leaf SET hash = (SELECT hash FROM audit_leaf WHERE index = 1) WHERE index = 0",
    )
    AuditVerdict.objects.update(at=checkpoints.database_now())
    put_checkpoint(signed_anew())
    assert Sequencer().step(is_last=True)
    assert "stopped" not in [problem.code for problem in status.log_status().problems]


def signed_anew() -> str:
    """A good note over what is stored now, as if an operator had restored the log."""
    latest = checkpoints.latest()
    assert latest
    key = checkpoints.signer(latest)
    assert key
    return notes.sign(replace(latest, root=forged_root(), at=checkpoints.database_now()), key)


def test_running_sequencer_logs_it_once(
    running: Sequencer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequencer, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(sequencer, "TICK_SECONDS", 0)
    as_owner("UPDATE audit_leaf SET hash = sha256('forged') WHERE index = 0")
    turns, stop = threading.Semaphore(0), threading.Event()
    note_stop = verified_tree.note_stop

    def note_stop_and_count(problem: TreeRewritten) -> None:
        note_stop(problem)
        turns.release()

    monkeypatch.setattr(verified_tree, "note_stop", note_stop_and_count)
    with somebody_else() as start:
        working = start(lambda: Sequencer().run(stop))
        for _ in range(3):
            assert turns.acquire(timeout=30)
        stop.set()
        working.result(30)
    assert sum("do not yield" in record.message for record in caplog.records if record.levelname == "ERROR") == 1
