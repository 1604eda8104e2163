"""What an operator sets to have the log anchored, and reads when it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from memadmin import environment


@pytest.mark.parametrize(
    ("value", "path"),
    [("", Path("/default")), ("none", None), ("/mnt/other/anchor.jsonl", Path("/mnt/other/anchor.jsonl"))],
)
def test_path_of_the_file(value: str, path: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_PATH", value)
    assert environment.anchor_path("A_PATH", Path("/default")) == path


def test_path_is_the_same_from_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_PATH", "anchor.jsonl")
    with pytest.raises(ImproperlyConfigured, match=r"A_PATH must be an absolute path, or none; it is 'anchor\.jsonl'"):
        environment.anchor_path("A_PATH", None)


@pytest.mark.parametrize(
    "value",
    ["", "https://anchor.example.org/notes?log=1", "http://127.0.0.1:8080/", "http://localhost/", "http://[::1]:80/"],
)
def test_address_of_a_receiver(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AN_ADDRESS", value)
    assert environment.receiver("AN_ADDRESS") == value


@pytest.mark.parametrize(
    "value",
    [
        "anchor.example.org",
        "http://anchor.example.org/",
        "https://",
        "https://name:secret@anchor.example.org/",
        "https://anchor.example.org:port/",
        "https://anchor.example.org/#part",
        "ftp://localhost/",
        "file:///etc/passwd",
    ],
)
def test_other_addresses_are_refused_and_not_repeated(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AN_ADDRESS", value)
    with pytest.raises(ImproperlyConfigured, match="AN_ADDRESS must look like https://host/path") as refusal:
        environment.receiver("AN_ADDRESS")
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("value", ["", "audit-anchors", "audit-anchors/one/two"])
def test_bucket(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_BUCKET", value)
    assert environment.bucket("A_BUCKET") == value


@pytest.mark.parametrize("value", ["s3://audit", "Audit", "ab", "audit bucket"])
def test_other_names_are_no_buckets(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_BUCKET", value)
    with pytest.raises(ImproperlyConfigured, match="A_BUCKET must be a bucket, or bucket/prefix"):
        environment.bucket("A_BUCKET")
