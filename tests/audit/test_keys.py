"""Where the signing key comes from, and what an operator reads who got it wrong."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from memadmin import environment
from memadmin.audit.transparency import keys

SEED = bytes(range(32))


def pem(key: object, encryption: KeySerializationEncryption | None = None) -> str:
    write: Callable[..., bytes] = key.private_bytes  # type: ignore[attr-defined]
    return write(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption()).decode()


ED25519 = Ed25519PrivateKey.from_private_bytes(SEED)


@pytest.mark.parametrize("text", [base64.b64encode(SEED).decode(), pem(ED25519), pem(ED25519) + "\n"])
def test_key_is_base64_or_pem(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", text)
    assert environment.signing_key("A_KEY") == SEED


def test_key_comes_from_a_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(pem(ED25519))
    # What was read from a file is remembered under its name.
    monkeypatch.setenv("A_KEY_OF_A_FILE_FILE", str(tmp_path / "key"))
    assert environment.signing_key("A_KEY_OF_A_FILE") == SEED


def test_no_key_is_no_error() -> None:
    assert environment.signing_key("A_KEY") == b""


@pytest.mark.parametrize(
    "text",
    [
        "no key at all",
        base64.b64encode(SEED[:31]).decode(),
        pem(generate_private_key(SECP256R1())),
        pem(ED25519, BestAvailableEncryption(b"secret")),
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_other_texts_stop_the_start_with_a_sentence(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", text)
    with pytest.raises(ImproperlyConfigured, match="A_KEY must be an Ed25519 private key") as refusal:
        environment.signing_key("A_KEY")
    assert text not in str(refusal.value)


def test_key_that_is_set_is_used(settings: Settings) -> None:
    settings.SIGNING_KEY = SEED
    key = keys.signing_key("a/log")
    assert key
    assert key.public.key == ED25519.public_key().public_bytes_raw()
    assert key.name == "a/log"


def test_without_a_key_there_is_none_outside_of_the_embedded_database(settings: Settings) -> None:
    settings.SIGNING_KEY = b""
    settings.SIGNING_KEY_KEPT = None
    assert keys.signing_key("a/log") is None


def test_embedded_installation_makes_one_key_and_keeps_it(settings: Settings, tmp_path: Path) -> None:
    settings.SIGNING_KEY = b""
    settings.SIGNING_KEY_KEPT = tmp_path / "deep" / "signing-key"
    first, second = keys.signing_key("a/log"), keys.signing_key("a/log")
    assert first == second
    assert settings.SIGNING_KEY_KEPT.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in settings.SIGNING_KEY_KEPT.parent.iterdir()] == ["signing-key"]


def test_programs_that_start_together_get_the_same_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = set(threads.map(lambda number: keys._kept_seed(tmp_path / "key"), range(32)))
    assert len(made) == 1


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(os.urandom(31)), Path.mkdir])
def test_kept_key_that_is_none_stops_with_a_sentence(spoil: Callable[[Path], object], tmp_path: Path) -> None:
    spoil(tmp_path / "key")
    with pytest.raises(ImproperlyConfigured, match="signing"):
        keys._kept_seed(tmp_path / "key")
