"""What can be done to a log, and what the verifier calls it: in the database, and in the file of an export.

Each attack is done by whoever owns the tables to a log brought back to its first state, and the verifier has to
give it its name and nothing else that would send a reader somewhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from threading import Event as Flag

import pytest
from django.db import connection, transaction
from django.test import override_settings
from psycopg.conninfo import make_conninfo
from pytest_django import DjangoDbBlocker, Settings

from memadmin import audit
from memadmin.audit.log.actors import Actor
from memadmin.audit.models import AuditActor, AuditAnchor, AuditCheckpoint, AuditEvent, AuditLeaf, AuditVerdict
from memadmin.audit.transparency import anchors, checkpoints, keys, log_export, verification, verifier
from memadmin.audit.transparency.notes import Checkpoint, sign
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.audit.transparency.verifier import Report, notes_in
from tests.audit.conftest import LOG
from tests.audit.events import (
    TRIED,
    another_connection,
    as_owner,
    back_up,
    bring_back,
    drop_backup,
    earlier_state,
    insert_event,
    record_events,
    write_events,
)
from tests.flushing import empty
from tests.people import person
from tests.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("log")]

Lines = list[str]

DSN = ("host", "port", "user", "password", "dbname")

SIZE = 70
"""Of the log: seven checkpoints, each over ten more events."""


@dataclass(frozen=True)
class SignedLog:
    """A log that is signed every ten events, up to its end, and anchored there; it can be brought back."""

    anchor: Path
    notes: str
    """In the anchor's file."""

    def bring_back(self) -> Path:
        bring_back("signed")
        self.anchor.write_text(self.notes)
        return self.anchor


