"""Receipts: issued for an event of the log, verified without memadmin, and forged."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.core.management import CommandError, call_command
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from memadmin import audit
from memadmin.audit.transparency import anchors, checkpoints, keys, receipts, verifier
from memadmin.audit.transparency.notes import SigningKey
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.audit.transparency.verifier import CannotRead, Key, ReceiptReport
from tests.audit.events import TRIED, as_owner, back_up, bring_back, drop_backup, record_events, write_events
from tests.audit.made_logs import KEY, ORIGIN, PINNED, STRANGER, Record, bodies, checkpoint, event
from tests.audit.made_receipts import APPROVER, INDEX, PAYLOAD, changed, log_for, proof_in, receipt, signed
from tests.audit.test_verifier import anything, run

TEXT = signed(receipt())
NOTE = receipt()["checkpoint"]
ELSEWHERE = SigningKey("memadmin/elsewhere", KEY.seed)


def verify(text: bytes, anchors: tuple[str, ...] = (), pinned: tuple[Key, ...] = (PINNED,)) -> ReceiptReport:
    return verifier.verify_receipt(text, anchors=anchors, pinned=pinned)


def with_members(**members: Any) -> bytes:
    """The receipt with other members, under its old signature."""
    return verifier.canonical(json.loads(TEXT) | members)


class TestAGenuineReceipt:
    def test_is_ok_where_an_anchor_confirms_its_checkpoint(self) -> None:
        assert (verify(TEXT).verdict, verify(TEXT).findings) == ("unanchored", [])
        report = verify(TEXT + b"\n", (NOTE,))
        assert (report.verdict, report.findings, report.signed_by) == ("ok", [], str(KEY.public))

    def test_is_put_in_words(self) -> None:
        text = verifier.receipt_text(verify(TEXT, (NOTE,)))
        assert text.startswith("OK: the receipt is genuine, its event is in the signed log, and an anchor confirms it.")
        for line in (
            "Outcome: complete, with exceptions.",
            f"Approver: {APPROVER}.",
            "Rows erased: 2,031.",
            "  sessions/Bots_2: 1,950",
            "Rows kept by a legal hold: 4.",
            "  store_unreachable in sessions/old-bots: 7 rows",
            "Out of reach: 2.",
            "  backup in database, until 2026-12-21",
            "  tracing_export in provider, without an end",
            "Scan at 2026-11-21T19:31:00.000000Z: 5,000,000 rows read, 0 found.",
            "Backups may contain the data until 2026-12-21.",
            "Versions: code 0.1.0, data_map 2026-11-20.",
        ):
            assert line in text.splitlines()

    def test_is_one_object_for_scripts(self) -> None:
        found = verify(TEXT).as_json()
        assert found["verdict"] == "unanchored"
        assert found["receipt"]["payload"] == PAYLOAD
        assert "Rows erased: 2,031." in found["receipt"]["statements"]

    def test_is_named_by_the_event_as_an_object_too(self) -> None:
        events = log_for(PAYLOAD)
        events[INDEX] |= {"shown": [], "object_kind": "erasure.receipt", "object": receipt()["id"]}
        assert verify(signed(receipt(**proof_in(events, INDEX, checkpoint(events))))).findings == []

    def test_of_a_later_key_is_known_by_a_note_that_the_pinned_key_signed_too(self) -> None:
        text = signed(receipt(key=STRANGER), STRANGER)
        handover = checkpoint(bodies(3), STRANGER, before=KEY)
        assert verify(text, (handover,)).findings == []
        assert {finding.kind for finding in verify(text).findings} == {"unknown_key"}


def other_event() -> Record:
    """The proof of another event of the same log."""
    return proof_in(log_for(PAYLOAD), 1, NOTE)


def elsewhere() -> Record:
    """The same event in another log, signed by the same key."""
    events = [event(1, outcome="denied"), *log_for(PAYLOAD)[1:]]
    return proof_in(events, INDEX, checkpoint(events, ELSEWHERE))


FORGED: dict[str, tuple[bytes, set[str]]] = {
    "a count was changed": (with_members(payload=changed(counts={"memories": 1})), {"forged_receipt", "other_event"}),
    "an outcome was changed": (with_members(payload=changed(outcome="complete")), {"forged_receipt", "other_event"}),
    "a count and the id were changed": (
        with_members(**{key: receipt(changed(counts={}))[key] for key in ("payload", "id")}),
        {"forged_receipt", "other_event"},
    ),
    "the event was swapped": (with_members(event=bodies(4)[1]), {"forged_receipt", "other_event", "bad_proof"}),
    "the proof is of another event": (with_members(**other_event()), {"forged_receipt", "other_event"}),
    "the proof is of another event, and signed": (signed(receipt(**other_event())), {"other_event"}),
    "the event is in no log, and signed": (
        signed(receipt(event=receipt()["event"] | {"outcome": "denied"})),
        {"bad_proof"},
    ),
    "the id is another, and signed": (signed(receipt(id=str(UUID(int=1)))), {"forged_receipt"}),
    "another key signed": (signed(receipt(), STRANGER), {"forged_receipt"}),
    "another key signed, and is named": (
        signed(receipt(key=STRANGER) | {"checkpoint": NOTE}, STRANGER),
        {"forged_receipt"},
    ),
    "another key signed, and a log of its own": (signed(receipt(key=STRANGER), STRANGER), {"unknown_key"}),
    "the signature is without its context": (signed(receipt(), context=b""), {"forged_receipt"}),
    "the checkpoint is of another log": (with_members(**elsewhere()), {"forged_receipt", "other_log"}),
    "all of it is of another log with the same key": (
        signed(receipt(**elsewhere(), key=ELSEWHERE), ELSEWHERE),
        {"other_log"},
    ),
    "the checkpoint was changed": (
        with_members(checkpoint=NOTE.replace("epoch 1", "epoch 2")),
        {"forged_receipt", "forged_checkpoint"},
    ),
    "it was written anew": (json.dumps(json.loads(TEXT), indent=1).encode(), {"forged_receipt"}),
    "a blank follows": (TEXT + b" ", {"forged_receipt"}),
    "a number is huge": (with_members(payload=changed(number=10**30)), {"unreadable"}),
    "an index is huge": (with_members(index=10**30), {"unreadable"}),
    "an event has a huge number": (with_members(event=receipt()["event"] | {"number": 10**300}), {"unreadable"}),
    "a count is negative": (with_members(payload=changed(counts={"memories": -1})), {"unreadable"}),
    "a count has a fraction": (with_members(payload=changed(number=12.0)), {"unreadable"}),
    "a member is missing": (verifier.canonical(receipt()), {"unreadable"}),
    "there is one more member": (with_members(comment="approved"), {"unreadable"}),
    "the key is none": (with_members(key="memadmin+00000000+AAAA"), {"unreadable"}),
    "the signature is none": (with_members(signature="=" * 88), {"unreadable"}),
    "the payload is a list": (with_members(payload=[]), {"unreadable"}),
}


@pytest.mark.parametrize("case", FORGED)
def test_each_forgery_is_named(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, expected = FORGED[case]
    report = verify(text, (NOTE,))
    assert ({finding.kind for finding in report.findings}, report.verdict) == (expected, "broken"), report.findings
    (tmp_path / "receipt.json").write_bytes(text)
    assert verifier.main(["--receipt", str(tmp_path / "receipt.json"), "--key", str(PINNED)]) == 1
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("BROKEN: the receipt was changed, or does not belong to this log")
    assert not [line for line in others if line.startswith(("Outcome", "Rows"))]
    assert report.as_json()["receipt"] is None


def test_an_anchor_with_another_root_contradicts_a_receipt() -> None:
    assert {finding.kind for finding in verify(TEXT, (checkpoint(bodies(4)),)).findings} == {"rewrite"}


NO_RECEIPT: dict[str, tuple[bytes, str]] = {
    "it is truncated": (TEXT[:-40], "is no complete receipt"),
    "it is empty": (b"", "is no complete receipt"),
    "a member occurs twice": (TEXT.replace(b'"number":12', b'"number":12,"number":13'), "is no complete receipt"),
    "something follows": (TEXT + b"{}", "is no complete receipt"),
    "a number has 5,000 digits": (TEXT.replace(b'"number":12', b'"number":' + b"9" * 5000), "is no complete receipt"),
    "a number is infinite": (TEXT.replace(b'"number":12', b'"number":1e999'), "is no complete receipt"),
    "it is no JSON": (b"Dear Sir or Madam,\n", "is no complete receipt"),
    "it is no text": (b"\xff\xfe\x00", "is no complete receipt"),
    "it is too deep": (b"[" * 100_000, "is no complete receipt"),
    "it is too long": (b" " * verifier.MOST_RECEIPT + TEXT, "has more than 1,048,576 bytes"),
    "it is a list": (b"[]", "does not state the format"),
    "it is something else": (b'{"format":"memadmin-audit-event/1"}', "does not state the format"),
    "it is of a later version": (
        TEXT.replace(b"memadmin-receipt/1", b"memadmin-receipt/2"),
        "has the format memadmin-receipt/2; this verifier reads memadmin-receipt/1",
    ),
}


@pytest.mark.parametrize("case", NO_RECEIPT)
def test_what_is_no_receipt_cannot_be_read(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, sentence = NO_RECEIPT[case]
    (tmp_path / "receipt.json").write_bytes(text)
    assert verifier.main(["--receipt", str(tmp_path / "receipt.json"), "--key", str(PINNED)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("verifier: ")
    assert sentence in printed.err


@given(st.integers(0, len(TEXT) - 1), st.integers(1, 255))
def test_no_changed_byte_is_ok(place: int, difference: int) -> None:
    text = TEXT[:place] + bytes([TEXT[place] ^ difference]) + TEXT[place + 1 :]
    try:
        report = verify(text)
    except CannotRead:
        return
    assert report.verdict == "broken"
    assert verifier.receipt_text(report).isascii()


@given(st.data())
def test_whatever_a_receipt_contains_the_verifier_answers(data: st.DataObject) -> None:
    found = json.loads(TEXT)
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = found
        while isinstance(place, dict | list) and place:
            key: Any = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
                place[key] = data.draw(anything)
                break
            place = place[key]
    text = json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
    try:
        report = verify(text)
    except CannotRead:
        return
    assert report.verdict == ("unanchored" if text == TEXT else "broken")
    assert verifier.receipt_text(report).isascii()


def test_no_signature_is_valid_for_a_receipt_and_a_checkpoint() -> None:
    content = receipts.CONTEXT + verifier.canonical(receipt())
    assert b"\n" not in content
    assert NOTE.rpartition("\n\n")[0].count("\n") > 1
    line = KEY.signature_line(content.decode())
    for end in ("\n\n", "\n\n\n"):
        with pytest.raises(verifier.InvalidCheckpointNote):
            verifier.SignedCheckpoint.parse(content.decode() + end + line)


def test_can_be_verified_by_hand_as_documented() -> None:
    """With the definitions in docs/audit.md, and no code of the verifier."""
    found = json.loads(TEXT)
    unsigned = {name: value for name, value in found.items() if name != "signature"}
    public = Ed25519PublicKey.from_public_bytes(KEY.public.key)
    public.verify(base64.b64decode(found["signature"]), b"memadmin-receipt/1\0" + rfc8785.dumps(unsigned))
    digest = sha256(b"memadmin-receipt/1:" + rfc8785.dumps(found["payload"])).digest()[:16]
    version, variant = digest[6] & 0x0F | 0x80, digest[8] & 0x3F | 0x80
    own_id = UUID(bytes=digest[:6] + bytes([version, digest[7], variant]) + digest[9:])
    assert found["id"] == str(own_id)
    assert str(own_id) in found["event"]["shown"]
    origin, size, root, *_ = found["checkpoint"].split("\n")
    assert (origin, int(size)) == (ORIGIN, 4)
    leaf, path = sha256(b"\0" + rfc8785.dumps(found["event"])).digest(), [bytes.fromhex(step) for step in found["path"]]
    # Index 2 of 4: the next leaf is on the right, the first two are on the left.
    above = sha256(b"\1" + leaf + path[0]).digest()
    assert sha256(b"\1" + path[1] + above).digest() == base64.b64decode(root)


def test_the_verifier_and_the_issuer_derive_the_same_id() -> None:
    assert str(receipts.id_of(PAYLOAD)) == verifier.receipt_id(PAYLOAD) == receipt()["id"]
    assert receipts.id_of(PAYLOAD).version == 8
    assert (receipts.FORMAT, receipts.CONTEXT) == (verifier.RECEIPT_FORMAT, verifier.RECEIPT_CONTEXT)


NOT_ALLOWED: dict[str, tuple[dict[str, Any], str]] = {
    "an e-mail address as a place": (changed(counts={"anna@example.com": 1}), "payload.counts has an entry"),
    "a sentence as a code": (
        changed(exceptions=[{"code": "Anna was here", "place": "memories", "count": 1}]),
        "payload.exceptions[0].code is not a code",
    ),
    "a name as an actor": (
        changed(actors=[{"role": "approver", "actor": "anna"}]),
        "payload.actors[0].actor is not a UUID",
    ),
    "another role": (changed(actors=[{"role": "anna", "actor": APPROVER}]), "payload.actors[0].role is none of"),
    "the key of the subject": (changed(subject="customer-4711"), "payload.subject is not a UUID"),
    "a comment": (changed(comment="she called"), "payload has other members than request, number"),
    "a comment inside": (
        changed(scans=[PAYLOAD["scans"][0] | {"comment": "she called"}]),
        "payload.scans[0] has other members",
    ),
    "no scans": ({key: value for key, value in PAYLOAD.items() if key != "scans"}, "payload.scans is missing"),
    "a count that is a yes": (changed(counts={"memories": True}), "payload.counts.memories is not a count"),
    "a count that is a text": (changed(held={"memories": "7"}), "payload.held.memories is not a count"),
    "a count that is too large": (changed(counts={"memories": 2**53}), "payload.counts.memories is not a count"),
    "a number with a fraction": (changed(number=1.5), "payload.number is not a count"),
    "a day that does not exist": (changed(times={"received_on": "2026-02-30"}), "payload.times.received_on is neither"),
    "a time without a zone": (changed(backups_until="2026-11-21T19:30:00.123456"), "payload.backups_until is neither"),
    "a code with a line break": (
        changed(versions={"code": "1\n", "data_map": "1", "policy": None}),
        "payload.versions",
    ),
    "another kind": (changed(kind="forgetting"), "payload.kind is none of erasure, access, restriction"),
    "another outcome": (changed(outcome=["complete"]), "payload.outcome is none of complete"),
    "a place that is too long": (changed(counts={"a" * 65: 1}), "payload.counts has an entry"),
    "too many places": (changed(counts={f"store-{number}": 1 for number in range(1001)}), "payload.counts is not an"),
}


@pytest.mark.parametrize("case", NOT_ALLOWED)
def test_a_payload_contains_nothing_but_what_is_allowed(case: str) -> None:
    payload, sentence = NOT_ALLOWED[case]
    for refused in (lambda: receipts.id_of(payload), lambda: receipts.issue(payload, event=uuid4())):
        with pytest.raises(receipts.InvalidReceipt) as problem:
            refused()
        assert str(problem.value).startswith(sentence)
        assert not any(word in str(problem.value).lower() for word in ("@", "she called", "customer", "was here"))


# In a database


def record_receipt(payload: dict[str, Any] = PAYLOAD) -> UUID:
    with transaction.atomic():
        return audit.record(TRIED, shown=[receipts.id_of(payload)])


@pytest.fixture
def log(empty_log: None, settings: Settings, tmp_path: Path) -> Path:
    """Nine events under an anchored checkpoint; gives the anchor's file."""
    settings.ANCHOR_PATH = tmp_path / "anchor.jsonl"
    write_events(9)
    Sequencer().finish()
    anchors.publish()
    return tmp_path / "anchor.jsonl"


