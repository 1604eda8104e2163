"""Each check is silent when all is well, and says what to do when it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.checks import run_checks
from pytest_django.fixtures import Settings

MANIFEST = {"staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}}


def ids() -> set[str | None]:
    return {message.id for message in run_checks(include_deployment_checks=True)}


def test_one_table_cannot_be_both(settings: Settings) -> None:
    assert "memadmin.E001" not in ids()
    settings.AGENT_SESSIONS_TABLE = settings.AGENT_MESSAGES_TABLE
    assert "memadmin.E001" in ids()


def test_static_files_have_to_be_collected(settings: Settings, tmp_path: Path) -> None:
    settings.STORAGES = {**settings.STORAGES, **MANIFEST}
    settings.STATIC_ROOT = str(tmp_path)
    assert "memadmin.E002" in ids()
    (tmp_path / "staticfiles.json").touch()
    assert "memadmin.E002" not in ids()


def test_machines_on_one_database_need_one_key(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMADMIN_SECRET_KEY", raising=False)
    assert "memadmin.W001" not in ids()
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")
    assert "memadmin.W001" in ids()
    monkeypatch.setenv("MEMADMIN_SECRET_KEY", "x" * 50)
    assert "memadmin.W001" not in ids()


def test_grants_are_to_be_told_of(settings: Settings) -> None:
    assert "memadmin.W002" in ids()
    settings.MAIL_SERVER = {"EMAIL_HOST": "mail.example.org"}
    assert "memadmin.W002" not in ids()


def test_hosts_are_to_be_named(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["memadmin.example.org"]
    assert "memadmin.W005" not in ids()
    settings.ALLOWED_HOSTS = ["memadmin.example.org", "*"]
    assert "memadmin.W005" in ids()