@pytest.fixture(scope="module")
def signed_log(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SignedLog]:
    """Made once: signing and anchoring take longer than most attacks."""
    anchor = tmp_path_factory.mktemp("log") / "anchor.jsonl"
    with django_db_blocker.unblock():
        empty(LOG)
        with override_settings(ANCHOR_PATH=anchor):
            for _ in range(SIZE // 10):
                write_events(9)
                with transaction.atomic():
                    audit.record(TRIED, details={"reason": "they asked for it"})
                Sequencer().finish()
                anchors.publish()
        back_up("signed")
        empty(LOG)
    yield SignedLog(anchor, anchor.read_text())
    with django_db_blocker.unblock():
        drop_backup("signed")


@pytest.fixture
def log(signed_log: SignedLog, transactional_db: None, settings: Settings) -> Path:
    """The signed log, as it was made; gives the anchor's file."""
    settings.ANCHOR_PATH = signed_log.anchor
    return signed_log.bring_back()


def wait_until_longer_than(size: int) -> None:
    wait_until(lambda: AuditLeaf.objects.count() > size, f"something is written after the first {size}")


def without_waiting(seconds: float) -> None:
    """Nothing happens meanwhile, so there is nothing to wait for."""


def verify() -> Report:
    return verification.verify(wait=without_waiting)


def verify_export(anchor: Path | None) -> Report:
    return verify_lines(list(log_export.as_json_lines(with_details=True)), anchor)


def verify_lines(lines: Lines, anchor: Path | None) -> Report:
    return verifier.verify_export(lines, anchors=notes_in(anchor.read_text()) if anchor else [])


def kinds(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings}


def number_at(index: int) -> str:
    return f"(SELECT event_number FROM audit_leaf WHERE index = {index})"


DELETE_EVENT_AT_17 = f"DELETE FROM audit_event WHERE number = {number_at(17)}"
DELETE_LEAF_AT_17 = "DELETE FROM audit_leaf WHERE index = 17"
CLOSE_GAP_AT_17 = (
    # In two steps, else the rows would collide on their way.
    "UPDATE audit_leaf SET index = index + 1000 WHERE index > 17",
    "UPDATE audit_leaf SET index = index - 1001 WHERE index > 1000",
)
MAKE_ROOM_AT_17 = (
    "UPDATE audit_leaf SET index = index + 1000 WHERE index >= 17",
    "UPDATE audit_leaf SET index = index - 999 WHERE index > 1000",
)
INSERT_EVENT = (
    "INSERT INTO audit_event (id, type, at, actor_kind, actor_ref, role_ref)"
    " SELECT memadmin_uuid7(), type, at, actor_kind, actor_ref, role_ref FROM audit_event"
    f" WHERE number = {number_at(17)}"
)
NEWEST = "(SELECT max(number) FROM audit_event)"


def swap(one: int, other: int, columns: str = "event_number, hash") -> tuple[str, ...]:
    """Exchanges what two leaves hold; through a number that no event has, because numbers are unique."""
    named = columns.split(", ")
    values = ", ".join(f"{column} = was.{column}" for column in named)
    return (
        "CREATE TEMP TABLE was ON COMMIT DROP AS SELECT * FROM audit_leaf",
        f"UPDATE audit_leaf SET event_number = -index WHERE index IN ({one}, {other})",
        f"UPDATE audit_leaf SET {values} FROM was WHERE audit_leaf.index = {other} AND was.index = {one}",
        f"UPDATE audit_leaf SET {values} FROM was WHERE audit_leaf.index = {one} AND was.index = {other}",
    )


ATTACKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "an event is changed": (
        "edited_body",
        (f"UPDATE audit_event SET outcome = 'denied' WHERE number = {number_at(17)}",),
    ),
    "somebody else is named": (
        "edited_body",
        (f"UPDATE audit_event SET actor_ref = gen_random_uuid() WHERE number = {number_at(17)}",),
    ),
    "events of three stretches are changed": (
        "edited_body",
        (
            "UPDATE audit_event SET at = at + interval '1 millisecond' WHERE number IN"
            " (SELECT event_number FROM audit_leaf WHERE index IN (3, 17, 18, 55))",
        ),
    ),
    "a leaf is changed": ("edited_leaf", ("UPDATE audit_leaf SET hash = sha256('x') WHERE index = 17",)),
    "some leaves are changed": (
        "edited_leaf",
        ("UPDATE audit_leaf SET hash = sha256('x') WHERE index IN (3, 17, 18)",),
    ),
    "details are changed": (
        "edited_details",
        (
            """UPDATE audit_detail SET details = '{"reason":"no reason"}'"""
            f" WHERE event_id = (SELECT id FROM audit_event WHERE number = {number_at(19)})",
        ),
    ),
    "details are deleted": (
        "deleted_details",
        (f"DELETE FROM audit_detail WHERE event_id = (SELECT id FROM audit_event WHERE number = {number_at(19)})",),
    ),
    "an event is deleted": ("deletion", (DELETE_EVENT_AT_17,)),
    "a leaf is deleted": ("deletion", (DELETE_LEAF_AT_17,)),
    "some leaves are deleted": ("deletion", ("DELETE FROM audit_leaf WHERE index IN (17, 18, 42)",)),
    "an event is deleted with its leaf": ("deletion", (DELETE_EVENT_AT_17, DELETE_LEAF_AT_17)),
    "some events are deleted with their leaves": (
        "deletion",
        (
            "DELETE FROM audit_event WHERE number IN"
            " (SELECT event_number FROM audit_leaf WHERE index BETWEEN 15 AND 25)",
            "DELETE FROM audit_leaf WHERE index BETWEEN 15 AND 25",
        ),
    ),
    "a leaf is deleted and the gap closed": ("deletion", (DELETE_LEAF_AT_17, *CLOSE_GAP_AT_17)),
    "an event is deleted with its leaf and the gap closed": (
        "deletion",
        (DELETE_EVENT_AT_17, DELETE_LEAF_AT_17, *CLOSE_GAP_AT_17),
    ),
    "the end is cut off": (
        "cut_tail",
        (
            "DELETE FROM audit_event WHERE number IN (SELECT event_number FROM audit_leaf WHERE index >= 66)",
            "DELETE FROM audit_leaf WHERE index >= 66",
        ),
    ),
    "the leaves at the end are cut off": ("cut_tail", ("DELETE FROM audit_leaf WHERE index >= 66",)),
    "an event is put in and what follows moved up": (
        "insertion",
        (
            INSERT_EVENT,
            *MAKE_ROOM_AT_17,
            f"INSERT INTO audit_leaf (index, event_number, hash) SELECT 17, {NEWEST}, sha256('x')",
        ),
    ),
    "an event is put in without a place": ("insertion", (INSERT_EVENT,)),
    "neighbours change places": ("reordering", swap(16, 17)),
    "events change places over a checkpoint": ("reordering", swap(17, 44)),
    "leaves are given to each other's events": ("reordering", swap(12, 17, "event_number")),
    "a leaf stands there twice": (
        "duplicate",
        (
            "ALTER TABLE audit_leaf DROP CONSTRAINT audit_leaf_event_number_key",
            f"INSERT INTO audit_leaf SELECT {SIZE}, event_number, hash FROM audit_leaf WHERE index = 17",
        ),
    ),
    "a place is given twice": (
        "duplicate",
        (
            "ALTER TABLE audit_leaf DROP CONSTRAINT audit_leaf_pkey",
            INSERT_EVENT,
            f"INSERT INTO audit_leaf SELECT 17, {NEWEST}, hash FROM audit_leaf WHERE index = 17",
        ),
    ),
    "a leaf says that it stands far away": (
        "forged_index",
        ("UPDATE audit_leaf SET index = 1000000 WHERE index = 17",),
    ),
    "a leaf says that it stands at the end": (
        "forged_index",
        (f"UPDATE audit_leaf SET index = {SIZE} WHERE index = 17",),
    ),
    "a leaf says that it stands before the first": (
        "forged_index",
        (
            "ALTER TABLE audit_leaf DROP CONSTRAINT audit_leaf_index",
            "UPDATE audit_leaf SET index = -5 WHERE index = 17",
        ),
    ),
    "a checkpoint gets another root": (
        "forged_checkpoint",
        ("UPDATE audit_checkpoint SET root = sha256('x') WHERE size = 30",),
    ),
    "the first and the last note are destroyed": (
        "forged_checkpoint",
        (f"UPDATE audit_checkpoint SET note = 'x' WHERE size IN (10, {SIZE})",),
    ),
    "a note is changed": (
        "forged_checkpoint",
        ("UPDATE audit_checkpoint SET note = replace(note, 'epoch 1', 'epoch 2') WHERE size = 30",),
    ),
}