@pytest.fixture
def issued(log: Path) -> str:
    """A receipt whose checkpoint is anchored."""
    recorded = record_receipt()
    write_events(5)
    Sequencer().finish()
    anchors.publish()
    return receipts.issue(PAYLOAD, event=recorded)


def the_key() -> str:
    latest = checkpoints.latest()
    assert latest
    return str(latest.key)


@pytest.mark.django_db(transaction=True)
class TestIssuing:
    def test_waits_for_the_index_and_for_the_signature(self, log: Path) -> None:
        recorded = record_receipt()
        with pytest.raises(receipts.NotYetSequenced, match=r"cannot be issued yet\. The event has no index"):
            receipts.issue(PAYLOAD, event=recorded)
        Sequencer().step()
        with pytest.raises(receipts.NotYetSequenced, match="No checkpoint covers the event yet"):
            receipts.issue(PAYLOAD, event=recorded)
        Sequencer().finish()
        text = receipts.issue(PAYLOAD, event=recorded)
        assert verify(text.encode(), pinned=(Key.parse(the_key()),)).findings == []

    def test_of_a_log_without_a_checkpoint_waits(self, empty_log: None) -> None:
        with pytest.raises(receipts.NotYetSequenced):
            receipts.issue(PAYLOAD, event=record_receipt())

    def test_needs_a_key(self, log: Path, settings: Settings) -> None:
        recorded = record_receipt()
        Sequencer().finish()
        settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
        with pytest.raises(keys.NoSigningKey, match=r"^A receipt must be signed\. Set MEMADMIN_SIGNING_KEY\.$"):
            receipts.issue(PAYLOAD, event=recorded)

    def test_needs_an_event_that_names_the_payload(self, log: Path) -> None:
        recorded = record_receipt()
        Sequencer().finish()
        with pytest.raises(receipts.InvalidReceipt, match="The event does not name this receipt"):
            receipts.issue(changed(number=13), event=recorded)
        with pytest.raises(receipts.InvalidReceipt, match="has no event"):
            receipts.issue(PAYLOAD, event=uuid4())

    def test_needs_an_event_that_was_not_changed(self, log: Path) -> None:
        recorded = record_receipt()
        Sequencer().finish()
        as_owner(f"UPDATE audit_event SET shown = '{{{receipts.id_of(changed(number=13))}}}' WHERE id = '{recorded}'")
        with pytest.raises(receipts.InvalidReceipt, match="does not lead to the root"):
            receipts.issue(changed(number=13), event=recorded)

    def test_after_a_rotation_waits_for_a_checkpoint_of_the_new_key(self, log: Path, settings: Settings) -> None:
        recorded = record_receipt()
        Sequencer().finish()
        settings.SIGNING_KEY_BEFORE, settings.SIGNING_KEY = settings.SIGNING_KEY, bytes(range(3, 35))
        with pytest.raises(receipts.NotYetSequenced):
            receipts.issue(PAYLOAD, event=recorded)
        Sequencer().finish()
        text = receipts.issue(PAYLOAD, event=recorded)
        assert verify(text.encode(), pinned=(Key.parse(the_key()),)).findings == []

    def test_is_repeatable_up_to_the_checkpoint(self, log: Path) -> None:
        recorded = record_receipt()
        Sequencer().finish()
        first = receipts.issue(PAYLOAD, event=recorded)
        assert receipts.issue(PAYLOAD, event=recorded) == first


