"""Exports and anchors that were forged, checked by the stand-alone verifier; no database."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memadmin.audit.transparency import verifier
from memadmin.audit.transparency.notes import SigningKey, sign, verified
from memadmin.audit.transparency.verifier import CannotRead, Report
from tests.audit.made_logs import (
    BEGUN,
    KEY,
    PINNED,
    STRANGER,
    Record,
    at_size,
    bodies,
    checkpoint,
    checkpoint_record,
    event,
    id_of,
    leaf,
    log_of,
    signed_log,
    store_of,
    text_of,
    verify,
    waiting,
)

SIZE = 12
RECORDS, NOTES = signed_log(SIZE)
FORGED = event(13, outcome="denied")


def kinds(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings}


def test_a_signed_and_anchored_log_is_ok() -> None:
    report = verify(RECORDS, NOTES)
    assert (report.verdict, report.findings, report.size) == ("ok", [], SIZE)
    assert (report.signed, report.unsigned, report.signed_by) == (SIZE, 0, str(KEY.public))
    assert f"Signed up to 12 of 12 events by key {KEY.public}." in verifier.report_text(report)


def before_the_end(*records: Record) -> list[Record]:
    return [*RECORDS[:-1], *records, RECORDS[-1]]


def with_changed(place: int, **values: Any) -> list[Record]:
    return [*RECORDS[:place], RECORDS[place] | values, *RECORDS[place + 1 :]]


def with_tail(**end: int) -> list[Record]:
    """Two invented events after the last checkpoint."""
    tail = [leaf(12, event(13)), leaf(13, event(14))]
    return [RECORDS[0] | {"size": 14}, *RECORDS[1:13], *tail, *RECORDS[13:-1], {"end": {"leaves": 14} | end}]


NOT_A_LOG: dict[str, list[Record]] = {
    "a line without an index": before_the_end({"event": FORGED}),
    "a line of an unknown kind": before_the_end({"comment": "nothing happened"}),
    "a line with another key": with_changed(3, comment="it was approved"),
    "an event with another key": with_changed(3, event=RECORDS[3]["event"] | {"comment": "it was approved"}),
    "a line without its event": before_the_end({"index": 12, "number": 13, "leaf": "00" * 32}),
    "a hash in capitals": with_changed(3, leaf=RECORDS[3]["leaf"].upper()),
    "a line after the end": [*RECORDS, waiting(FORGED)],
    "a second end": [*RECORDS, RECORDS[-1]],
    "a waiting event without most of its columns": before_the_end(waiting({"number": 13, "id": id_of(13)})),
    "a waiting event that waits for a text": before_the_end(waiting(FORGED, seconds="0")),
    "a waiting event that may be queued": before_the_end(waiting(FORGED, is_pending=1)),
}


@pytest.mark.parametrize("case", NOT_A_LOG)
def test_lines_that_are_not_in_the_format_are_reported(case: str) -> None:
    report = verify(NOT_A_LOG[case], NOTES)
    assert (report.verdict, "unreadable" in kinds(report)) == ("broken", True), report.findings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"outcome": "succeeded"', '"outcome": "denied", "outcome": "succeeded"'),
        ('"index": 2', '"index": 2, "event": null'),
        ('"seconds": 0', '"seconds": NaN'),
        ('"seconds": 0', '"seconds": 1e999'),
        ('"reason": ""', '"reason": "\\ud800"'),
    ],
)
def test_json_that_two_readers_understand_differently_is_refused(old: str, new: str) -> None:
    text = text_of(before_the_end(waiting(event(13))))
    assert old in text
    with pytest.raises(CannotRead, match="is not a JSON object that every reader understands alike"):
        verifier.verify_export(text.replace(old, new, 1).splitlines())


@pytest.mark.parametrize("key", ["format", "origin", "exported_at", "size", "details"])
def test_a_first_line_that_lacks_a_key_is_no_log(key: str) -> None:
    head = {name: value for name, value in RECORDS[0].items() if name != key}
    with pytest.raises(CannotRead):
        verify([head, *RECORDS[1:]])


class TestCounts:
    @pytest.mark.parametrize(
        "records",
        [
            with_changed(0, size=14),
            [*RECORDS[:-1], {"end": {"leaves": 14}}],
            with_tail(leaves=0),
            [RECORDS[0], *with_tail()[1:]],
        ],
    )
    def test_that_differ_from_the_lines_are_reported(self, records: list[Record]) -> None:
        assert kinds(verify(records, NOTES)) & {"incomplete_file", "unsigned"}
        assert verify(records, NOTES).verdict != "ok"

    def test_of_a_forged_end_break_the_file(self) -> None:
        report = verify(with_tail(leaves=0), NOTES)
        assert report.verdict == "broken"
        assert "incomplete_file" in kinds(report)


UNSIGNED: dict[str, tuple[list[Record], int]] = {
    "events after the last checkpoint": (with_tail(), 12),
    "a waiting event": (before_the_end(waiting(FORGED)), 12),
    "everything after the first checkpoint": (
        log_of([*bodies(4), *bodies(12, outcome="denied")[4:]], NOTES[:1]),
        4,
    ),
    "every event, without any checkpoint": (log_of(bodies(12, outcome="denied"), []), 0),
}


@pytest.mark.parametrize("case", UNSIGNED)
def test_events_without_a_signature_are_stated_first(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, signed = UNSIGNED[case]
    total = sum("event" in record for record in records)
    for anchors in ([], NOTES[:1] if signed else []):
        report = verify(records, anchors)
        assert (report.verdict, kinds(report)) == ("unsigned", {"unsigned"})
        assert (report.signed, report.unsigned) == (signed, total - signed)
    (tmp_path / "log.jsonl").write_text(text_of(records))
    assert verifier.main([str(tmp_path / "log.jsonl")]) == 3
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith(f"UNSIGNED: {total - signed} of {total} events have no valid signature")
    assert second.startswith(f"Signed up to {signed} of {total} events")


def test_an_invented_log_contradicts_the_anchors() -> None:
    records, _ = UNSIGNED["every event, without any checkpoint"]
    assert kinds(verify(records, NOTES)) == {"rewrite"}


def test_a_waiting_event_that_has_an_index_is_a_duplicate() -> None:
    assert kinds(verify(before_the_end(waiting(RECORDS[2]["event"])), NOTES)) == {"duplicate"}


def test_many_epochs_hide_no_other_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of findings is limited."""
    monkeypatch.setattr(verifier, "MOST_FINDINGS", 3)
    events = bodies(SIZE)
    signed = [checkpoint(events[:size], epoch=size, replaced=(size, bytes(32))) for size in range(2, 8)]
    report = verify(log_of(events, signed), [at_size(NOTES[-1], 100, KEY)])
    assert [found.kind for found in report.findings] == ["epoch"] * 3
    assert report.verdict == "broken"


