"""Places outside of the database: each keeps the first root of a size, and refuses another."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import boto3
import pytest
from moto.server import ThreadedMotoServer

from memadmin.audit.models import AuditAnchor
from memadmin.audit.transparency import anchors, verification
from memadmin.audit.transparency.anchors.base import NOWHERE, Ahead, Anchor, AnchorFailed, OtherLog, SecondRoot
from memadmin.audit.transparency.anchors.bucket import BucketAnchor
from memadmin.audit.transparency.anchors.file import FileAnchor
from memadmin.audit.transparency.anchors.webhook import WebhookAnchor
from memadmin.audit.transparency.notes import Checkpoint, SigningKey, sign, verified

KEY = SigningKey("memadmin/example", bytes(32))


def checkpoint(size: int, *, root: int = 0, epoch: int = 1, origin: str = "memadmin/example") -> Checkpoint:
    return Checkpoint(
        origin=origin,
        size=size,
        root=bytes([root]) * 32,
        at=datetime(2026, 11, 21, 19, 30, tzinfo=UTC),
        key=KEY.public,
        epoch=epoch,
    )


def put(place: Anchor, ours: Checkpoint) -> str:
    return place.put(ours, sign(ours, replace(KEY, name=ours.origin)))


class Receiver(BaseHTTPRequestHandler):
    """Keeps notes as the documentation asks of a receiver; `answers` says how it behaves otherwise."""

    kept: ClassVar[dict[tuple[int, int], dict[str, Any]]] = {}
    requests: ClassVar[list[tuple[str, dict[str, str]]]] = []
    answer: ClassVar[Callable[[Receiver], None] | None] = None

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.path, dict(self.headers)))
        if (answer := type(self).answer) is not None:
            answer(self)
            return
        known = self.kept.setdefault((body["epoch"], body["size"]), body)
        status = 200 if known["root"] == body["root"] else 409
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"kept as 17")

    def do_GET(self) -> None:
        self.requests.append((self.path, dict(self.headers)))

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[str]:
    Receiver.kept, Receiver.requests, Receiver.answer = {}, [], None
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    # It looks this often whether it is to end.
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/notes?log=1"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an empty bucket with object lock."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    name = f"audit-{os.urandom(6).hex()}"
    boto3.client("s3").create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    return name


@pytest.fixture(params=["file", "webhook", "bucket", "bucket with prefix"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Anchor:
    if request.param == "file":
        return FileAnchor(tmp_path / "anchor.jsonl")
    if request.param == "webhook":
        return WebhookAnchor(request.getfixturevalue("receiver"))
    return BucketAnchor(request.getfixturevalue("bucket"), "logs/one" if "prefix" in request.param else "", 30)


class TestEveryPlace:
    def test_keeps_checkpoints_as_they_come(self, place: Anchor) -> None:
        for size in (1, 9, 10, 1000):
            assert put(place, checkpoint(size))

    def test_takes_the_same_one_again(self, place: Anchor) -> None:
        put(place, checkpoint(7))
        put(place, checkpoint(7))

    def test_refuses_a_second_root_for_a_size(self, place: Anchor) -> None:
        put(place, checkpoint(7))
        with pytest.raises(SecondRoot, match="another root for size 7: the log was rewritten"):
            put(place, checkpoint(7, root=1))

    def test_takes_another_root_in_another_epoch(self, place: Anchor) -> None:
        put(place, checkpoint(7))
        put(place, checkpoint(7, root=1, epoch=2))

    def test_has_a_name_that_fits_and_holds_no_secret(self, place: Anchor) -> None:
        assert len(place.name) <= 64
        assert "?" not in place.name


class TestEveryPlaceThatCanBeRead:
    @pytest.fixture(params=["file", "bucket", "bucket with prefix"])
    def place(self, request: pytest.FixtureRequest, tmp_path: Path) -> Anchor:
        if request.param == "file":
            return FileAnchor(tmp_path / "anchor.jsonl")
        return BucketAnchor(request.getfixturevalue("bucket"), "logs/one" if "prefix" in request.param else "", 30)

    def test_gives_back_what_is_beyond_a_position(self, place: Anchor) -> None:
        assert place.after(NOWHERE) == []
        for size in (1, 9, 10, 1000):
            put(place, checkpoint(size))
        put(place, checkpoint(5, epoch=2))
        found = [verified(note) for note in place.after((1, 9))]
        assert [(each.epoch, each.size) for each in found] == [(1, 10), (1, 1000), (2, 5)]
        assert len(place.after(NOWHERE)) == 5
        assert place.after((2, 5)) == []

    def test_notices_that_the_log_was_longer(self, place: Anchor) -> None:
        put(place, checkpoint(1000))
        with pytest.raises(Ahead, match="has a checkpoint of size 1000, and the log is shorter") as ahead:
            put(place, checkpoint(7))
        assert ahead.value.known.size == 1000

    def test_belongs_to_one_log(self, place: Anchor) -> None:
        put(place, checkpoint(7))
        with pytest.raises(OtherLog, match="another log, memadmin/example"):
            put(place, checkpoint(8, origin="memadmin/other"))


class TestFile:
    def test_is_only_appended_to(self, tmp_path: Path) -> None:
        path = tmp_path / "anchor.jsonl"
        place, before = FileAnchor(path), b""
        for size in (1, 2, 3):
            put(place, checkpoint(size))
            assert path.read_bytes().startswith(before)
            before = path.read_bytes()
        assert [json.loads(line)["size"] for line in before.splitlines()] == [1, 2, 3]

    def test_survives_a_line_that_a_crash_left_half_written(self, tmp_path: Path) -> None:
        path = tmp_path / "anchor.jsonl"
        place = FileAnchor(path)
        put(place, checkpoint(1))
        with path.open("ab") as file:
            file.write(b'{"epoch": 1, "size": 2, "ro')
        with pytest.raises(SecondRoot):
            put(place, checkpoint(1, root=1))
        put(place, checkpoint(2))
        assert [verified(note).size for note in place.after(NOWHERE)] == [1, 2]

    def test_finds_its_end_however_long_it_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("memadmin.audit.transparency.anchors.file.BLOCK", 700)
        place = FileAnchor(tmp_path / "anchor.jsonl")
        for size in range(1, 20):
            put(place, checkpoint(size))
        with place.path.open("ab") as file:
            file.write(b"x" * 3000)
        with pytest.raises(SecondRoot):
            put(place, checkpoint(19, root=1))
        assert [verified(note).size for note in place.after((1, 16))] == [17, 18, 19]
        assert len(place.after(NOWHERE)) == 19

    def test_gives_two_writers_one_root(self, tmp_path: Path) -> None:
        place = FileAnchor(tmp_path / "anchor.jsonl")

        def write(root: int) -> bool:
            try:
                put(place, checkpoint(7, root=root))
            except SecondRoot:
                return False
            return True

        with ThreadPoolExecutor(8) as writers:
            assert sum(writers.map(write, range(8))) == 1

    def test_on_a_volume_that_is_not_there_is_a_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(AnchorFailed, match=r"cannot be written: No such file or directory\.$"):
            put(FileAnchor(tmp_path / "not mounted" / "anchor.jsonl"), checkpoint(1))


class TestWebhook:
    def test_says_who_it_is_and_what_it_brings(self, receiver: str) -> None:
        receipt = put(WebhookAnchor(receiver, "s3cret"), checkpoint(7))
        assert receipt == "200 kept as 17"
        ((path, headers),) = Receiver.requests
        assert path == "/notes?log=1"
        assert headers["Authorization"] == "Bearer s3cret"
        assert "s3cret" not in repr(WebhookAnchor(receiver, "s3cret"))
        (kept,) = Receiver.kept.values()
        assert verified(kept["note"]).size == 7

    def test_follows_no_redirect(self, receiver: str) -> None:
        def redirect(handler: Receiver) -> None:
            handler.send_response(307)
            handler.send_header("Location", "/elsewhere")
            handler.end_headers()

        Receiver.answer = redirect
        with pytest.raises(AnchorFailed, match="answered 307, a redirect; redirects are not followed"):
            put(WebhookAnchor(receiver), checkpoint(7))
        assert len(Receiver.requests) == 1

    def test_goes_through_no_proxy_of_the_environment(self, receiver: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        assert put(WebhookAnchor(receiver), checkpoint(7))

    def test_gives_up_on_an_answer_that_never_ends(self, receiver: str) -> None:
        """Each byte comes in time, all of them do not."""
        over = threading.Event()

        def drip(handler: Receiver) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not over.wait(0.02):
                try:
                    handler.wfile.write(b"x")
                except OSError:
                    return

        Receiver.answer = drip
        with pytest.raises(AnchorFailed, match="cannot be reached"):
            put(WebhookAnchor(receiver, timeout_seconds=0.3), checkpoint(7))
        over.set()

    def test_reads_no_more_of_an_answer_than_it_keeps(self, receiver: str) -> None:
        def flood(handler: Receiver) -> None:
            handler.send_response(200)
            handler.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    handler.wfile.write(b"\0x" * 50_000)

        Receiver.answer = flood
        receipt = put(WebhookAnchor(receiver), checkpoint(7))
        assert len(receipt) < 3000
        assert "\0" not in receipt

    def test_that_does_not_take_it_has_not_anchored(self, receiver: str) -> None:
        for status in (400, 401, 404, 500, 503):
            Receiver.answer = lambda handler, status=status: handler.send_error(status)
            with pytest.raises(AnchorFailed, match=f"answered {status}"):
                put(WebhookAnchor(receiver), checkpoint(7))

    def test_that_is_away_is_a_sentence(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            with pytest.raises(AnchorFailed, match=r"webhook:127\.0\.0\.1 cannot be reached"):
                put(WebhookAnchor(f"http://127.0.0.1:{taken.getsockname()[1]}"), checkpoint(7))

    def test_without_a_certificate_that_is_trusted_is_away(self, receiver: str) -> None:
        with pytest.raises(AnchorFailed, match="cannot be reached"):
            put(WebhookAnchor(receiver.replace("http:", "https:")), checkpoint(7))


class TestBucket:
    def test_locks_each_note_until_its_time_is_over(self, bucket: str) -> None:
        put(BucketAnchor(bucket, "", 30), checkpoint(7))
        client = boto3.client("s3")
        found = client.head_object(Bucket=bucket, Key="000001/0000000000000000007.note")
        assert found["ObjectLockMode"] == "COMPLIANCE"
        assert (found["ObjectLockRetainUntilDate"] - datetime.now(UTC)).days in (29, 30)

    def test_without_object_lock_is_refused(self, bucket: str) -> None:
        boto3.client("s3").create_bucket(Bucket=f"{bucket}-open")
        with pytest.raises(AnchorFailed, match="did not accept the checkpoint"):
            put(BucketAnchor(f"{bucket}-open", "", 30), checkpoint(7))

    def test_that_is_not_there_is_a_sentence(self, bucket: str) -> None:
        with pytest.raises(AnchorFailed, match="NoSuchBucket"):
            put(BucketAnchor(f"{bucket}-gone", "", 30), checkpoint(7))
        with pytest.raises(AnchorFailed, match="cannot be read"):
            BucketAnchor(f"{bucket}-gone", "", 30).after(NOWHERE)

    def test_refuses_by_itself_what_slipped_in_between(self, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Somebody else writes after we looked: the condition of the write holds."""
        place = BucketAnchor(bucket, "", 30)
        put(place, checkpoint(7))
        monkeypatch.setattr(BucketAnchor, "_oldest_and_newest", lambda *given: [])
        with pytest.raises(SecondRoot):
            put(place, checkpoint(7, root=1))
        assert len(place.after(NOWHERE)) == 1

    def test_needs_its_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "boto3", None)
        with pytest.raises(AnchorFailed, match=r"install memadmin\[s3\]"):
            BucketAnchor("bucket", "", 30).after(NOWHERE)


@pytest.mark.django_db
def test_a_bucket_that_lost_notes_is_compared_with_what_was_recorded(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest of them are read, and the recorded sizes that they must have."""
    monkeypatch.setattr(verification, "NOTES_FROM_AFAR", 3)
    place = BucketAnchor(bucket, "", 30)
    for size in (1, 9, 10, 11, 1000):
        AuditAnchor.objects.create(checkpoint_size=size, sink=place.name, outcome=anchors.ANCHORED)
        if size != 1000:
            put(place, checkpoint(size))
    found = verification.store_at(place)
    assert found.recorded == {10, 11, 1000}
    assert [verified(note).size for note in found.notes] == [10, 11]