class TestAHealthyLog:
    def test_gives_no_finding(self, log: Path) -> None:
        for report in (verify(), verify_export(log)):
            assert (report.verdict, report.findings, report.size) == ("ok", [], SIZE)
            assert report.anchored_size == SIZE
            assert report.root == bytes(AuditCheckpoint.objects.get(size=SIZE).root).hex()

    def test_is_not_said_to_be_proved_where_nobody_outside_knows_it(self, settings: Settings) -> None:
        settings.ANCHOR_PATH = None
        assert verify().verdict == verify_export(None).verdict == "unanchored"

    def test_gives_none_with_newer_events_of_every_state(self, log: Path) -> None:
        record_events(3)
        Sequencer().step()
        record_events(2)
        report = verify()
        assert (report.verdict, report.findings, report.size) == ("ok", [], SIZE + 3)
        # A file is as unsigned as it was, whenever it is read.
        report = verify_export(log)
        assert (report.verdict, report.signed, report.unsigned) == ("unsigned", SIZE, 5)
        report = verify_lines(list(log_export.as_json_lines(only_signed=True)), log)
        assert (report.verdict, report.findings, report.size) == ("ok", [], SIZE)

    def test_gives_none_when_a_checkpoint_comes_meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        record_events(1)
        Sequencer().step()
        monkeypatch.setattr(verifier, "LONGEST_UNSIGNED", timedelta(0))
        assert kinds(verify()) == {"unsigned"}

        def sign(seconds: float) -> None:
            Sequencer().finish()

        report = verification.verify(wait=sign)
        assert (report.verdict, report.findings) == ("ok", [])

    def test_gives_none_while_it_is_written(self, log: Path) -> None:
        """Writers, some of them slow and some of them giving up, a sequencer, and the verifier again and again."""
        stop = Flag()
        reports: list[Report] = []

        def write(seed: int) -> None:
            with another_connection() as beside:
                while not stop.is_set():
                    insert_event(beside)
                    stop.wait(seed * 0.01)
                    if seed == 2:
                        beside.rollback()
                    else:
                        beside.commit()

        with ThreadPoolExecutor(5) as threads:
            sequencing = threads.submit(Sequencer().run, stop)
            writing = [threads.submit(write, seed) for seed in range(4)]
            try:
                for turn in range(7):
                    wait_until_longer_than(reports[-1].size if reports else SIZE)
                    reports.append(verify() if turn < 5 else verify_export(log))
            finally:
                stop.set()
            for each in (sequencing, *writing):
                each.result()
        assert [report.findings for report in reports[:5]] == [[]] * 5
        assert all(kinds(report) <= {"unsigned"} for report in reports[5:])
        assert all(sooner.size < later.size for sooner, later in pairwise(reports))

    def test_keeps_each_verdict(self) -> None:
        verify()
        kept = AuditVerdict.objects.get()
        assert (kept.verdict, kept.size, kept.findings) == ("ok", SIZE, [])
        assert kept.root is not None
        assert bytes(kept.root) == bytes(AuditCheckpoint.objects.get(size=SIZE).root)


@contextmanager
def constraints() -> Iterator[None]:
    """Puts back what some attacks take away."""
    yield
    as_owner(
        "TRUNCATE audit_leaf",
        "ALTER TABLE audit_leaf DROP CONSTRAINT IF EXISTS audit_leaf_pkey",
        "ALTER TABLE audit_leaf ADD PRIMARY KEY (index)",
        "ALTER TABLE audit_leaf DROP CONSTRAINT IF EXISTS audit_leaf_event_number_key",
        "ALTER TABLE audit_leaf ADD CONSTRAINT audit_leaf_event_number_key UNIQUE (event_number)",
        "ALTER TABLE audit_leaf DROP CONSTRAINT IF EXISTS audit_leaf_index",
        "ALTER TABLE audit_leaf ADD CONSTRAINT audit_leaf_index CHECK (index >= 0) NOT VALID",
    )


