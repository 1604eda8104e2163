"""Every committed event gets one place, whatever order transactions commit in and however many sequencers there are."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection
from pytest_django import Settings

from memadmin.audit.models import AuditCheckpoint, AuditDetail, AuditEvent, AuditLeaf, AuditNode, AuditPending
from memadmin.audit.transparency import checkpoints, epochs, keys, sequencer, tree_store
from memadmin.audit.transparency.canonical import leaf_of
from memadmin.audit.transparency.notes import verified
from memadmin.audit.transparency.sequencer import Batch, Sequencer
from memadmin.audit.transparency.tree import Frontier, includes, inclusion_proof
from tests.audit.events import another_connection, as_owner, assert_sequenced, insert_event, record_events
from tests.meanwhile import somebody_else, wait_until_blocked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_log")]


class FollowsTheHighestNumber(Sequencer):
    """The broken variant that everybody writes first: takes what is numbered above what it has taken."""

    def _pending(self, most: int) -> list[int]:
        last = AuditLeaf.objects.order_by("-event_number").values_list("event_number", flat=True).first() or 0
        above = AuditEvent.objects.filter(number__gt=last).order_by("number")[:most]
        return list(above.values_list("number", flat=True))


class AsksNobody(Sequencer):
    """The broken variant without a leader."""

    def _may_lead(self) -> bool:
        return True


def test_events_get_places_in_the_order_of_their_transaction() -> None:
    ids = record_events(5)
    batch = Sequencer().step()
    assert batch
    assert [event.id for event in batch.events] == list(map(str, ids))
    assert batch.size == 5
    events = {event.number: event for event in AuditEvent.objects.all()}
    for leaf in AuditLeaf.objects.all():
        assert bytes(leaf.hash) == leaf_of(events[leaf.event_number])
    assert_sequenced()


def test_places_go_on_where_they_ended() -> None:
    for count in (1, 300, 2):
        record_events(count)
        Sequencer().step()
    assert tree_store.size() == 303
    assert_sequenced()


def test_one_candidate_goes_on_where_another_ended() -> None:
    """Each remembers the tree that it has verified, and appends what the other has added."""
    one, other = Sequencer(), Sequencer()
    for candidate in (one, one, other, one, other, other, one):
        record_events(3)
        candidate.step()
    assert_sequenced()
    leaves = [bytes(hash_) for hash_ in AuditLeaf.objects.order_by("index").values_list("hash", flat=True)]
    batch = one.step(is_last=True)
    assert batch
    assert batch.checkpoint
    tree = Frontier()
    for leaf in leaves:
        tree.append(leaf)
    assert batch.checkpoint.root == tree.root()


def test_what_was_rolled_back_has_not_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    sequencing = Sequencer()
    record_events(3)
    sequencing.step()
    record_events(1)
    monkeypatch.setattr(sequencing, "_take_from_queue", lambda numbers: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sequencing.step()
    monkeypatch.undo()
    sequencing.finish()
    assert_sequenced()
    assert tree_store.edge().root() == verified(AuditCheckpoint.objects.get(size=4).note).root


def test_what_is_stored_proves_every_event() -> None:
    record_events(600)
    Sequencer().step()
    leaves = [bytes(hash_) for hash_ in AuditLeaf.objects.order_by("index").values_list("hash", flat=True)]
    tree = Frontier()
    nodes = [(node.level, node.index, node.hash) for leaf in leaves for node in tree.append(leaf)]
    assert [(node.level, node.index, bytes(node.hash)) for node in AuditNode.objects.order_by("index")] == nodes
    assert tree_store.edge().root() == tree.root()
    for index in (0, 255, 256, 599):
        assert includes(tree.root(), 600, index, leaves[index], inclusion_proof(index, 600, tree_store.read))


def test_a_batch_has_a_limit_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequencer, "MOST_EVENTS", 10)
    record_events(25)
    batches = []
    while (batch := Sequencer().step()) and batch.is_full:
        batches.append(batch.size)
    assert batches == [10, 20]
    assert tree_store.size() == 25
    assert_sequenced()


def late_commit(candidate: Sequencer) -> None:
    """A transaction that began first commits last."""
    with another_connection() as slow, another_connection() as quick:
        insert_event(slow)
        insert_event(quick)
        quick.commit()
        candidate.step()
        assert tree_store.size() == 1
        slow.commit()
        candidate.step()


def test_a_transaction_that_commits_late_gets_its_place() -> None:
    late_commit(Sequencer())
    assert tree_store.size() == 2
    assert_sequenced()


def test_following_the_highest_number_loses_it() -> None:
    late_commit(FollowsTheHighestNumber())
    assert tree_store.size() == 1
    assert AuditPending.objects.count() == 1


def test_what_is_rolled_back_gets_no_place() -> None:
    with another_connection() as beside:
        insert_event(beside)
        beside.rollback()
    record_events(1)
    Sequencer().step()
    assert tree_store.size() == 1
    assert_sequenced()


class TakesOutEventsAlone(Sequencer):
    """The broken variant that leaves what it has no event for."""

    def _take_from_queue(self, numbers: list[int]) -> None:
        super()._take_from_queue([event.number for event in tree_store.written(numbers)])


def insert_what_gives_way(count: int) -> None:
    """That many events by an id that one has: each is numbered and queued, and is not there."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_event (id, type) SELECT id, 'test.tried' FROM audit_event, generate_series(1, %s)"
            " ON CONFLICT DO NOTHING",
            [count],
        )


