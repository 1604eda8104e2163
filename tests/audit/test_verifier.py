"""The stand-alone verifier as a reader runs it: one file, on a machine without memadmin."""

from __future__ import annotations

import ast
import gzip
import json
import subprocess
import sys
from array import array
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as project
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo
from pytest_django import Settings

from memadmin import audit
from memadmin.audit.log import ids
from memadmin.audit.models import AuditCheckpoint, AuditEvent, AuditVerdict
from memadmin.audit.transparency import anchors, checkpoints, keys, notes, proofs, tree, verifier
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.audit.transparency.verifier import CannotRead, Tree
from tests.audit.events import TRIED, as_owner, write_events
from tests.audit.made_logs import signed_log
from tests.audit.test_notes import CHECKPOINT, KEY, NEXT_KEY, NOTE
from tests.audit.test_tree import BIG, LEAVES, sizes

VERIFIER = Path(verifier.__file__)


class TestTheFile:
    def test_needs_nothing_but_cryptography_and_for_a_database_psycopg(self) -> None:
        imported = {
            (node.module if isinstance(node, ast.ImportFrom) else alias.name).split(".")[0]  # type: ignore[union-attr]
            for node in ast.walk(ast.parse(VERIFIER.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        assert imported - sys.stdlib_module_names == {"cryptography", "psycopg"}

    @pytest.mark.parametrize(
        "line", (project.CHECKOUT_DIR / "tests" / "data" / "audit-leaves-v1.jsonl").read_text().splitlines()
    )
    def test_hashes_events_of_every_version_as_they_were(self, line: str) -> None:
        golden = json.loads(line)
        assert verifier.leaf_hash(json.loads(golden["bytes"])).hex() == golden["leaf"]

    @given(st.integers(0, 600), st.integers(0, 600))
    def test_grows_the_tree_of_the_definition(self, before: int, more: int) -> None:
        grown = Tree().extend(b"".join(LEAVES[:before]))
        copied = grown.copy().extend(b"".join(LEAVES[before : before + more]))
        assert grown.root() == tree.root(before, BIG.read)
        assert copied.root() == tree.root(before + more, BIG.read)

    @given(st.data(), sizes)
    def test_agrees_with_the_log_about_proofs(self, data: st.DataObject, size: int) -> None:
        index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
        root, old_root = tree.root(size, BIG.read), tree.root(old, BIG.read)
        path = tree.inclusion_proof(index, size, BIG.read)
        assert verifier.root_by_inclusion(index, size, LEAVES[index], path) == root
        path = tree.consistency_proof(old, size, BIG.read)
        assert verifier.consistency_holds(old, old_root, size, root, path)
        assert not verifier.consistency_holds(old, old_root, size, bytes(32), path)
        assert not verifier.consistency_holds(old, bytes(32), size, root, path)

    def test_reads_notes(self) -> None:
        found = verifier.SignedCheckpoint.parse(NOTE)
        assert (found.origin, found.size, found.root) == (CHECKPOINT.origin, CHECKPOINT.size, CHECKPOINT.root)
        assert str(found.key) == str(KEY.public)

    @given(st.integers(0, len(NOTE) - 1), st.characters(codec="utf-8"))
    def test_refuses_a_note_with_any_character_changed(self, place: int, character: str) -> None:
        changed = NOTE[:place] + character + NOTE[place + 1 :]
        if changed != NOTE:
            with pytest.raises(verifier.InvalidCheckpointNote):
                verifier.SignedCheckpoint.parse(changed)


def run(*arguments: str | Path, directory: Path) -> subprocess.CompletedProcess[str]:
    """A copy of the verifier, in isolation: nothing of the checkout is in its way or at hand."""
    copied = directory / "verifier.py"
    copied.write_bytes(VERIFIER.read_bytes())
    return subprocess.run(
        [sys.executable, "-I", str(copied), *map(str, arguments)], cwd=directory, capture_output=True, text=True
    )


@pytest.fixture
def log(empty_log: None, settings: Settings, tmp_path: Path) -> Path:
    """Twenty events under two checkpoints, both anchored; gives the anchor's file."""
    anchor = settings.ANCHOR_PATH = tmp_path / "anchor.jsonl"
    for _ in range(2):
        write_events(9)
        with transaction.atomic():
            audit.record(TRIED, details={"reason": "Größe 💡"})
        Sequencer().finish()
        anchors.publish()
    return anchor


@pytest.mark.django_db(transaction=True)
class TestAReader:
    def test_verifies_a_log_and_an_event_by_two_commands(self, log: Path, tmp_path: Path) -> None:
        event = AuditEvent.objects.order_by("number")[12]
        call_command("export_audit", str(tmp_path / "log.jsonl"), signed=True)
        call_command("export_audit", str(tmp_path / "event.json"), event=event.id)
        latest = checkpoints.latest()
        assert latest
        for file in ("log.jsonl", "event.json"):
            found = run(file, "--anchors", "anchor.jsonl", "--key", str(latest.key), directory=tmp_path)
            assert found.stderr == ""
            assert found.returncode == 0
            assert found.stdout.startswith("OK: nothing contradicts the log, and an anchor confirms it. Size 20, root ")

    def test_is_told_in_one_object_for_scripts(self, log: Path, tmp_path: Path) -> None:
        call_command("export_audit", str(tmp_path / "log.jsonl.gz"), signed=True)
        as_owner("UPDATE audit_event SET outcome = 'denied'")
        call_command("export_audit", str(tmp_path / "changed.jsonl.gz"))
        good, bad = (
            run(file, "--anchors", "anchor.jsonl", "--json", directory=tmp_path)
            for file in ("log.jsonl.gz", "changed.jsonl.gz")
        )
        assert (good.returncode, bad.returncode) == (0, 1)
        told = json.loads(good.stdout)
        assert (told["verdict"], told["size"], told["findings"]) == ("ok", 20, [])
        told = json.loads(bad.stdout)
        assert told["verdict"] == "broken"
        assert {finding["kind"] for finding in told["findings"]} == {"edited_body"}
        assert all(finding.keys() == {"kind", "event", "detail"} for finding in told["findings"])

    def test_may_keep_an_export_as_an_anchor_of_the_next(self, log: Path, tmp_path: Path) -> None:
        call_command("export_audit", str(tmp_path / "first.jsonl"))
        write_events(1)
        Sequencer().finish()
        call_command("export_audit", str(tmp_path / "second.jsonl"), signed=True)
        found = run("second.jsonl", "--anchors", "first.jsonl", "--json", directory=tmp_path)
        told = json.loads(found.stdout)
        assert (told["verdict"], told["anchored_size"]) == ("ok", 20)

    def test_is_told_when_nobody_outside_confirms_it(self, log: Path, tmp_path: Path) -> None:
        call_command("export_audit", str(tmp_path / "log.jsonl"), signed=True)
        found = run("log.jsonl", directory=tmp_path)
        assert found.returncode == 0
        assert found.stdout.startswith("UNANCHORED: nothing contradicts the log, but no anchor confirms it")
        assert "No key was pinned" in found.stdout

    def test_is_told_which_events_are_not_signed_yet(self, log: Path, tmp_path: Path) -> None:
        """The export records itself, after the last checkpoint."""
        call_command("export_audit", str(tmp_path / "log.jsonl"))
        found = run("log.jsonl", "--anchors", "anchor.jsonl", directory=tmp_path)
        assert found.returncode == 3
        assert found.stdout.startswith("UNSIGNED: 1 of 21 events have no valid signature")

    def test_of_a_database_needs_a_connection_only(self, log: Path, tmp_path: Path) -> None:
        params = connection.get_connection_params()
        dsn = make_conninfo(host=params["host"], port=params["port"], user=params["user"], dbname=params["dbname"])
        found = run("--dsn", dsn, "--anchors", "anchor.jsonl", "--json", directory=tmp_path)
        assert found.returncode == 0, found.stderr
        assert json.loads(found.stdout)["verdict"] == "ok"
        log.write_text("".join(log.read_text().splitlines(keepends=True)[:1]))
        cut = json.loads(run("--dsn", dsn, "--anchors", "anchor.jsonl", "--json", directory=tmp_path).stdout)
        assert [finding["kind"] for finding in cut["findings"]] == ["cut_anchor"]
        refused = run("--dsn", make_conninfo(dsn, dbname="nowhere"), directory=tmp_path)
        assert refused.returncode == 2
        assert refused.stderr.startswith("verifier: The database cannot be read: ")

    def test_sees_details_that_were_changed_in_the_file(self, log: Path, tmp_path: Path) -> None:
        call_command("export_audit", str(tmp_path / "log.jsonl"), details=True)
        text = (tmp_path / "log.jsonl").read_text()
        assert "Größe 💡" in text
        (tmp_path / "changed.jsonl").write_text(text.replace("Größe 💡", "Größe 💣"))
        found = run("changed.jsonl", "--json", directory=tmp_path)
        assert {finding["kind"] for finding in json.loads(found.stdout)["findings"]} == {"edited_details"}

    def test_sees_that_a_file_is_not_whole(self, log: Path, tmp_path: Path) -> None:
        call_command("export_audit", str(tmp_path / "log.jsonl"))
        lines = (tmp_path / "log.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / "short.jsonl").write_text("".join(lines[:-1]))
        found = json.loads(run("short.jsonl", "--json", directory=tmp_path).stdout)
        assert [finding["kind"] for finding in found["findings"]] == ["incomplete_file"]

    def test_verifies_a_selection_line_by_line(self, log: Path, tmp_path: Path) -> None:
        *proved, last = [proofs.proof_of(event).as_json() for event in AuditEvent.objects.order_by("number")[3:9]]
        waiting = {"format": proofs.FORMAT, "event": last["event"], "index": None}
        lines = [json.dumps(each) + "\n" for each in [*proved, waiting]]
        for count, verdict, status in ((5, "ok", 0), (6, "unsigned", 3)):
            (tmp_path / "some.jsonl").write_text("".join(lines[:count]))
            found = run("some.jsonl", "--anchors", "anchor.jsonl", "--json", directory=tmp_path)
            told = json.loads(found.stdout)
            assert (told["verdict"], told["signed"], found.returncode) == (verdict, 5, status)
            assert any(f"selection of {count} events" in note for note in told["notes"])
        (tmp_path / "some.jsonl").write_text("".join(lines).replace("succeeded", "denied", 1))
        told = json.loads(run("some.jsonl", "--json", directory=tmp_path).stdout)
        assert [(each["kind"], each["event"]) for each in told["findings"]] == [("bad_proof", proved[0]["event"]["id"])]

    def test_verifies_that_a_checkpoint_continues_another(self, log: Path, tmp_path: Path) -> None:
        call_command("export_audit", str(tmp_path / "proof.json"), between=(10, 20))
        assert run("proof.json", directory=tmp_path).returncode == 0
        proof = json.loads((tmp_path / "proof.json").read_text())
        proof["path"][0] = "00" * 32
        (tmp_path / "proof.json").write_text(json.dumps(proof, indent=1))
        assert run("proof.json", directory=tmp_path).returncode == 1

    @pytest.mark.parametrize(
        "content",
        [
            *(b"", b"\xff\xfe", b"[]\n", b'{"format": "something else"}\n{}\n', b"{\n"),
            # At a time of its own, or the case would have another name each second.
            gzip.compress(b"nothing", mtime=0),
        ],
    )
    def test_reads_a_sentence_about_any_other_file(self, content: bytes, tmp_path: Path, empty_log: None) -> None:
        (tmp_path / "file").write_bytes(content)
        found = run("file", directory=tmp_path)
        assert found.returncode == 2
        assert found.stderr.startswith("verifier: ")
        assert found.stderr.count("\n") == 1

    def test_reads_a_sentence_about_a_file_that_is_not_there(self, tmp_path: Path, empty_log: None) -> None:
        found = run("nowhere.jsonl", directory=tmp_path)
        assert (found.returncode, found.stderr.count("\n")) == (2, 1)


@pytest.mark.django_db(transaction=True)
class TestTheProofOfAnEvent:
    @pytest.fixture
    def proof(self, log: Path) -> dict[str, Any]:
        event = AuditEvent.objects.exclude(commitment=None).order_by("number").first()
        assert event
        return proofs.proof_of(event).as_json(with_details=True)

    def test_holds(self, proof: dict[str, Any], log: Path) -> None:
        report = verifier.verify_event(proof, anchors=verifier.notes_in(log.read_text()))
        assert report.verdict == "ok"

    def test_does_not_hold_when_something_was_changed(self, proof: dict[str, Any]) -> None:
        cases: list[tuple[Callable[[dict[str, Any]], object], str]] = [
            (lambda proof: proof["event"].update(outcome="denied"), "bad_proof"),
            (lambda proof: proof["event"].update(outcome="\ud800"), "bad_proof"),
            (lambda proof: proof.update(index=3), "bad_proof"),
            (lambda proof: proof["path"].reverse(), "bad_proof"),
            (lambda proof: proof["path"].pop(), "bad_proof"),
            (lambda proof: proof["details"].update(text="{}"), "edited_details"),
            (
                lambda proof: proof.update(checkpoint=proof["checkpoint"].replace("epoch 1", "epoch 2")),
                "forged_checkpoint",
            ),
            (lambda proof: proof.update(checkpoint=NOTE), "bad_proof"),
            (lambda proof: proof.pop("event"), "unreadable"),
            (lambda proof: proof.update(path=["no hash"]), "unreadable"),
        ]
        for change, kind in cases:
            changed = deepcopy(proof)
            change(changed)
            assert kind in {finding.kind for finding in verifier.verify_event(changed).findings}, kind

    def test_is_signed_by_the_key_that_the_reader_has(self, proof: dict[str, Any]) -> None:
        ours = verifier.SignedCheckpoint.parse(proof["checkpoint"]).key
        assert verifier.verify_event(proof, pinned=[ours]).findings == []
        stranger = verifier.Key(ours.name, NEXT_KEY.public.key)
        assert [each.kind for each in verifier.verify_event(proof, pinned=[stranger]).findings] == ["unknown_key"]

    def test_against_an_anchor_that_knows_better_is_a_rewrite(self, proof: dict[str, Any]) -> None:
        ours = notes.verified(proof["checkpoint"])
        key = keys.signing_key(ours.origin)
        assert key
        other = notes.sign(replace(ours, root=bytes(32)), key)
        assert [each.kind for each in verifier.verify_event(proof, anchors=[other]).findings] == ["rewrite"]


@pytest.mark.django_db(transaction=True)
class TestTheCommands:
    def test_verify_audit_prints_what_scripts_rely_on(
        self, log: Path, capsys: pytest.CaptureFixture[str], settings: Settings
    ) -> None:
        call_command("verify_audit", as_json=True)
        told = json.loads(capsys.readouterr().out)
        assert (told["verdict"], told["size"], told["findings"]) == ("ok", 20, [])
        assert told["root"] == bytes(AuditCheckpoint.objects.get(size=20).root).hex()
        assert AuditVerdict.objects.count() == 1
        settings.ANCHOR_PATH = None
        call_command("verify_audit", as_json=True)
        assert json.loads(capsys.readouterr().out)["verdict"] == "unanchored"

    def test_verify_audit_ends_with_1_when_the_log_is_broken(
        self, log: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        as_owner("UPDATE audit_leaf SET hash = sha256('x') WHERE index = 3")
        with pytest.raises(SystemExit) as ended:
            call_command("verify_audit")
        assert ended.value.code == 1
        assert capsys.readouterr().out.startswith("BROKEN: the log, the file or an anchor was changed. Size 20")

    def test_verify_audit_ends_with_3_when_older_events_are_not_signed(
        self, log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_events(1)
        Sequencer().step()
        call_command("verify_audit")
        assert "1 new events are not signed yet" in capsys.readouterr().out
        monkeypatch.setattr(verifier, "LONGEST_UNSIGNED", timedelta(0))
        monkeypatch.setattr(verifier, "BACKLOG_SECONDS", -1)
        with pytest.raises(SystemExit) as ended:
            call_command("verify_audit")
        assert ended.value.code == 3
        assert capsys.readouterr().out.startswith("UNSIGNED: 1 of 21 events have no valid signature")

    def test_verify_audit_of_nothing_is_unanchored(
        self, empty_log: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(verifier, "BACKLOG_SECONDS", -1)  # for a first checkpoint, which nobody writes
        call_command("verify_audit", as_json=True)
        told = json.loads(capsys.readouterr().out)
        assert (told["verdict"], told["size"], told["findings"]) == ("unanchored", 0, [])

    def test_exporting_is_recorded(self, log: Path, tmp_path: Path) -> None:
        event = AuditEvent.objects.latest("number")
        call_command("export_audit", str(tmp_path / "log.jsonl"))
        call_command("export_audit", str(tmp_path / "event.json"), event=event.id)
        assert list(AuditEvent.objects.order_by("number").values_list("type", "object_ref"))[-2:] == [
            ("log.exported", None),
            ("event.proof_exported", ids.ref_of(event)),
        ]

    def test_an_event_that_cannot_be_proved_yet_is_a_sentence(self, log: Path, tmp_path: Path) -> None:
        write_events(1)
        event = AuditEvent.objects.latest("number")
        with pytest.raises(CommandError, match="has no index in the log yet"):
            call_command("export_audit", str(tmp_path / "event.json"), event=event.id)
        with pytest.raises(CommandError, match="The log has no event"):
            call_command("export_audit", str(tmp_path / "event.json"), event="019aa7f3-1c00-7000-8000-000000000001")
        with pytest.raises(CommandError, match="There is no checkpoint of size 11"):
            call_command("export_audit", str(tmp_path / "proof.json"), between=(11, 20))
        with pytest.raises(CommandError, match="must be the smaller one"):
            call_command("export_audit", str(tmp_path / "proof.json"), between=(20, 10))
        with pytest.raises(CommandError, match="cannot be written"):
            call_command("export_audit", str(tmp_path / "nowhere" / "log.jsonl"))


def test_other_json_is_no_log() -> None:
    with pytest.raises(CannotRead):
        verifier.verify_export(['{"format": "memadmin-audit-log/2"}\n'])


@given(st.lists(st.integers(-1, 20), max_size=60), st.integers(1, 70))
def test_what_stands_there_twice_is_found(values: list[int], at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(verifier, "SORTED", at_once)
        found = list(verifier.repeated(array("q", values), -1))
    assert found == [(place, value) for place, value in enumerate(values) if value in values[:place] and value != -1]


def some_log() -> list[dict[str, Any]]:
    """An export of a few events, signed to its end."""
    return deepcopy(signed_log(4)[0])


def test_log_made_by_hand_is_whole() -> None:
    assert verifier.verify_export([json.dumps(each) for each in some_log()]).findings == []


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([-1, 0, 2**63, 10**30, "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@given(st.data())
def test_whatever_stands_in_a_file_the_verifier_answers(data: st.DataObject) -> None:
    """Files come from people who may want it to stumble."""
    records = some_log()
    for _ in range(data.draw(st.integers(1, 3))):
        record: Any = data.draw(st.sampled_from(records))
        while isinstance(record, dict) and record:
            key = data.draw(st.sampled_from(sorted(record)))
            if not isinstance(record[key], dict) or data.draw(st.booleans()):
                record[key] = data.draw(anything)
                break
            record = record[key]
    lines = data.draw(st.permutations([json.dumps(each) for each in records])) if data.draw(st.booleans()) else None
    try:
        report = verifier.verify_export(lines or [json.dumps(each) for each in records])
    except CannotRead:
        return
    assert report.verdict in ("broken", "unsigned", "epoch", "unanchored")
    assert verifier.report_text(report)


@pytest.mark.parametrize(("one", "other"), [(1, 2), (2, 3), (3, 4)])
def test_leaves_that_do_not_come_in_their_turn_are_named(one: int, other: int) -> None:
    """What they are may be right; an export that was tidied up by hand is none of ours."""
    records = some_log()
    records[one], records[other] = records[other], records[one]
    report = verifier.verify_export([json.dumps(each) for each in records])
    assert report.verdict == "broken"
    assert [found.kind for found in report.findings] == ["reordering"]


def test_json_that_is_too_deep_is_no_log() -> None:
    with pytest.raises(CannotRead):
        verifier.verify_export(["[" * 100_000])