def test_each_attack_is_named(signed_log: SignedLog, log: Path) -> None:
    for attack, (kind, statements) in ATTACKS.items():
        with constraints():
            as_owner(*statements)
            lines = list(log_export.as_json_lines(with_details=True))
            for report in (verify(), verify_lines(lines, log)):
                assert report.verdict == "broken", attack
                assert kinds(report) == {kind}, (attack, report.findings)
            # Also without the anchors: what was signed is enough to see it.
            assert kinds(verify_lines(lines, None)) == {kind}, attack
        signed_log.bring_back()


def test_a_key_that_signs_and_that_nobody_signed_in_is_named(log: Path, settings: Settings) -> None:
    lose_the_key(settings)
    record_events(1)
    Sequencer().finish()
    settings.TRUSTED_KEYS = []
    for report in (verify(), verify_export(log), verify_export(None)):
        assert report.verdict == "broken"
        assert kinds(report) == {"unknown_key"}, report.findings


def place_of(lines: Lines, index: int) -> int:
    """In the file, of the line of a leaf."""
    return next(place for place, line in enumerate(lines) if json.loads(line).get("index") == index)


def swap_lines(one: int, other: int) -> Callable[[Lines], None]:
    def attack(lines: Lines) -> None:
        here, there = place_of(lines, one), place_of(lines, other)
        lines[here], lines[there] = lines[there], lines[here]

    return attack


def move_lines(first: int, last: int, to: int) -> Callable[[Lines], None]:
    def attack(lines: Lines) -> None:
        moved = [lines.pop(place_of(lines, index)) for index in range(first, last + 1)]
        place = place_of(lines, to)
        lines[place:place] = moved

    return attack


def claim_place(index: int, claimed: int) -> Callable[[Lines], None]:
    def attack(lines: Lines) -> None:
        place = place_of(lines, index)
        lines[place] = json.dumps(json.loads(lines[place]) | {"index": claimed})

    return attack


def swap_far_apart(lines: Lines) -> None:
    """Each says that it stands where the other did."""
    here, there = place_of(lines, 12), place_of(lines, 61)
    one, other = json.loads(lines[here]), json.loads(lines[there])
    lines[here], lines[there] = json.dumps(other | {"index": 12}), json.dumps(one | {"index": 61})


def take_line(index: int) -> Callable[[Lines], None]:
    def attack(lines: Lines) -> None:
        del lines[place_of(lines, index)]

    return attack


def repeat_line(index: int, after: int) -> Callable[[Lines], None]:
    return lambda lines: lines.insert(place_of(lines, after) + 1, lines[place_of(lines, index)])


ATTACKS_ON_A_FILE: dict[str, tuple[str, Callable[[Lines], None]]] = {
    "neighbours": ("reordering", swap_lines(16, 17)),
    "two lines of one stretch": ("reordering", swap_lines(12, 17)),
    "two lines far apart": ("reordering", swap_lines(3, 66)),
    "the first and the last": ("reordering", swap_lines(0, SIZE - 1)),
    "two leaves far apart, with their places": ("reordering", swap_far_apart),
    "a block that was moved forward": ("reordering", move_lines(40, 44, to=17)),
    "a block that was moved back": ("reordering", move_lines(17, 21, to=44)),
    "a line with a later place": ("forged_index", claim_place(17, 66)),
    "a line with the next place": ("forged_index", claim_place(17, 18)),
    "a line with an earlier place": ("forged_index", claim_place(44, 17)),
    "a line with a place behind the end": ("forged_index", claim_place(17, SIZE + 5)),
    "a line that stands there again": ("duplicate", repeat_line(17, after=17)),
    "a line that stands there again far behind": ("duplicate", repeat_line(17, after=60)),
    "a line that is gone": ("deletion", take_line(17)),
}


def test_each_attack_on_a_file_is_named(log: Path) -> None:
    stored = list(log_export.as_json_lines(with_details=True))
    for attack, (kind, change) in ATTACKS_ON_A_FILE.items():
        lines = stored.copy()
        change(lines)
        for anchor in (log, None):
            report = verify_lines(lines, anchor)
            assert kinds(report) == {kind}, (attack, report.findings)


def test_lines_in_no_order_at_all_are_reordered_and_nothing_is_missed(log: Path) -> None:
    head, *leaves, end = log_export.as_json_lines()
    report = verifier.verify_export([head, *reversed(leaves), end], anchors=notes_in(log.read_text()))
    assert kinds(report) == {"reordering"}
    assert report.anchored_size == SIZE