def test_an_insert_that_gives_way_leaves_nothing_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequencer, "MOST_EVENTS", 3)
    record_events(1)
    insert_what_gives_way(5)
    record_events(1)
    assert (AuditEvent.objects.count(), AuditPending.objects.count()) == (2, 7)
    batches = []
    while (batch := Sequencer().step()) and batch.is_full:
        batches.append((batch.size, len(batch.events)))
    # In the second there was no event, and more waited behind it.
    assert batches == [(1, 1), (1, 0)]
    assert_sequenced()


def test_taking_out_events_alone_leaves_it_there_for_ever() -> None:
    record_events(1)
    insert_what_gives_way(2)
    TakesOutEventsAlone().step()
    assert tree_store.size() == 1
    assert AuditPending.objects.count() == 2


def test_only_one_candidate_works_at_a_time() -> None:
    record_events(1)
    with another_connection() as leader:
        leader.execute("SELECT pg_advisory_xact_lock(%s)", [epochs.LOCK])
        assert Sequencer().step() is None
        assert tree_store.size() == 0
        leader.rollback()
    assert Sequencer().step() is not None
    assert_sequenced()


def test_without_a_leader_two_collide_and_the_unique_index_keeps_the_tree() -> None:
    """The lock keeps candidates out of each other's way; that there are no two leaves in one place is a constraint."""
    record_events(3)
    with somebody_else() as start, another_connection() as first:
        first.execute("INSERT INTO audit_leaf (index, event_number, hash) VALUES (0, 0, sha256(''))")
        second = start(AsksNobody().step)
        wait_until_blocked(second)
        first.commit()
        with pytest.raises(IntegrityError, match="audit_leaf"):
            second.result()
    assert tree_store.size() == 1
    assert AuditPending.objects.count() == 3