class TestASelection:
    @pytest.fixture
    def proofs(self) -> list[Record]:
        """Proofs of the three last events of a log of three, each with a path of its own."""
        events = bodies(3)
        note = checkpoint(events)
        hashes = [verifier.leaf_hash(each) for each in events]
        pair = verifier.Tree().extend(hashes[0] + hashes[1]).root()
        paths = [[hashes[1], hashes[2]], [hashes[0], hashes[2]], [pair]]
        proof = {"format": verifier.EVENT_FORMAT, "checkpoint": note, "anchors": []}
        return [
            proof | {"event": body, "index": index, "path": [step.hex() for step in path]}
            for index, (body, path) in enumerate(zip(events, paths, strict=True))
        ]

    def test_with_proofs_is_signed(self, proofs: list[Record]) -> None:
        report = verify(proofs, [proofs[0]["checkpoint"]])
        assert (report.verdict, report.signed, report.unsigned) == ("ok", 3, 0)
        assert "Signed: 3 of 3 events by key" in verifier.report_text(report)

    def test_with_an_event_without_a_proof_is_not(self, proofs: list[Record]) -> None:
        for index in (None, 3):
            bare = {"format": verifier.EVENT_FORMAT, "event": FORGED, "index": index}
            report = verify([*proofs, bare], [proofs[0]["checkpoint"]])
            assert (report.verdict, report.signed, report.unsigned) == ("unsigned", 3, 1)

    @pytest.mark.parametrize(
        ("change", "kind"),
        [
            (lambda proofs: proofs.append(proofs[1]), "duplicate"),
            (lambda proofs: proofs.append({"format": verifier.EVENT_FORMAT, "event": FORGED}), "unreadable"),
            (lambda proofs: proofs.append({"comment": "approved"}), "unreadable"),
            (lambda proofs: proofs[0].update(comment="approved"), "unreadable"),
            (lambda proofs: proofs[0].update(path=[]), "bad_proof"),
            (lambda proofs: proofs[0].update(event=FORGED), "bad_proof"),
        ],
    )
    def test_that_was_changed_is_broken(
        self, proofs: list[Record], change: Callable[[list[Record]], object], kind: str
    ) -> None:
        change(proofs)
        report = verify(proofs)
        assert (report.verdict, kinds(report)) == ("broken", {kind})


class TestASelectionWithTwoCheckpoints:
    """An anchored checkpoint confirms nothing about the events of another one."""

    ANCHORED = checkpoint(bodies(2))

    def both(self, note: str, invented: Sequence[Record]) -> list[Record]:
        return [proof_of(bodies(2), 0, self.ANCHORED), proof_of(invented, 1, note)]

    @pytest.mark.parametrize("size", [2, 3])
    def test_of_a_stranger_is_broken(self, size: int) -> None:
        invented = [event(number, outcome="denied") for number in range(100, 100 + size)]
        for anchors in ([self.ANCHORED], []):
            report = verify(self.both(checkpoint(invented, STRANGER), invented), anchors, pinned=())
            assert (report.verdict, report.anchored_size) == ("broken", 0)
            assert kinds(report) <= {"unknown_key", "rewrite"}
            assert "unknown_key" in kinds(report)

    def test_of_the_same_key_is_not_anchored(self) -> None:
        invented = [event(number, outcome="denied") for number in range(100, 103)]
        for pinned in ((PINNED,), ()):
            report = verify(self.both(checkpoint(invented), invented), [self.ANCHORED], pinned=pinned)
            assert (report.verdict, report.findings, report.anchored_size) == ("unanchored", [], 0)
            assert any(note.startswith("No anchor confirms size 3, but other") for note in report.notes)

    def test_that_are_both_anchored_is_ok(self) -> None:
        later = checkpoint(bodies(3))
        for pinned in ((PINNED,), ()):
            report = verify(self.both(later, bodies(3)), [self.ANCHORED, later], pinned=pinned)
            assert (report.verdict, report.anchored_size) == ("ok", 3)

    def test_of_two_logs_is_broken(self) -> None:
        elsewhere = SigningKey("memadmin/elsewhere", bytes(range(32)))
        report = verify(self.both(checkpoint(bodies(3), elsewhere), bodies(3)), [self.ANCHORED])
        assert (report.verdict, kinds(report)) == ("broken", {"forged_checkpoint"})


def proof_of(events: Sequence[Record], index: int, note: str) -> Record:
    """The proof of one of the first two of two or three events."""
    path = [verifier.leaf_hash(events[place]).hex() for place in (1 - index, *range(2, len(events)))]
    made = {"format": verifier.EVENT_FORMAT, "event": events[index], "index": index, "path": path}
    return made | {"checkpoint": note, "anchors": []}