def write_with_late_commits(turns: int) -> None:
    """Of each three events the first is committed after the next three."""
    for _ in range(turns):
        write_events(3)
        as_owner(
            "CREATE TABLE IF NOT EXISTS still_open (number bigint)",
            "INSERT INTO audit_pending SELECT number FROM still_open",
            "DELETE FROM still_open",
            f"INSERT INTO still_open VALUES ({NEWEST} - 2)",
            "DELETE FROM audit_pending WHERE number IN (TABLE still_open)",
        )
        Sequencer().step()
    as_owner("INSERT INTO audit_pending SELECT number FROM still_open", "DROP TABLE still_open")
    Sequencer().finish()
    anchors.publish()


def test_events_that_changed_places_are_named_also_where_many_came_late(log: Path) -> None:
    """Transactions that commit late break the order of numbers as well, more often than all breaks could be tried."""
    for _ in range(2):
        write_with_late_commits(40)
    assert verify().findings == []
    for one, other in [(17, 44), (12, SIZE + 230), (75, SIZE + 231)]:
        as_owner(*swap(one, other))
        for report in (verify(), verify_export(log)):
            assert kinds(report) == {"reordering"}, (one, other)
            named = [
                f"is at {place};" in found.detail for place, found in zip((one, other), report.findings, strict=True)
            ]
            assert all(named), (one, other, report.findings)
        as_owner(*swap(one, other))


def test_the_event_that_was_changed_is_named() -> None:
    for index in (0, 9, 10, 17, 69):
        number = AuditLeaf.objects.get(index=index).event_number
        as_owner(f"UPDATE audit_event SET outcome = 'failed' WHERE number = {number}")
        (finding,) = verify().findings
        event = AuditEvent.objects.get(number=number)
        assert (finding.kind, finding.event) == ("edited_body", str(event.id)), index
        as_owner(f"UPDATE audit_event SET outcome = 'succeeded' WHERE number = {number}")


def test_a_changed_event_is_seen_before_it_is_signed() -> None:
    record_events(1)
    Sequencer().step()
    as_owner(f"UPDATE audit_event SET outcome = 'failed' WHERE number = {NEWEST}")
    assert kinds(verify()) == {"edited_body"}


def test_a_clock_that_went_back_is_named(log: Path) -> None:
    """Nothing is wrong with the tree: the server's clock was put back while events were written."""
    as_owner(
        INSERT_EVENT,
        f"UPDATE audit_event SET at = at - interval '1 hour' WHERE number = {NEWEST}",
        f"INSERT INTO audit_pending VALUES ({NEWEST})",
    )
    Sequencer().finish()
    for report in (verify(), verify_export(log)):
        assert kinds(report) == {"clock_step_back"}
    assert len(report.findings) == 1


def test_a_transaction_that_took_long_is_no_clock_that_went_back(log: Path) -> None:
    with another_connection() as slow:
        number = insert_event(slow)
        record_events(1)
        Sequencer().step()
        slow.commit()
    as_owner(f"UPDATE audit_event SET at = at - interval '1 hour' WHERE number = {number}")
    Sequencer().finish()
    assert verify().findings == verify_export(log).findings == []


def write_anew(attack: str) -> None:
    """Somebody with the tables and the signing key changes the past and has everything made and signed again."""
    as_owner(
        attack,
        "INSERT INTO audit_pending SELECT number FROM audit_event",
        "DELETE FROM audit_leaf; DELETE FROM audit_node",
        "DELETE FROM audit_checkpoint",
    )
    with pytest.MonkeyPatch.context() as patching:
        # Our own sequencer would ask the anchor, and wait; theirs does not.
        patching.setattr(anchors, "configured", list)
        assert Sequencer().finish(), "nothing was written anew"


