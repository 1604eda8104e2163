"""A key is what the SDK takes it for, whatever it looks like; and it shows itself nowhere."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.conf import settings as project
from django.core.checks import run_checks

from memadmin.client.master_key import UnusableKey
from memadmin.environment import NamedSecret
from sessions_app.encryption import Keyring, SessionKey
from sessions_app.encryption.keys import doubt_about
from tests.cases import for_each
from tests.sealed import OLD_KEY, sealed_in_memory, secrets

FERNET = Fernet.generate_key().decode()
KEYS = {
    "a Fernet key": FERNET,
    "without its =": FERNET.rstrip("="),
    "with = too many": FERNET + "==",
    "with a line break inside, as base64 has it": f"{FERNET[:20]}\n{FERNET[20:]}",
    "with spaces and signs around 32 bytes": f" {FERNET[:10]} . {FERNET[10:]}",
    "base64 of 16 bytes": "c2l4dGVlbi1ieXRlcy0tLQ==",
    "base64 of 48 bytes": "QUFB" * 16,
    "the other alphabet of base64": "+/+/" * 10 + "+/8=",
    "a sentence": "correct horse battery staple",
    "32 characters": "x" * 32,
    "one letter": "x",
    "not ASCII": "ключ — 🔑",
}


@for_each("text", KEYS.values(), ids=KEYS)
def test_what_the_sdk_sealed_opens_with_the_same_text(text: str) -> None:
    (item,) = sealed_in_memory("Hi", key=text, session_id="customer_1:ticket_2")
    token = item.raw.split('"payload":"')[1].split('"')[0]
    assert b'"Hi"' in SessionKey("k", text).cipher("customer_1:ticket_2").decrypt(token)


def test_a_key_without_its_padding_is_a_different_one() -> None:
    """The SDK says nothing about it, and its agent would read an empty history."""
    assert not SessionKey("k", FERNET).is_same_as(SessionKey("k", FERNET.rstrip("=")))
    assert "without the “=” at its end" in doubt_about(FERNET.rstrip("="))


@for_each(
    ("text", "words"),
    [
        (FERNET, ""),
        ("x" * 64, "base64 of 48 bytes, not of 32"),
        ("c2l4dGVlbi1ieXRlcy0tLQ==", "base64 of 16 bytes, not of 32"),
        ("pass word", "fewer than 32 bytes"),
        ("a sentence that is long enough to be no password", ""),
    ],
    ids=["as it should be", "too long", "too short", "a password", "a sentence"],
)
def test_what_looks_like_another_key_is_doubted(text: str, words: str) -> None:
    assert words in doubt_about(text)
    assert bool(words) == bool(doubt_about(text))


def test_an_unusable_key_is_named_and_the_others_work() -> None:
    keys = Keyring.of(
        [*secrets(good=FERNET, bad="\udce9"), NamedSecret("gone", "V_GONE", problem="V_GONE is not set.")]
    )
    assert list(keys.keys) == ["good"]
    assert keys.why_not("bad") == "The session key bad (MEMADMIN_SESSION_KEY_BAD) cannot be used: it is not UTF-8."
    assert keys.why_not("gone") == "The session key gone cannot be used: V_GONE is not set."
    assert keys.why_not("never") == "The session key never is not in the keyring of this console."


def test_an_empty_text_is_no_key() -> None:
    with pytest.raises(UnusableKey):
        SessionKey("k", "")


def test_no_text_of_a_key_gets_out() -> None:
    key, secret = SessionKey("vault", OLD_KEY), secrets(vault=OLD_KEY)[0]
    keys = Keyring.of([secret])
    for shown in (repr(key), str(key), repr(keys), f"{secret}", repr(keys.get("vault"))):
        assert OLD_KEY[:8] not in shown
        assert "old-key-of" not in shown
    for take in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be serialised"):
            take(key)
    with pytest.raises(AttributeError):
        _ = key.__dict__


def test_no_text_of_a_key_is_in_a_traceback() -> None:
    with pytest.raises(UnusableKey) as refused:
        SessionKey("k", "secret \udce9")
    assert "secret" not in f"{refused.value!r}{refused.value.__cause__!r}"


@pytest.mark.release
def test_the_web_server_says_it_at_its_start_too(tmp_path: Path) -> None:
    given = {
        "MEMADMIN_KEYRING": "vault, gone",
        "MEMADMIN_SESSION_KEY_VAULT": "short",
        "MEMADMIN_DATA_DIR": str(tmp_path),
    }
    started = subprocess.run(
        [sys.executable, "-c", "import memadmin.wsgi"],
        cwd=project.CHECKOUT_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "memadmin.settings", **given},
        capture_output=True,
        text=True,
    )
    assert started.returncode == 0
    assert "The session key gone cannot be used: MEMADMIN_SESSION_KEY_GONE is not set." in started.stderr
    assert "The session key vault (MEMADMIN_SESSION_KEY_VAULT) is a text of fewer than 32 bytes" in started.stderr
    assert "short" not in started.stderr


def test_what_is_wrong_is_said_at_the_start_and_stops_nothing(settings: object) -> None:
    settings.SESSION_KEYS = [*secrets(short="abc"), NamedSecret("gone", "V_GONE", problem="V_GONE is not set.")]  # type: ignore[attr-defined]
    said = {message.id: message for message in run_checks()}
    assert "The session key gone cannot be used: V_GONE is not set." in said["memadmin.W002"].msg
    assert "fewer than 32 bytes" in said["memadmin.W003"].msg
    assert not any(message.is_serious() for message in said.values())
    assert "abc" not in f"{said}"