def with_edited(*more: str) -> list[Record]:
    """An edited event, and further checkpoints."""
    edited = RECORDS[3] | {"event": RECORDS[3]["event"] | {"outcome": "denied"}}
    return [*RECORDS[:3], edited, *RECORDS[4:-1], *map(checkpoint_record, more), RECORDS[-1]]


def at_time(note: str, signed_at: datetime) -> str:
    """The same checkpoint, signed at another time."""
    return sign(replace(verified(note), at=signed_at), KEY)


LAST_SECOND = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
IN_THE_WAY: dict[str, list[Record]] = {
    "a second note of the last size": with_edited(checkpoint([event(n, outcome="denied") for n in range(1, 13)])),
    "a stranger's note of the last size": with_edited(at_size(NOTES[0], SIZE, STRANGER)),
    "a note of size zero": with_edited(at_size(NOTES[0], 0, STRANGER)),
    "a note of size zero, and no events": [*log_of([], [at_size(NOTES[0], 0, KEY)])],
    "the year 9999": with_edited(at_time(NOTES[0], LAST_SECOND), at_time(NOTES[1], LAST_SECOND)),
}


@pytest.mark.parametrize("case", IN_THE_WAY)
def test_no_checkpoint_prevents_a_verdict(case: str) -> None:
    report = verify(IN_THE_WAY[case], NOTES)
    assert report.verdict == "broken"
    assert "unreadable" not in kinds(report), report.findings