class TestALogThatWasWrittenAnew:
    @pytest.fixture(autouse=True)
    def same_origin(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The attacker signs under the name of the old log."""
        latest = audit_origin()
        monkeypatch.setattr(checkpoints, "signer", lambda before: keys.signing_key(latest))

    @pytest.mark.parametrize(
        "attack",
        [
            f"UPDATE audit_event SET outcome = 'failed' WHERE number = {number_at(17)}",
            DELETE_EVENT_AT_17,
        ],
    )
    def test_contradicts_the_anchor(self, attack: str, log: Path) -> None:
        write_anew(attack)
        assert "rewrite" in kinds(verify())
        assert kinds(verify_export(log)) & {"rewrite", "restored_backup"}

    def test_looks_whole_without_an_anchor(self) -> None:
        """Why there are anchors: this is the variant of the test above that finds nothing."""
        write_anew(f"UPDATE audit_event SET outcome = 'failed' WHERE number = {number_at(17)}")
        report = verify_export(None)
        assert (report.verdict, report.findings) == ("unanchored", [])

    def test_cannot_be_anchored_where_the_old_one_was(self) -> None:
        write_anew(f"UPDATE audit_event SET outcome = 'failed' WHERE number = {number_at(17)}")
        as_owner("DELETE FROM audit_anchor")
        assert [tried.outcome for tried in anchors.publish()] == ["refused"]

    def test_under_another_name_is_not_the_log_that_was_anchored(
        self, log: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(checkpoints, "signer", lambda before: keys.signing_key("memadmin/another"))
        write_anew("SELECT 'nothing is changed'")
        assert kinds(verify_export(log)) == {"rewrite"}

    def test_signed_by_another_key_is_seen_by_whoever_pinned_the_old_one(self, log: Path, settings: Settings) -> None:
        old = verifier.SignedCheckpoint.parse(AuditCheckpoint.objects.get(size=SIZE).note).key
        ours, settings.SIGNING_KEY, settings.ANCHOR_PATH = settings.SIGNING_KEY, bytes(32), None
        write_anew("SELECT 'nothing is changed'")
        lines = list(log_export.as_json_lines())
        assert kinds(verifier.verify_export(lines, pinned=[old])) == {"unknown_key"}
        # The installation itself pins the key that its worker has.
        settings.SIGNING_KEY = ours
        assert kinds(verify()) == {"unknown_key"}

    @pytest.mark.parametrize(("names_anchor", "found"), [(False, {"epoch", "rewrite"}), (True, {"epoch"})])
    def test_as_an_epoch_that_replaces_the_old_one_is_never_ok(
        self, names_anchor: bool, found: set[str], log: Path
    ) -> None:
        """Somebody with the signing key declares the history lost, and has the new one anchored."""
        old = verifier.SignedCheckpoint.parse(AuditCheckpoint.objects.get(size=SIZE).note)
        write_anew(f"UPDATE audit_event SET outcome = 'failed' WHERE number = {number_at(17)}")
        hashes = b"".join(bytes(leaf.hash) for leaf in AuditLeaf.objects.order_by("index"))
        key = keys.signing_key(old.origin)
        assert key
        as_owner("DELETE FROM audit_checkpoint")
        replaced = (old.size, old.root if names_anchor else bytes(32))
        for size in (10, SIZE):
            root = verifier.Tree().extend(hashes[: 32 * size]).root()
            at = checkpoints.database_now()
            stated = Checkpoint(key.name, size, root, at, key.public, 2, replaced if size == 10 else None)
            note = sign(stated, key)
            AuditCheckpoint.objects.create(size=size, root=root, at=at, key_id=key.public.id, note=note)
        with log.open("a") as file:
            file.write(json.dumps({"note": note}) + "\n")
        for report in (verify(), verify_export(log)):
            assert kinds(report) == found
            assert report.verdict == ("epoch" if names_anchor else "broken")


def audit_origin() -> str:
    return verifier.SignedCheckpoint.parse(AuditCheckpoint.objects.get(size=SIZE).note).origin


def test_a_restored_backup_is_named(log: Path) -> None:
    with earlier_state():
        record_events(12)
        Sequencer().finish()
        anchors.publish()
    for report in (verify(), verify_export(log)):
        assert kinds(report) == {"restored_backup"}
        assert f"size regressed from {SIZE + 12} to {SIZE}" in report.findings[0].detail


def test_a_backlog_is_named(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_events(2)
    as_owner(f"UPDATE audit_event SET at = at - interval '11 seconds' WHERE number >= {NEWEST} - 1")
    report = verify()
    assert kinds(report) == {"backlog"}
    assert {finding.event for finding in report.findings} == {
        str(event.id) for event in AuditEvent.objects.order_by("-number")[:2]
    }
    monkeypatch.setattr(log_export, "POLL_SECONDS", 11)
    monkeypatch.setattr("time.sleep", pass_time(monkeypatch))
    assert kinds(verify_export(log)) == {"backlog"}


def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sleeping as if it took its time."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        now[0] += seconds

    return sleep


def test_an_event_that_was_committed_late_is_no_backlog() -> None:
    """It is old, and was not there to be taken until now: the verifier looks again before it says anything."""
    record_events(1)
    as_owner(f"UPDATE audit_event SET at = at - interval '11 seconds' WHERE number = {NEWEST}")

    def sequence(seconds: float) -> None:
        Sequencer().step()

    report = verification.verify(wait=sequence)
    assert report.findings == []


class TestAFutureTime:
    """Events stay new for years with it, so it must not excuse a missing signature."""

    @pytest.fixture(autouse=True)
    def long_after(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every checkpoint so far is an old one."""
        monkeypatch.setattr(verifier, "LONGEST_UNSIGNED", timedelta(0))

    @pytest.mark.parametrize("at", ["2999-01-01", "10000-01-01"])
    def test_of_events_hides_none(self, at: str) -> None:
        record_events(1)
        as_owner(f"UPDATE audit_event SET at = '{at}' WHERE number = {NEWEST}")
        assert kinds(verify()) == {"backlog", "impossible_time"}
        Sequencer().step()
        # As a text, a year of five digits is before this one.
        assert kinds(verify()) == {"impossible_time"}

    def test_of_a_checkpoint_hides_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        record_events(1)
        with monkeypatch.context() as patching:
            tomorrow = checkpoints.database_now() + timedelta(days=1)
            patching.setattr(checkpoints, "database_now", lambda: tomorrow)
            Sequencer().finish()
        record_events(1)
        Sequencer().step()
        assert kinds(verify()) == {"unsigned"}

    def test_of_the_first_waiting_event_hides_no_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(verifier, "CLOCK_TOLERANCE", timedelta(hours=1))
        record_events(2)
        as_owner(f"UPDATE audit_event SET at = at + interval '30 minutes' WHERE number = {NEWEST} - 1")
        assert kinds(verify()) == {"unsigned"}


def test_a_checkpoint_that_is_older_than_its_events_is_named(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones of a log that was signed a year too early, in order."""
    last_year = checkpoints.database_now() - timedelta(days=365)
    with monkeypatch.context() as patching:
        patching.setattr(checkpoints, "database_now", lambda: last_year)
        write_anew("SELECT 'nothing is changed'")
    for report in (verify(), verify_export(None)):
        assert (report.verdict, "impossible_time" in kinds(report)) == ("broken", True)


def test_an_event_of_the_future_is_named(log: Path) -> None:
    """It was signed, too: the server's clock was put forward."""
    as_owner(
        INSERT_EVENT,
        f"UPDATE audit_event SET at = at + interval '5 years' WHERE number = {NEWEST}",
        f"INSERT INTO audit_pending VALUES ({NEWEST})",
    )
    Sequencer().finish()
    for report in (verify(), verify_export(log)):
        assert (report.verdict, kinds(report)) == ("broken", {"impossible_time"})


MADE_UP = """
INSERT INTO audit_event (id, type, at, actor_kind, actor_ref, role_ref, outcome, counters, shown)
SELECT memadmin_uuid7(), '{type}', clock_timestamp(), actor_kind, actor_ref, role_ref, '{outcome}',
    '{{"rows": 1000000}}', ARRAY(SELECT id FROM audit_event WHERE commitment IS NOT NULL)
FROM audit_event WHERE number = {number}
"""


def test_details_are_not_explained_by_made_up_events(signed_log: SignedLog, log: Path) -> None:
    for type_, outcome, expected in [
        ("details.erased", "denied", {"deleted_details"}),
        ("details.erased", "failed", {"deleted_details"}),
        ("user.row_deleted", "succeeded", {"deleted_details"}),
        ("details.erased", "succeeded", set()),
    ]:
        as_owner(
            MADE_UP.format(type=type_, outcome=outcome, number=number_at(17)),
            f"INSERT INTO audit_pending VALUES ({NEWEST})",
            "DELETE FROM audit_detail",
        )
        Sequencer().finish()
        for report in (verify(), verify_export(log)):
            assert kinds(report) == expected, (type_, outcome, report.findings)
        signed_log.bring_back()


def exchange_names(kind: str) -> None:
    """Exchanges the names of the first two actors of a kind; a second call restores them."""
    one, other = AuditActor.objects.filter(kind=kind).order_by("ref")[:2]
    for actor, label in ((one, "taken"), (other, one.label), (one, other.label)):
        AuditActor.objects.filter(ref=actor.ref).update(label=label)


def test_names_of_actors_that_were_exchanged_or_changed_are_named() -> None:
    """Ids of jobs are derived from their names; tests/audit/test_names.py has those of people."""
    user = person("support")
    record_events(1, by=user)
    for number in range(2):
        record_events(1, by=Actor("job", f"job {number}"))
    Sequencer().finish()
    anchors.publish()
    report = verify()
    assert (report.verdict, report.findings) == ("ok", [])
    exchange_names("job")
    assert [found.kind for found in verify().findings] == ["renamed_actor"] * 2
    exchange_names("job")
    job, of_person = AuditActor.objects.filter(label="job 0"), AuditActor.objects.filter(user_id=user.pk)
    for actor, change, expected in (
        (job, {"label": "somebody else"}, {"renamed_actor"}),
        (job, {"kind": "command"}, {"renamed_actor"}),
        (job, {"kind": "person", "user_id": 10_000_000, "salt": bytes(32)}, {"renamed_actor"}),
        (of_person, {"kind": "job", "user_id": None}, {"renamed_actor", "deleted_actor"}),
    ):
        kept = actor.get()
        AuditActor.objects.filter(ref=kept.ref).update(**change)
        assert kinds(verify()) == expected, change
        kept.save()


def test_a_stored_inner_hash_that_is_wrong_is_named(log: Path) -> None:
    write_events(256 - SIZE + 5)
    Sequencer().finish()
    assert verify().findings == []
    as_owner("UPDATE audit_node SET hash = sha256('x')")
    assert kinds(verify()) == {"damaged_node"}
    as_owner("DELETE FROM audit_node")
    assert kinds(verify()) == {"damaged_node"}


def test_a_key_that_was_signed_in_is_known(log: Path, settings: Settings) -> None:
    old = verifier.SignedCheckpoint.parse(AuditCheckpoint.objects.get(size=SIZE).note).key
    settings.SIGNING_KEY, settings.SIGNING_KEY_BEFORE = bytes(32), settings.SIGNING_KEY
    record_events(1)
    Sequencer().finish()
    assert verify().verdict == "ok"
    lines = list(log_export.as_json_lines())
    new = verifier.SignedCheckpoint.parse(AuditCheckpoint.objects.order_by("-size")[0].note).key
    for pinned in (old, new):
        assert verifier.verify_export(lines, pinned=[pinned]).findings == []


def lose_the_key(settings: Settings) -> None:
    """The operator goes on with another one, and tells the sequencer which key the log had."""
    old = verifier.SignedCheckpoint.parse(AuditCheckpoint.objects.get(size=SIZE).note).key
    settings.SIGNING_KEY, settings.TRUSTED_KEYS = bytes(32), [str(old)]


def test_a_key_that_was_lost_can_be_vouched_for(settings: Settings) -> None:
    lost = verifier.SignedCheckpoint.parse(AuditCheckpoint.objects.get(size=SIZE).note).key
    lose_the_key(settings)
    record_events(1)
    Sequencer().finish()
    settings.TRUSTED_KEYS = []
    assert kinds(verify()) == {"unknown_key"}
    settings.TRUSTED_KEYS = [str(lost)]
    assert verify().verdict == "ok"
    # A process without a signing key needs both.
    settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
    assert kinds(verify()) == {"unknown_key"}
    new = verifier.SignedCheckpoint.parse(AuditCheckpoint.objects.order_by("-size")[0].note).key
    settings.TRUSTED_KEYS = [str(lost), str(new)]
    assert verify().verdict == "ok"


def test_keys_are_known_before_the_new_one_has_signed_and_without_any(settings: Settings) -> None:
    settings.SIGNING_KEY, settings.SIGNING_KEY_BEFORE = bytes(32), settings.SIGNING_KEY
    assert verify().verdict == "ok"
    settings.SIGNING_KEY, settings.SIGNING_KEY_BEFORE, settings.SIGNING_KEY_KEPT = b"", b"", None
    report = verify()
    assert report.verdict == "ok"
    assert any("No key was pinned" in note for note in report.notes)


@pytest.mark.parametrize("kept", [0, 3])
def test_an_anchor_that_was_cut_is_named(kept: int, log: Path) -> None:
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:kept]))
    report = verify()
    assert (report.verdict, kinds(report)) == ("broken", {"cut_anchor"})
    assert (
        f"has no checkpoint of size {SIZE}, and {SIZE // 10 - kept - 1} others are missing" in report.findings[0].detail
    )
    assert kinds(verify_export(None)) == set()