def test_leaves_and_the_queue_change_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at any moment before the commit, a sequencer has done nothing."""
    record_events(3)

    def fail(*given: Any, **named: Any) -> None:
        raise OperationalError("the connection is gone")

    monkeypatch.setattr(checkpoints, "database_now", fail)
    with pytest.raises(OperationalError):
        Sequencer().step()
    assert (tree_store.size(), AuditPending.objects.count()) == (0, 3)
    monkeypatch.undo()
    Sequencer().step()
    assert_sequenced()


def test_the_first_events_are_signed_at_once_and_the_next_within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    record_events(2)
    first = Sequencer().step()
    assert first
    assert first.checkpoint
    record_events(1)
    assert_no_checkpoint(Sequencer().step())
    now = checkpoints.database_now()
    monkeypatch.setattr(checkpoints, "database_now", lambda: now + timedelta(seconds=61))
    later = Sequencer().step()
    assert later
    assert later.checkpoint
    assert later.checkpoint.size == 3
    # Nothing new, so nothing to sign, however much time goes by.
    monkeypatch.setattr(checkpoints, "database_now", lambda: now + timedelta(days=1))
    assert_no_checkpoint(Sequencer().step())


def test_many_events_are_signed_before_the_minute_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MOST_EVENTS", 10)
    record_events(1)
    Sequencer().step()
    record_events(9)
    assert_no_checkpoint(Sequencer().step())
    record_events(1)
    batch = Sequencer().step()
    assert batch
    assert batch.checkpoint


def assert_no_checkpoint(batch: Batch | None) -> None:
    assert batch
    assert batch.checkpoint is None


def test_a_checkpoint_signs_the_root_that_the_leaves_have() -> None:
    record_events(7)
    Sequencer().step()
    row = AuditCheckpoint.objects.get()
    checkpoint = verified(row.note)
    assert (checkpoint.size, checkpoint.epoch, checkpoint.replaced) == (7, 1, None)
    assert checkpoint.root == bytes(row.root) == tree_store.edge().root()
    assert row.key_id == checkpoint.key.id
    assert row.at == checkpoint.at


def test_all_checkpoints_of_a_log_have_one_origin() -> None:
    for _ in range(3):
        record_events(1)
        Sequencer().finish()
    assert len({verified(note).origin for note in AuditCheckpoint.objects.values_list("note", flat=True)}) == 1


def test_without_a_key_events_get_their_places_and_no_checkpoint(settings: Settings) -> None:
    settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
    record_events(2)
    assert_no_checkpoint(Sequencer().finish())
    assert_sequenced()


class TestAnotherKey:
    OLD, NEW = bytes(range(32)), bytes(range(1, 33))

    @pytest.fixture(autouse=True)
    def log_of_the_old_key(self, empty_log: None, settings: Settings) -> None:
        settings.SIGNING_KEY = self.OLD
        record_events(3)
        Sequencer().step()

    def test_is_an_event_and_signed_in_by_the_key_before_it(self, settings: Settings) -> None:
        old = checkpoints.latest()
        assert old
        settings.SIGNING_KEY, settings.SIGNING_KEY_BEFORE = self.NEW, self.OLD
        batch = Sequencer().step()
        assert batch
        assert [(event.type, event.reason) for event in batch.events] == [("key.rotated", "signed_in")]
        row = AuditCheckpoint.objects.get(size=4)
        checkpoint = verified(row.note, [old.key])
        new = keys.signing_key(old.origin)
        assert new
        assert checkpoint.key == new.public
        assert str(new.public) in AuditDetail.objects.get().details

    def lose_the_old_key(self, settings: Settings) -> None:
        """All that is left of it is its public half, which the operator lists."""
        old = checkpoints.latest()
        assert old
        settings.SIGNING_KEY, settings.TRUSTED_KEYS = self.NEW, [str(old.key)]

    def test_leaves_the_old_notes_as_good_as_they_were(self, settings: Settings) -> None:
        self.lose_the_old_key(settings)
        Sequencer().step()
        old, new = (verified(note) for note in AuditCheckpoint.objects.order_by("size").values_list("note", flat=True))
        assert old.key != new.key

    def test_is_said_once(self, settings: Settings) -> None:
        self.lose_the_old_key(settings)
        for _ in range(3):
            Sequencer().step()
        assert AuditEvent.objects.filter(type="key.rotated").values_list("reason_code", flat=True).get() == (
            "not_signed_in"
        )

    def test_cannot_be_signed_in_by_any_other(self, settings: Settings) -> None:
        self.lose_the_old_key(settings)
        settings.SIGNING_KEY_BEFORE = bytes(range(2, 34))
        batch = Sequencer().step()
        assert batch
        assert [event.reason for event in batch.events] == ["not_signed_in"]


def test_running_takes_what_comes_and_signs_the_rest_at_the_end() -> None:
    stop = threading.Event()
    with somebody_else() as start:
        running = start(lambda: Sequencer().run(stop))
        for _ in range(3):
            record_events(2)
            while AuditPending.objects.exists():
                assert not running.done()
        stop.set()
        running.result(30)
    assert_sequenced()
    assert AuditCheckpoint.objects.filter(size=6).exists()


def test_running_survives_the_loss_of_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    stop = threading.Event()
    with somebody_else() as start:
        running = start(lambda: Sequencer().run(stop))
        record_events(1)
        while AuditPending.objects.exists():
            assert not running.done()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        record_events(1)
        while AuditPending.objects.exists():
            assert not running.done()
        stop.set()
        running.result(30)
    assert_sequenced()


def test_running_survives_a_tree_that_somebody_damaged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be appended to it, and whoever runs the worker is told so; its jobs go on."""
    monkeypatch.setattr(sequencer, "PAUSE_SECONDS", 0.01)
    record_events(3)
    Sequencer().step()
    as_owner("DELETE FROM audit_leaf WHERE index = 1")
    record_events(1)
    stop = threading.Event()
    with somebody_else() as start:
        running = start(lambda: Sequencer().run(stop))
        while "Run verify_audit" not in caplog.text:
            assert not running.done()
        stop.set()
        running.result(30)
    assert AuditPending.objects.count() == 1


def test_the_oldest_unsequenced_event_tells_how_far_behind_we_are() -> None:
    assert sequencer.oldest_unsequenced() is None
    record_events(2)
    waiting = sequencer.oldest_unsequenced()
    assert waiting
    assert timedelta(0) < waiting < timedelta(minutes=5)
    Sequencer().step()
    assert sequencer.oldest_unsequenced() is None