@pytest.mark.django_db(transaction=True)
class TestAReader:
    def test_verifies_it_with_one_file_and_a_key(self, issued: str, log: Path, tmp_path: Path) -> None:
        (tmp_path / "receipt.json").write_text(issued)
        arguments = ["--receipt", "receipt.json", "--key", the_key()]
        found = run(*arguments, "--anchor", "anchor.jsonl", directory=tmp_path)
        assert (found.returncode, found.stderr) == (0, "")
        assert found.stdout.startswith("OK: the receipt is genuine")
        assert "Rows erased: 2,031." in found.stdout
        alone = json.loads(run(*arguments, "--json", directory=tmp_path).stdout)
        assert (alone["verdict"], alone["receipt"]["payload"]) == ("unanchored", PAYLOAD)

    def test_needs_a_key(self, issued: str, tmp_path: Path) -> None:
        """Anyone can make a receipt with a key of their own."""
        (tmp_path / "receipt.json").write_text(issued)
        found = run("--receipt", "receipt.json", directory=tmp_path)
        assert found.returncode == 2
        assert "--receipt needs --key" in found.stderr
        assert run("receipt.json", "--key", the_key(), directory=tmp_path).stderr == (
            "verifier: The file is a receipt. Verify it with --receipt.\n"
        )

    def test_is_told_that_there_is_no_file(self, tmp_path: Path, empty_log: None) -> None:
        found = run("--receipt", "nowhere.json", "--key", str(PINNED), directory=tmp_path)
        assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1)


