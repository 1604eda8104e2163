"""docs/rotation.md, carried out word by word: the new key is in use, and what the old one made stays readable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from allauth.mfa.adapter import get_adapter
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings as ours
from django.test import Client
from pytest_django import DjangoDbBlocker
from pytest_django.fixtures import Settings

from memadmin.audit.models import AuditEvent
from memadmin.audit.transparency import anchors, checkpoints
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.embedded.server import EmbeddedServer, server_for
from memadmin.erasure.suppression.ledger import Ledger
from sessions_app.services.encryption import declare_encryption
from tests.agents import agent_process, attach_main_store
from tests.ops.runbooks import Runbook, Shell, address_of, programs_of, working_on
from tests.people import person, signed_in
from tests.sealed import OLD_KEY, add_sealed, read_by_agent, secrets
from tests.template_database import copy_to

pytestmark = pytest.mark.release

RUNBOOK = Runbook("rotation.md")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[EmbeddedServer]:
    """A database of its own: commands are other processes, and would not see a test's transaction."""
    server = server_for(tmp_path_factory.mktemp("rotation"))
    with django_db_blocker.unblock():
        copy_to(server)
        yield server
        agent_process.end()
        server.leave()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The folder of keys, as an installation has it that never changed any."""
    folder = tmp_path / "keys"
    folder.mkdir()
    key = Ed25519PrivateKey.from_private_bytes(ours.SIGNING_KEY)
    (folder / "signing-key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "secret-key").write_text(f"{ours.SECRET_KEY}\n")
    (folder / "vault-2025").write_text(f"{OLD_KEY}\n")
    return folder


@pytest.fixture
def shell(server: EmbeddedServer, keys: Path, tmp_path: Path) -> Iterator[Shell]:
    """Within a test, this process and the shell work on that database."""
    shell = Shell(
        tmp_path / "bin",
        programs_of(server),
        **address_of(server),
        DATABASE_URL="postgres://postgres@/memadmin",
        KEYS=str(keys),
        MEMADMIN_SECRET_KEY_FILE=str(keys / "secret-key"),
        MEMADMIN_SIGNING_KEY_FILE=str(keys / "signing-key.pem"),
        MEMADMIN_KEYRING="vault-2025",
        MEMADMIN_SESSION_KEY_VAULT_2025_FILE=str(keys / "vault-2025"),
        MEMADMIN_ANCHOR_PATH=str(tmp_path / "anchor.jsonl"),
        MEMADMIN_DATA_DIR=str(tmp_path / "data"),
    )
    with working_on(server):
        yield shell


def test_secret_key(shell: Shell, keys: Path, settings: Settings, tmp_path: Path) -> None:
    browser, ledger = signed_in(person("support")), Ledger(tmp_path / "suppressions.jsonl")
    factors: list[str] = []
    used = [ours.SECRET_KEY]
    for number in range(1, 3):  # the second time there is an old key already
        ledger.append(uuid4(), subjects=[], sessions=[], after=0)
        factors.append(get_adapter().encrypt(f"secret of a factor {number}"))

        [commands] = RUNBOOK.commands("Secret key")
        shell.run(commands, MEMADMIN_OLD_SECRET_KEYS_FILE=str(keys / "old-secret-keys") if number > 1 else "")
        settings.SECRET_KEY = (keys / "secret-key").read_text().strip()
        settings.SECRET_KEY_FALLBACKS = [each.strip() for each in (keys / "old-secret-keys").read_text().split(",")]
        assert used[::-1] == settings.SECRET_KEY_FALLBACKS
        used.append(settings.SECRET_KEY)
        assert len(set(used)) == len(used)

        assert Client().get("/readyz").json()["problems"] == [], "the database does not know the new key"
        assert browser.get("/sessions/").status_code == 200, "somebody was signed out"
        assert [get_adapter().decrypt(each) for each in factors] == [
            f"secret of a factor {each}" for each in range(1, number + 1)
        ]
        assert len(ledger.entries()) == number


def test_signing_key(shell: Shell, keys: Path, settings: Settings, tmp_path: Path) -> None:
    settings.ANCHOR_PATH = tmp_path / "anchor.jsonl"
    person("auditor")
    Sequencer().finish()
    anchors.publish()
    before = checkpoints.latest()
    assert before is not None

    change, check = RUNBOOK.commands("Signing key")
    shell.run(change)
    after = checkpoints.latest()
    assert after is not None
    assert before.key != after.key
    assert AuditEvent.objects.filter(type="key.rotated").count() == 1
    # Without the old key: the checkpoint vouches for the new one.
    anchors.publish()
    assert "OK: nothing contradicts the log" in shell.run(check)
    assert not (keys / "signing-key-before.pem").exists()


def test_session_keys(shell: Shell, keys: Path, settings: Settings) -> None:
    settings.SESSION_KEYS = secrets(vault_2025=OLD_KEY)
    declare_encryption(attach_main_store(), key="vault-2025")
    add_sealed("a", "one", "two", key=OLD_KEY)

    preview, rotate = RUNBOOK.commands("Session keys")
    assert "2 items of 1 session would be re-encrypted." in shell.run(preview)
    new_key = (keys / "vault-2026").read_text().strip()
    assert said("a", OLD_KEY) == ["one", "two"]
    assert said("a", new_key) == []
    assert "2 items of 1 session were re-encrypted." in shell.run(rotate)
    assert said("a", OLD_KEY) == []
    assert said("a", new_key) == ["one", "two"]


def said(session_id: str, key: str) -> list[Any]:
    return [item["content"] for item in read_by_agent(session_id, key=key)]


def test_each_section_with_commands_is_carried_out() -> None:
    assert RUNBOOK.headings() == ["Secret key", "Signing key", "Session keys"]