@pytest.mark.parametrize(
    ("records", "part"),
    [(RECORDS, (verifier.Comparing, "_walk")), ([proof_of(bodies(2), 0, checkpoint(bodies(2)))], (verifier, "Trust"))],
    ids=["log", "selection"],
)
def test_an_exception_is_a_finding(
    records: list[Record], part: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(*part, fail)
    report = verify(records, NOTES)
    assert (report.verdict, kinds(report)) == ("broken", {"unreadable"})
    assert "IndexError: list index out of range" in report.findings[0].detail


class TestTheProgram:
    """The command, with files that were made to mislead it or to stop it."""

    @pytest.fixture
    def run(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
        def run(content: bytes, *options: str, name: str = "log.jsonl") -> tuple[int, str, str]:
            (tmp_path / name).write_bytes(content)
            status = verifier.main([str(tmp_path / name), *options])
            printed = capsys.readouterr()
            return status, printed.out, printed.err

        return run

    @pytest.mark.parametrize("options", [(), ("--json",)])
    def test_prints_text_of_the_file_with_escapes(
        self, run: Callable[..., tuple[int, str, str]], options: tuple[str, ...]
    ) -> None:
        clear = "\x1b[2J\x1b[1;1HOK: nothing contradicts the log\u202e"
        records = deepcopy(RECORDS)
        records[0]["origin"] = clear
        records[3] |= {"details": {"salt": "00" * 32, "text": clear}}
        records[3]["event"] |= {"commitment": "00" * 32}
        stranger = verifier.Key(clear.replace(" ", "_"), bytes(32))
        status, out, _ = run(text_of(records).encode(), "--key", str(PINNED), *options)
        assert status == 1
        assert "forged_checkpoint" in out
        assert set(out) <= {chr(code) for code in range(32, 127)} | {"\n"}
        report = Report()
        report.remark(f"signed by {stranger}")
        report.add("unreadable", clear, clear)
        assert set(verifier.report_text(report)) <= {chr(code) for code in range(32, 127)} | {"\n"}

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (text_of(RECORDS).replace('"reason": ""', '"reason": "\\udc80"').encode(), "is not a JSON object"),
            (gzip.compress(text_of(RECORDS).encode(), mtime=0)[:-40], "is not a complete gzip file"),
            (gzip.compress(text_of(RECORDS).encode(), mtime=0)[:500] + bytes(90), "is not a complete gzip file"),
            (gzip.compress(b'{"format": "' + b"a" * 200_000, mtime=0), "is longer than"),
            (
                gzip.compress(text_of(RECORDS).encode() + (b"{" + b" " * 90_000 + b"}\n") * 20, mtime=0),
                "expands to more than",
            ),
            (gzip.compress(b"{\n" + b" " * 200_000, mtime=0), "is longer than"),
        ],
        ids=["surrogate", "truncated", "damaged", "long line", "many lines", "proof"],
    )
    def test_cannot_read_what_no_export_is(
        self,
        run: Callable[..., tuple[int, str, str]],
        content: bytes,
        sentence: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(verifier, "MOST_LINE", 100_000)
        status, out, error = run(content)
        assert (status, out, error.count("\n")) == (2, "", 1)
        assert error.startswith("verifier: ")
        assert sentence in error

    def test_skips_damaged_lines_of_an_anchor(self, run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
        kept = [json.dumps({"note": note}) for note in NOTES]
        damage = ['{"note": "\\ud800"}', '{"note": ' + "[" * 100_000, '{"no', "te"]
        (tmp_path / "anchor.jsonl").write_text("\n".join([*damage, *kept]))
        status, out, _ = run(text_of(RECORDS).encode(), "--anchors", str(tmp_path / "anchor.jsonl"))
        assert (status, out[:3]) == (0, "OK:")


class TestAnAnchorWithNotesOfAStranger:
    """Write access to an anchor is not enough to discredit the log."""

    @pytest.mark.parametrize(
        "note",
        [at_size(NOTES[0], SIZE, STRANGER), at_size(NOTES[-1], 1000, STRANGER)],
        ids=["another root", "a larger size"],
    )
    @pytest.mark.parametrize("pinned", [(PINNED,), ()], ids=["pinned", "not pinned"])
    def test_is_read_without_them(self, note: str, pinned: Sequence[verifier.Key]) -> None:
        report = verify(RECORDS, [*NOTES, note], pinned=pinned)
        assert report.findings == []
        assert report.verdict == ("ok" if pinned else "unanchored")
        assert "1 of the anchors are not signed by a known key and were ignored." in report.notes

    def test_is_needed_to_recognise_a_log_of_another_key(self) -> None:
        """Without a pinned key the first anchor decides, which only a pinned key can contradict."""
        theirs, their_notes = signed_log(SIZE, key=STRANGER)
        for pinned in ((), (PINNED,)):
            report = verify(theirs, [*NOTES, their_notes[-1]], pinned=pinned)
            assert "unknown_key" in kinds(report)

    def test_is_not_signed_in_by_a_signature_that_anyone_can_add(self) -> None:
        """Signatures follow the signed text. A stranger adds one to a checkpoint, and then signs a log of their own."""
        events = [*bodies(4), *bodies(SIZE, outcome="denied")[4:]]
        added = NOTES[0] + STRANGER.signature_line(NOTES[0].rpartition("\n\n")[0] + "\n")
        records = log_of(events, [added, checkpoint(events, STRANGER)])
        assert kinds(verify(records, [])) == kinds(verify(records, [added], pinned=())) == {"unknown_key"}
        # Nor can it discredit a log.
        report = verify(RECORDS, [*NOTES, added, at_size(NOTES[0], SIZE, STRANGER)])
        assert (report.verdict, report.findings) == ("ok", [])

    def test_counts_a_key_before_the_pinned_one_up_to_its_successor(self) -> None:
        events = bodies(SIZE)
        first, signed_in = checkpoint(events[:4]), checkpoint(events[:8], STRANGER, before=KEY)
        pinned = [verifier.Key.parse(str(STRANGER.public))]
        later = checkpoint(events, STRANGER)
        assert verify(log_of(events, [first, signed_in, later]), [first], pinned=pinned).verdict == "ok"
        changed = [*bodies(8), *bodies(SIZE, outcome="denied")[8:]]
        records = log_of(changed, [first, signed_in, checkpoint(changed)])
        assert kinds(verify(records, pinned=pinned)) == {"unknown_key"}

    def test_counts_keys_that_were_signed_in_as_known(self) -> None:
        """Also where the log was restored to before its key was changed."""
        events = bodies(12)
        signed_in = checkpoint(events[:8], STRANGER, before=KEY)
        later = checkpoint(events, STRANGER)
        records = log_of(events[:4], [checkpoint(events[:4])])
        assert kinds(verify(records, [signed_in, later])) == {"restored_backup"}


def restored(
    begins: int, *, size: int | None = None, root: bytes | None = None, lost: int = SIZE
) -> tuple[list[Record], str]:
    """The log of another history from `begins` on, which declares the old one lost, and its checkpoint."""
    events = [*bodies(begins - 1), *bodies(SIZE, outcome="denied")[begins - 1 :]]
    old = verifier.SignedCheckpoint.parse(NOTES[-1])
    replaced = (size or lost, old.root if root is None else root)
    kept = [note for note in NOTES if verifier.SignedCheckpoint.parse(note).size < begins]
    begun = [checkpoint(events[:end], epoch=2, replaced=replaced if end == begins else None) for end in (begins, SIZE)]
    return log_of(events, [*kept, *begun]), begun[-1]


class TestAnEpoch:
    def test_that_names_the_newest_anchor_has_its_own_verdict(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        records, note = restored(6)
        for anchors in ([*NOTES, note], []):
            report = verify(records, anchors)
            assert (report.verdict, kinds(report)) == ("epoch", {"epoch"})
        (tmp_path / "log.jsonl").write_text(text_of(records))
        assert verifier.main([str(tmp_path / "log.jsonl"), "--key", str(PINNED)]) == 4
        assert capsys.readouterr().out.startswith("EPOCH: the log continues from an older state")

    @pytest.mark.parametrize("begins", [4, 1, 6])
    def test_that_replaces_another_root_than_the_anchored_one_is_a_rewrite(self, begins: int) -> None:
        """The signing key is enough to declare a history lost, but not one that the anchors do not have."""
        records, note = restored(begins, root=bytes(32))
        assert kinds(verify(records, [*NOTES, note])) == {"epoch", "rewrite"}

    def test_that_admits_less_than_was_anchored_is_a_restored_backup(self) -> None:
        records, note = restored(4, size=4, root=verifier.SignedCheckpoint.parse(NOTES[0]).root)
        assert "restored_backup" in kinds(verify(records, [*NOTES, note]))

    def test_continues_only_what_the_anchors_confirm(self) -> None:
        records, note = restored(10)
        changed = [*bodies(9, outcome="failed"), *(record["event"] for record in records[10:13])]
        old = verifier.SignedCheckpoint.parse(NOTES[-1])
        begun = checkpoint(changed[:10], epoch=2, replaced=(SIZE, old.root))
        forged = log_of(changed, [begun, checkpoint(changed, epoch=2)])
        assert kinds(verify(forged, [*NOTES, note])) == {"epoch", "rewrite"}

    def test_confirmed_by_a_stranger_is_not_confirmed(self) -> None:
        records, note = restored(4, size=SIZE, root=bytes(32))
        theirs = verifier.SignedCheckpoint.parse(note)
        false = at_size(at_size(note, SIZE, STRANGER), SIZE, STRANGER)
        assert theirs.epoch == 2
        assert "rewrite" in kinds(verify(records, [*NOTES, false]))

    @pytest.mark.parametrize(
        ("epochs", "replaced"),
        [((1, 2, 2), None), ((2, 2, 2), None), ((2, 1, 1), (SIZE, bytes(32))), ((1, 1, 1), (SIZE, bytes(32)))],
    )
    def test_without_a_valid_record_is_forged(
        self, epochs: tuple[int, ...], replaced: tuple[int, bytes] | None
    ) -> None:
        events = bodies(SIZE)
        signed = [
            checkpoint(events[: 4 * place], epoch=epoch, replaced=replaced if place == 1 else None)
            for place, epoch in enumerate(epochs, 1)
        ]
        assert "forged_checkpoint" in kinds(verify(log_of(events, signed)))

    def test_may_follow_another_in_the_same_older_state(self) -> None:
        """The same backup was restored twice: the second epoch replaces the first one, whose record is lost with it."""
        first, note = restored(6)
        begun = first[-4]["checkpoint"]["note"]
        events = [*bodies(5), *bodies(SIZE, outcome="failed")[5:]]
        newest = verifier.SignedCheckpoint.parse(note)
        third = checkpoint(events[:6], epoch=3, replaced=(newest.size, newest.root))
        report = verify(log_of(events, [NOTES[0], third]), [*NOTES, begun, note, third])
        assert kinds(report) == {"epoch", "unsigned"}
        assert report.anchored_size == 6


class TestDetails:
    def with_erasures(self, *erased: int, events: Sequence[Record]) -> list[Record]:
        """The log of these events, without the details of some."""
        records = log_of(events, [checkpoint(events)])
        for number in erased:
            del records[number]["details"]
        return records

    def test_that_were_removed_without_an_event_are_named(self) -> None:
        report = verify(self.with_erasures(3, events=bodies(SIZE)))
        assert [(found.kind, found.event) for found in report.findings] == [("deleted_details", id_of(3))]

    def test_that_an_event_names_are_erased(self) -> None:
        events = [*bodies(SIZE), event(13, type="details.erased", shown=[id_of(3), id_of(6)])]
        report = verify(self.with_erasures(3, 6, events=events))
        assert (report.findings, "Details of 2 events were erased." in report.notes) == ([], True)
        assert kinds(verify(self.with_erasures(3, 6, 9, events=events))) == {"deleted_details"}

    def test_go_with_an_account(self) -> None:
        gone, other = id_of(901), id_of(902)
        account = {"object_kind": "auth.user", "type": "user.row_updated"}
        events = bodies(SIZE)
        events[2] |= account | {"object": gone}
        events[5] |= {"type": "user.row_updated", "shown": [gone, other]}
        events[8] |= account | {"object": other}
        for deletion in ({"object_kind": "auth.user", "object": gone}, {"shown": [gone]}):
            last = event(13, type="user.row_deleted", counters={"rows": 1}, **deletion)
            assert verify(self.with_erasures(3, 6, events=[*events, last])).findings == []
            report = verify(self.with_erasures(3, 6, 9, events=[*events, last]))
            assert [found.event for found in report.findings] == [id_of(9)]

    def test_go_with_a_name_of_one_account(self) -> None:
        events = bodies(SIZE)
        for place, account in ((2, 901), (5, 901), (8, 902)):
            events[place] |= {"type": "user.row_updated", "object_kind": "auth.user", "object": id_of(account)}
        name = event(13, type="name.erased", object_kind="audit.auditactor", object=id_of(900))
        assert verify(self.with_erasures(3, 6, events=[*events, name])).findings == []
        assert kinds(verify(self.with_erasures(3, 6, 9, events=[*events, name]))) == {"deleted_details"}
        assert kinds(verify(self.with_erasures(12, events=[*events, name]))) == {"deleted_details"}

    def test_are_explained_only_by_an_erasure_that_names_them_and_came_after_them(self) -> None:
        """Events that whoever can add some would add: each for the missing details of events about two accounts."""
        one, other = id_of(901), id_of(902)
        about = {"type": "user.row_updated", "object_kind": "auth.user"}

        def events(made_up: Record | None, *, first: bool = False) -> tuple[list[Record], list[int]]:
            kept = [event(n, has_details=n % 3 == 0) for n in range(2, SIZE + 2)]
            kept[1] |= about | {"object": one}
            kept[4] |= about | {"object": other}
            number = 1 if first else 14
            added = [event(number) | made_up] if made_up else []
            return ([*added, *kept], [3, 6]) if first else ([*kept, *added], [2, 5])

        erased: Record = {"type": "details.erased", "object_kind": "audit.auditevent", "shown": [id_of(3), id_of(6)]}
        gone: Record = {"type": "user.row_deleted", "shown": [one, other], "counters": {"rows": 2}}
        name: Record = {"type": "name.erased", "object_kind": "audit.auditactor", "object": id_of(900)}
        genuine = [erased, gone]
        for made_up in genuine:
            rows, missing = events(made_up)
            assert verify(self.with_erasures(*missing, events=rows)).findings == []
        for made_up, first in [
            *((each | {"outcome": outcome}, False) for each in genuine for outcome in ("denied", "failed")),
            *((each, True) for each in genuine),
            ({"type": "user.row_deleted", "counters": {"rows": 10**9}}, False),
            (gone | {"shown": [id_of(903)], "counters": {"rows": 10**9}}, False),
            (gone | {"shown": [], "object_kind": "accounts.other", "object": one}, False),
            (erased | {"type": "details.viewed"}, False),
            (name, False),
            (name | {"outcome": "denied"}, False),
        ]:
            rows, missing = events(made_up, first=first)
            report = verify(self.with_erasures(*missing, events=rows))
            assert kinds(report) == {"deleted_details"}, (made_up, first)
            assert len(report.findings) == 2

    def test_of_one_account_are_explained_only_by_a_name_that_was_erased_later(self) -> None:
        about = {"type": "user.row_updated", "object_kind": "auth.user", "object": id_of(901)}
        name = {"type": "name.erased", "object_kind": "audit.auditactor", "object": id_of(900)}
        events = bodies(SIZE)
        events[5] |= about
        for number, columns, expected in [
            (13, name, set()),
            (13, name | {"outcome": "denied"}, {"deleted_details"}),
            (13, name | {"object_kind": "auth.user"}, {"deleted_details"}),
            (4, name, {"deleted_details"}),
        ]:
            made = event(number) | columns
            rows = [*events, made] if number == 13 else [*events[:3], made, *events[4:]]
            assert kinds(verify(self.with_erasures(6, events=rows))) == expected, (number, columns)

    def test_of_many_accounts_are_not_explained_by_the_name_of_one(self) -> None:
        events = bodies(SIZE)
        for place, accounts in ((2, (901, 902)), (5, (903, 904))):
            events[place] |= {"type": "user.row_updated", "shown": [id_of(each) for each in accounts]}
        names = [event(n, type="name.erased", object_kind="audit.auditactor", object=id_of(800 + n)) for n in (13, 14)]
        assert kinds(verify(self.with_erasures(3, 6, events=[*events, *names[:1]]))) == {"deleted_details"}
        assert verify(self.with_erasures(3, 6, events=[*events, *names])).findings == []

    def test_that_are_not_in_the_file_are_not_compared(self) -> None:
        records = self.with_erasures(3, 6, 9, 12, events=bodies(SIZE))
        records[0]["details"] = False
        report = verify(records)
        assert (report.findings, report.verdict) == ([], "unanchored")
        assert "The file contains no details of events; they were not compared." in report.notes


class TestACutAnchor:
    """According to the export, its last checkpoint was stored in the file."""

    @pytest.mark.parametrize("kept", [0, 2])
    def test_is_named(self, kept: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "anchor.jsonl").write_text("".join(json.dumps({"note": note}) + "\n" for note in NOTES[:kept]))
        (tmp_path / "log.jsonl").write_text(text_of(RECORDS))
        assert verifier.main([str(tmp_path / "log.jsonl"), "--anchors", str(tmp_path / "anchor.jsonl"), "--json"]) == 1
        (finding,) = json.loads(capsys.readouterr().out)["findings"]
        assert finding["kind"] == "cut_anchor"
        assert "has no checkpoint of size 12" in finding["detail"]

    def test_with_the_size_signed_by_a_stranger_is_named(self) -> None:
        false = at_size(NOTES[0], SIZE, STRANGER)
        assert kinds(verify(RECORDS, stores=[store_of([*NOTES[:2], false])])) == {"cut_anchor"}

    def test_is_none_that_goes_on(self) -> None:
        assert verify(RECORDS, stores=[store_of(NOTES)]).verdict == "ok"

    def test_is_no_earlier_export_and_no_single_note(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "earlier.jsonl").write_text(text_of(log_of(bodies(4), NOTES[:1])))
        (tmp_path / "8.note").write_text(NOTES[1])
        (tmp_path / "log.jsonl").write_text(text_of(RECORDS))
        anchors = [option for name in ("earlier.jsonl", "8.note") for option in ("--anchors", str(tmp_path / name))]
        assert verifier.main([str(tmp_path / "log.jsonl"), *anchors]) == 0
        assert "Anchored up to 8." in capsys.readouterr().out


def anchor_lines(*notes: str) -> str:
    return "".join(json.dumps({"note": note}, ensure_ascii=False) + "\n" for note in notes)


def recorded_at(*sinks: str, size: int = SIZE) -> list[Record]:
    """The log, which states that its checkpoint of this size was stored at these anchors."""
    stored = [
        {"anchored": {"sink": sink, "size": size, "at": RECORDS[0]["exported_at"], "receipt": ""}} for sink in sinks
    ]
    return [*(record for record in RECORDS[:-1] if "anchored" not in record), *stored, RECORDS[-1]]


FIRST = anchor_lines(NOTES[0])
UNSIGNED_NOTE = NOTES[-1].rpartition("\n\n")[0] + "\n\n" + NOTES[0].rpartition("\n\n")[2]
CUT_AND_MORE: dict[str, str] = {
    "an object": FIRST + "{}\n",
    "a blank line": FIRST + "\n",
    "null": FIRST + "null\n",
    "a list": FIRST + "[]\n",
    "a text": FIRST + '"x"\n',
    "words": FIRST + "nothing was cut\n",
    "bytes that are no text": FIRST + "\udcff\udcfe\n",
    "a note that is none": FIRST + '{"note": "x"}\n',
    "a note that is a number": FIRST + '{"note": 12}\n',
    "a part of a line": FIRST + anchor_lines(NOTES[-1])[:200],
    "a line of an export": FIRST + json.dumps(checkpoint_record(NOTES[0])) + "\n",
    "the first line of an export": json.dumps(RECORDS[0]) + "\n" + FIRST,
    "a stranger's note": FIRST + anchor_lines(at_size(NOTES[0], SIZE, STRANGER)),
    "a note with the signature of another": FIRST + anchor_lines(UNSIGNED_NOTE),
    "a note of another log": FIRST + anchor_lines(checkpoint(bodies(SIZE), SigningKey("memadmin/other", KEY.seed))),
    "the same note twice": FIRST + FIRST,
    "the notes in another order": anchor_lines(NOTES[1], NOTES[0]),
    "nothing but objects": "{}\n{}\n",
    "only a list": "[]\n",
    "only words": "nothing was cut\n",
    "nothing": "",
}


class TestAnAnchorThatWasCut:
    """A cut is found in each kind of anchor; other lines of its file excuse nothing and are stated."""

    @pytest.fixture
    def run(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
        def run(records: list[Record], *anchors: str) -> dict[str, Any]:
            (tmp_path / "log.jsonl").write_text(text_of(records))
            for number, text in enumerate(anchors):
                (tmp_path / f"anchor-{number}").write_text(text, errors="surrogateescape")
            options = [option for n in range(len(anchors)) for option in ("--anchors", str(tmp_path / f"anchor-{n}"))]
            verifier.main([str(tmp_path / "log.jsonl"), *options, "--key", str(PINNED), "--json"])
            report: dict[str, Any] = json.loads(capsys.readouterr().out)
            return report

        return run

    def test_is_named_beside_other_lines(self, run: Callable[..., dict[str, Any]]) -> None:
        for case, text in CUT_AND_MORE.items():
            for records in (RECORDS, recorded_at("s3:bucket/log"), recorded_at("webhook:example.org")):
                report = run(records, text)
                named = {found["kind"] for found in report["findings"]}
                assert "cut_anchor" in named, (case, report)
                assert named <= {"cut_anchor", "rewrite"}, (case, report)

    def test_says_what_else_it_contains(self, run: Callable[..., dict[str, Any]]) -> None:
        """All notes follow, so that nothing is cut."""
        sentences = ("are no signed checkpoints", "not signed by a known key", "twice or in another order")
        for case, text in CUT_AND_MORE.items():
            report = run(RECORDS, text + "\n" * (text[-1:] not in ("", "\n")) + anchor_lines(*NOTES))
            assert report["verdict"] == ("broken" if case == "a note of another log" else "ok"), (case, report)
            is_stated = any(sentence in note for note in report["notes"] for sentence in sentences)
            assert is_stated == (case != "nothing"), (case, report["notes"])

    def test_is_named_for_each_kind_of_anchor(self, run: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
        """Objects of a bucket are single notes, in a folder or one by one."""
        for sink in ("s3:bucket/log", "webhook:example.org"):
            records = recorded_at("file:/anchor", sink)
            assert run(records, NOTES[0])["verdict"] == "broken"
            assert run(records, NOTES[0], "{}")["verdict"] == "broken"
            assert run(records, NOTES[0], NOTES[-1])["verdict"] == "ok"
            # A complete file does not replace what the bucket lost.
            assert run(records, anchor_lines(*NOTES), NOTES[0])["verdict"] == "broken"
            assert run(records, anchor_lines(*NOTES))["verdict"] == "ok"

    def test_is_named_for_the_folder_of_a_bucket(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "log.jsonl").write_text(text_of(recorded_at("s3:bucket/log")))
        folder = tmp_path / "bucket" / "000001"
        folder.mkdir(parents=True)
        command = [str(tmp_path / "log.jsonl"), "--anchors", str(tmp_path / "bucket"), "--key", str(PINNED)]
        for place, note in enumerate(["", *NOTES]):
            if note:
                (folder / f"{4 * place:019}.note").write_text(note)
            assert verifier.main(command) == (0 if place == 3 else 1)
            assert ("cut_anchor" in capsys.readouterr().out) == (place < 3)

    def test_that_was_rewritten_after_its_first_line_is_named(self, run: Callable[..., dict[str, Any]]) -> None:
        """With the stolen key."""
        events = [*bodies(4), *bodies(SIZE, outcome="denied")[4:]]
        rewritten = log_of(events, [NOTES[0], checkpoint(events)], anchored=SIZE)
        for text in (FIRST, FIRST + "{}\n", FIRST + "[]\n"):
            assert {found["kind"] for found in run(rewritten, text)["findings"]} == {"cut_anchor"}

    def test_cannot_be_recognised_where_the_log_names_no_anchor(self, run: Callable[..., dict[str, Any]]) -> None:
        report = run(recorded_at(), FIRST)
        assert report["verdict"] == "ok"
        assert any("does not state what was stored" in note for note in report["notes"])

    def test_is_stated_where_only_older_notes_were_given(self, run: Callable[..., dict[str, Any]]) -> None:
        earlier = text_of(log_of(bodies(4), NOTES[:1]))
        for older in (NOTES[0], earlier):
            report = run(RECORDS, older)
            assert report["verdict"] == "ok"
            assert any("size 12" in note and "size 4" in note for note in report["notes"]), report["notes"]


class TestTimes:
    """Signed events and checkpoints whose times contradict each other, or the reader's clock."""

    @staticmethod
    def with_times(*at: datetime, signed: datetime) -> Report:
        events = [event(n, at=each.strftime("%Y-%m-%dT%H:%M:%S.%fZ")) for n, each in enumerate(at, 1)]
        return verify(log_of(events, [at_time(checkpoint(events), signed)]))

    def test_of_a_checkpoint_before_its_events_is_named(self) -> None:
        day = BEGUN + timedelta(days=1)
        assert kinds(self.with_times(BEGUN, day, signed=day)) == set()
        for signed in (BEGUN - timedelta(days=365), day - timedelta(seconds=6)):
            report = self.with_times(BEGUN, day, signed=signed)
            assert (report.verdict, kinds(report)) == ("broken", {"impossible_time"})

    def test_in_the_future_is_named(self) -> None:
        later = datetime.now(UTC) + timedelta(days=2)
        assert kinds(self.with_times(BEGUN, later, signed=later)) == {"impossible_time"}
        assert kinds(self.with_times(BEGUN, BEGUN, signed=later)) == {"impossible_time"}
        records, _ = signed_log(SIZE)
        future = event(13, at=later.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        assert kinds(verify([*records[:-1], waiting(future), records[-1]])) == {"impossible_time"}

    def test_after_the_export_is_named(self) -> None:
        records, _ = signed_log(SIZE)
        records[0]["exported_at"] = "2020-01-01T00:00:00.000000Z"
        assert kinds(verify(records)) == {"impossible_time"}

    def test_of_an_anchor_in_the_future_is_named(self) -> None:
        later = at_time(NOTES[-1], datetime.now(UTC) + timedelta(days=2))
        assert kinds(verify(RECORDS, [*NOTES, later])) == {"impossible_time"}

    def test_that_go_back_in_small_steps_are_named(self) -> None:
        """Each step alone is within the tolerance."""
        steps = [BEGUN + timedelta(hours=1) - timedelta(seconds=4 * step) for step in range(SIZE)]
        assert kinds(self.with_times(*steps, signed=steps[0])) == {"clock_step_back"}
        events = bodies(SIZE)
        signed = [
            at_time(checkpoint(events[: 4 * place]), BEGUN + timedelta(hours=1) - timedelta(seconds=4 * place))
            for place in (1, 2, 3)
        ]
        assert kinds(verify(log_of(events, signed))) == {"clock_step_back"}

    def test_of_a_proof_are_compared(self) -> None:
        events = bodies(2)
        for note, expected in [
            (checkpoint(events), set()),
            (at_time(checkpoint(events), BEGUN - timedelta(days=365)), {"impossible_time"}),
            (at_time(checkpoint(events), datetime.now(UTC) + timedelta(days=2)), {"impossible_time"}),
        ]:
            assert kinds(verify([proof_of(events, 0, note)])) == expected

    def test_of_two_checkpoints_are_compared(self) -> None:
        events = bodies(2)
        notes = [at_time(checkpoint(events[:1]), BEGUN), at_time(checkpoint(events), BEGUN - timedelta(days=1))]
        path = [verifier.leaf_hash(events[1]).hex()]
        proof = {"format": verifier.CONSISTENCY_FORMAT, "old": notes[0], "new": notes[1], "path": path}
        assert kinds(verifier.verify_consistency(proof, pinned=[PINNED])) == {"clock_step_back"}


def test_a_removed_event_is_named_although_newer_ones_fill_its_place() -> None:
    """With the gap closed and three newer events the log is no shorter than its checkpoints."""
    events = [*bodies(5), *bodies(15)[6:]]
    assert len(events) > SIZE
    report = verify(log_of(events, NOTES), NOTES)
    assert kinds(report) == {"deletion"}


def test_inserted_events_are_no_removed_ones() -> None:
    new = [event(number, at=event(30)["at"]) for number in range(30, 34)]
    report = verify(log_of([*bodies(5), *new, *bodies(SIZE)[5:]], NOTES), NOTES)
    assert "deletion" not in kinds(report)


# Any mutation


def readings(records: Sequence[Record]) -> list[object]:
    """What an auditor reads in an export: the name of the log, and its events in order.

    Neither the time of the export nor the anchors that it claims are signed.
    """
    read: list[object] = [records[0]["origin"], records[0]["size"], records[0]["details"]]
    return read + [record for record in records if "event" in record]


OTHER_VALUES = st.sampled_from([None, True, 0, 1, -1, 2**63, 1.0, "", "x", "00" * 32, id_of(3), [], {}, [1], {"x": 1}])


def change_value(data: st.DataObject, record: Any) -> None:
    """Changes one value of a record, at any depth."""
    while True:
        keys = sorted(record) if isinstance(record, dict) else list(range(len(record)))
        key = data.draw(st.sampled_from(keys))
        inner = record[key]
        if inner and isinstance(inner, dict | list) and data.draw(st.integers(0, 3)):
            record = inner
            continue
        what = data.draw(st.sampled_from(["other", "letter", "remove", "add", "again"]))
        if what == "letter" and isinstance(inner, str) and inner:
            place = data.draw(st.integers(0, len(inner) - 1))
            record[key] = inner[:place] + data.draw(st.sampled_from("0a\n\x1bÄ")) + inner[place + 1 :]
        elif what == "letter" and type(inner) is int:
            record[key] = inner + data.draw(st.sampled_from([-1, 1]))
        elif what == "remove":
            del record[key]
        elif what == "add" and isinstance(record, dict):
            record[data.draw(st.sampled_from(["x", "index", "event", "details", "waiting", "end"]))] = inner
        else:
            record[key] = deepcopy(data.draw(OTHER_VALUES))
        return


def mutate(data: st.DataObject, records: list[Record]) -> None:
    place, other = (data.draw(st.integers(0, len(records) - 1)) for _ in range(2))
    what = data.draw(st.sampled_from(["drop", "repeat", "swap", "move", "change", "change", "change", "cut", "invent"]))
    if what == "drop":
        del records[place]
    elif what == "repeat":
        records.insert(other, deepcopy(records[place]))
    elif what == "swap":
        records[place], records[other] = records[other], records[place]
    elif what == "move":
        records.insert(other, records.pop(place))
    elif what == "cut":
        del records[max(1, min(place, other)) : max(place, other)]
    elif what == "invent":
        invented = data.draw(st.sampled_from([waiting(FORGED), leaf(12, FORGED), checkpoint_record(NOTES[0])]))
        records.insert(place, deepcopy(invented))
    else:
        change_value(data, records[place])


@settings(max_examples=250)
@given(st.data())
def test_no_mutation_that_changes_what_is_read_is_ok(data: st.DataObject) -> None:
    records = deepcopy(RECORDS)
    for _ in range(data.draw(st.integers(1, 3))):
        if records:
            mutate(data, records)
    written = json.dumps if data.draw(st.booleans()) else lambda each: json.dumps(each, ensure_ascii=False)
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"]))
    lines = [f"{written(each)}\n".encode(encoding) for each in records]
    with_anchors = data.draw(st.booleans())
    try:
        report = verifier.verify_export(lines, anchors=NOTES if with_anchors else [], pinned=[PINNED])
    except CannotRead:
        return
    assert verifier.report_text(report).isascii()
    if report.verdict in ("ok", "unanchored"):
        assert (readings(records), report.signed) == (readings(RECORDS), SIZE)


@settings(max_examples=100)
@given(st.data())
def test_no_mutation_of_the_text_that_changes_what_is_read_is_ok(data: st.DataObject) -> None:
    text = text_of(RECORDS)
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.sampled_from([start, start + 1, start + 2, start + 300, len(text)]))
    changed = text[:start] + data.draw(st.sampled_from(["", "0", " ", "\n", "\x00", '"', ",", text[:40]])) + text[stop:]
    try:
        report = verifier.verify_export(changed.splitlines(keepends=True), anchors=NOTES, pinned=[PINNED])
    except CannotRead:
        return
    if report.verdict == "ok":
        assert readings([json.loads(line) for line in changed.splitlines()]) == readings(RECORDS)