Verify = Callable[..., tuple[int, str]]


@pytest.mark.django_db(transaction=True)
class TestTheCommand:
    @pytest.fixture
    def verify_here(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verify:
        def verify_here(text: str | bytes, **options: Any) -> tuple[int, str]:
            (tmp_path / "receipt.json").write_bytes(text if isinstance(text, bytes) else text.encode())
            status = 0
            try:
                call_command("verify_receipt", str(tmp_path / "receipt.json"), **options)
            except SystemExit as ended:
                status = int(ended.code or 0)
            return status, capsys.readouterr().out

        return verify_here

    def test_confirms_a_receipt_of_this_log(self, issued: str, verify_here: Verify) -> None:
        status, out = verify_here(issued)
        assert (status, out.splitlines()[0][:3]) == (0, "OK:")
        assert "Rows kept by a legal hold: 4." in out
        status, out = verify_here(issued, as_json=True)
        assert (status, json.loads(out)["verdict"], json.loads(out)["findings"]) == (0, "ok", [])

    def test_without_an_anchor_is_unanchored(self, issued: str, verify_here: Verify, settings: Settings) -> None:
        settings.ANCHOR_PATH = None
        status, out = verify_here(issued)
        assert (status, out[:11]) == (0, "UNANCHORED:")

    def test_confirms_a_receipt_of_a_former_key(self, issued: str, verify_here: Verify, settings: Settings) -> None:
        settings.SIGNING_KEY_BEFORE, settings.SIGNING_KEY = settings.SIGNING_KEY, bytes(range(3, 35))
        Sequencer().finish()
        settings.SIGNING_KEY_BEFORE = b""
        assert verify_here(issued)[0] == 0

    def test_of_a_process_without_keys_takes_the_key_of_the_log(
        self, issued: str, verify_here: Verify, settings: Settings
    ) -> None:
        settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
        status, out = verify_here(issued)
        assert status == 0
        assert "no signing key and no trusted keys; the log itself names memadmin/" in out

    @pytest.mark.parametrize(
        ("damage", "kind"),
        [
            (
                ("DELETE FROM audit_event WHERE number IN (SELECT event_number FROM audit_leaf WHERE index = 9)",),
                "bad_proof",
            ),
            (("UPDATE audit_event SET outcome = 'denied' WHERE shown <> '{}'",), "bad_proof"),
            (("UPDATE audit_leaf SET hash = sha256('x') WHERE index = 3",), "rewrite"),
            (("DELETE FROM audit_leaf WHERE index = 3",), "damaged_node"),
        ],
    )
    def test_compares_a_genuine_receipt_with_the_log(
        self, damage: tuple[str, ...], kind: str, issued: str, verify_here: Verify
    ) -> None:
        as_owner(*damage)
        status, out = verify_here(issued, as_json=True)
        assert (status, {finding["kind"] for finding in json.loads(out)["findings"]}) == (1, {kind})

    def test_after_a_restore_says_that_the_log_is_older(
        self, log: Path, verify_here: Verify, settings: Settings
    ) -> None:
        back_up("older")
        recorded = record_receipt()
        Sequencer().finish()
        text = receipts.issue(PAYLOAD, event=recorded)
        bring_back("older")
        drop_backup("older")
        status, out = verify_here(text, as_json=True)
        kinds = {finding["kind"] for finding in json.loads(out)["findings"]}
        assert (status, kinds) == (1, {"bad_proof", "restored_backup"})

    def test_refuses_a_receipt_of_another_console_with_the_same_key(self, log: Path, verify_here: Verify) -> None:
        key = keys.signing_key(ORIGIN)
        assert key
        status, out = verify_here(signed(receipt(key=key), key), as_json=True)
        kinds = {finding["kind"] for finding in json.loads(out)["findings"]}
        assert (status, kinds) == (1, {"other_log", "bad_proof", "rewrite"})

    def test_refuses_a_changed_receipt(self, issued: str, verify_here: Verify) -> None:
        status, out = verify_here(issued.replace('"memories":31', '"memories":30'))
        assert (status, out[:7]) == (1, "BROKEN:")
        assert "Rows" not in out

    @pytest.mark.parametrize("text", ["", "{}", "no receipt"])
    def test_of_any_other_file_is_a_sentence(self, text: str, log: Path, verify_here: Verify) -> None:
        with pytest.raises(CommandError, match=r"^The file is no ") as problem:
            verify_here(text)
        assert problem.value.returncode == 2

    def test_of_no_file_or_of_no_log_is_a_sentence(self, empty_log: None, verify_here: Verify, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="cannot be read") as problem:
            call_command("verify_receipt", str(tmp_path / "nowhere"))
        assert problem.value.returncode == 2
        record_events(1)
        with pytest.raises(CommandError, match="has no checkpoint yet"):
            verify_here(TEXT)