def test_other_lines_in_an_anchor_are_stated_and_excuse_no_cut(log: Path) -> None:
    notes = log.read_text()
    for more in ("{}\n", "\n", "null\n", '{"no'):
        log.write_text(notes + more)
        report = verify()
        assert (report.verdict, report.findings) == ("ok", [])
        assert any("are no signed checkpoints" in note for note in report.notes), more
        log.write_text(notes.splitlines(keepends=True)[0] + more)
        assert kinds(verify()) == {"cut_anchor"}


def test_a_database_compares_each_kind_of_anchor_with_what_it_recorded(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the verifier alone: the file, and notes of the bucket and the receiver."""
    for sink in ("s3:bucket/log", "webhook:example.org"):
        AuditAnchor.objects.create(checkpoint_size=SIZE, sink=sink, outcome="anchored")
    dsn = make_conninfo(**{key: value for key, value in connection.get_connection_params().items() if key in DSN})
    stored = [AuditCheckpoint.objects.get(size=size).note for size in (10, SIZE)]
    cut = log.read_text().splitlines(keepends=True)[0]
    for text, expected in [
        (log.read_text(), 0),
        (cut, 1),
        (cut + "{}\n", 1),
        (stored[0], 1),
        (stored[1], 0),
        ("[]", 1),
    ]:
        (tmp_path / "given").write_text(text)
        assert verifier.main(["--dsn", dsn, "--anchors", str(tmp_path / "given")]) == expected, text
        assert ("cut_anchor" in capsys.readouterr().out) == (expected == 1)


def test_a_log_that_was_never_signed_is_unsigned(empty_log: None, settings: Settings) -> None:
    settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT, settings.ANCHOR_PATH = b"", None, None
    record_events(2)
    Sequencer().finish()
    for report in (verify(), verify_export(None)):
        assert (report.verdict, report.signed, report.unsigned) == ("unsigned", 0, 2)
