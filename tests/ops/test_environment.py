"""What an operator may set, and what happens when it is wrong: one sentence, exit 1, however memadmin is started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memadmin import environment

GOOD_URL = "postgres://console:p%40ss@db.example:6432/agents?sslmode=require"

STARTS = {
    "manage.py": [sys.executable, "manage.py", "migrate"],
    "memadmin": [sys.executable, "-m", "memadmin", "worker"],
    "wsgi": [sys.executable, "-c", "import memadmin.wsgi"],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"DATABASE_URL": "mysql://role:secret@host/name"}, "DATABASE_URL must look like postgres://"),
        ({"DATABASE_URL": "postgres://role:secret@host:port/name"}, "DATABASE_URL must look like postgres://"),
        ({"DATABASE_URL": "postgres://role:secret@host"}, "DATABASE_URL must look like postgres://"),
        ({"DATABASE_URL": "secret"}, "DATABASE_URL must look like postgres://"),
        ({"DATABASE_URL_FILE": "/nowhere"}, "DATABASE_URL_FILE names /nowhere, which cannot be read: No such file"),
        ({"AGENT_TIMEZONE": "Mars/Base"}, "AGENT_TIMEZONE must be an IANA time zone such as Europe/Riga"),
        ({"MEMADMIN_PHONE_REGIONS": "DE, XX"}, "MEMADMIN_PHONE_REGIONS must be ISO codes of countries such as DE, US"),
        ({"MEMADMIN_SECOND_FACTOR": "maybe"}, "MEMADMIN_SECOND_FACTOR must be required or optional; it is 'maybe'."),
        ({"MEMADMIN_OIDC_ISSUER": "http://login.example"}, "MEMADMIN_OIDC_ISSUER must be an address that begins with"),
        (
            {"MEMADMIN_OIDC_ISSUER": "https://login.example"},
            "MEMADMIN_OIDC_ISSUER is set, so MEMADMIN_OIDC_CLIENT_ID must be set, too.",
        ),
        (
            {"MEMADMIN_MAIL_URL": "smtp://mail.example"},
            "MEMADMIN_MAIL_URL is set, so MEMADMIN_URL must be set, too.",
        ),
        (
            {"DATABASE_URL": "postgres://role@host/name", "MEMADMIN_DATABASE_ROLE": "memadmin_web"},
            "MEMADMIN_DATABASE_ROLE is for the embedded PostgreSQL; with DATABASE_URL, put the role into it.",
        ),
        ({"MEMADMIN_DATA_DIR": "/dev/null/x"}, "MEMADMIN_SECRET_KEY is not set and /dev/null/x/secret-key cannot be"),
    ],
)
def test_a_wrong_value_stops_a_start_with_one_sentence(
    variables: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    result = start(STARTS["wsgi"], {"MEMADMIN_DATA_DIR": str(tmp_path), **variables})
    assert_is_refused(result, sentence)


@pytest.mark.slow
@pytest.mark.parametrize("command", [STARTS["manage.py"], STARTS["memadmin"]], ids=["manage.py", "memadmin"])
def test_every_other_start_is_stopped_in_the_same_way(command: list[str], tmp_path: Path) -> None:
    result = start(command, {"MEMADMIN_DATA_DIR": str(tmp_path), "DATABASE_URL": "mysql://role:secret@host/name"})
    assert_is_refused(result, "DATABASE_URL must look like postgres://")


def assert_is_refused(result: subprocess.CompletedProcess[str], sentence: str) -> None:
    assert result.returncode == 1
    assert result.stderr.startswith(f"memadmin: {sentence}")
    assert result.stderr.count("\n") == 1
    assert "secret@" not in result.stderr


@pytest.mark.slow
def test_a_database_that_does_not_answer_is_one_sentence_and_the_embedded_one_is_not_touched(tmp_path: Path) -> None:
    nobody_listens = {"DATABASE_URL": "postgres://role:secret@127.0.0.1:1/name", "MEMADMIN_DATA_DIR": str(tmp_path)}
    # A test of its own shows that all are refused in the same way.
    result = start(STARTS["manage.py"], nobody_listens)
    assert result.returncode == 1
    assert 'connection to server at "127.0.0.1", port 1 failed: Connection refused' in result.stderr
    assert result.stderr.startswith("memadmin: ")
    assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret-key"]


def start(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEMADMIN_")}
    return subprocess.run(
        command,
        check=False,
        cwd=settings.CHECKOUT_DIR,
        capture_output=True,
        text=True,
        env={**inherited, "DJANGO_SETTINGS_MODULE": "memadmin.settings", **variables},
    )


def test_a_database_url_keeps_its_password_and_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", GOOD_URL)
    database = environment.database("DATABASE_URL")
    assert database["PASSWORD"] == "p@ss"
    assert database["OPTIONS"] == {"sslmode": "require"}


def test_a_secret_may_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("$ecret\n")
    monkeypatch.setenv("MEMADMIN_SECRET_KEY_FILE", str(tmp_path / "key"))
    assert environment.secret_key("MEMADMIN_SECRET_KEY", kept=tmp_path / "unused") == "$ecret"


def test_a_secret_that_nobody_gave_is_made_once_and_kept_to_oneself(tmp_path: Path) -> None:
    kept = tmp_path / "secret-key"
    first = environment.secret_key("NOT_SET", kept=kept)
    assert environment.secret_key("NOT_SET", kept=kept) == first
    assert len(first) >= 50
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("read", "value", "answer"),
    [
        (environment.yes_or_no, "Yes", True),
        (environment.yes_or_no, "0", False),
        (environment.yes_or_no, "", False),
        (environment.words, " a, b ,,c", ["a", "b", "c"]),
        (environment.positive_integer, "12", 12),
        (environment.table_name, "agents.sessions", "agents.sessions"),
    ],
)
def test_values(monkeypatch: pytest.MonkeyPatch, read: Callable[[str], object], value: str, answer: object) -> None:
    monkeypatch.setenv("SETTING", value)
    assert read("SETTING") == answer


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMADMIN_POOL_SIZE", "")
    assert environment.positive_integer("MEMADMIN_POOL_SIZE") == 8


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (environment.yes_or_no, "ture"),
        (environment.origins, "memadmin.example.org"),
        (environment.positive_integer, "0"),
        (environment.positive_integer, "-1"),
        (environment.positive_integer, "many"),
        (environment.port, "65536"),
        (environment.table_name, "a.b.c"),
        (environment.table_name, ".sessions"),
        (environment.time_zone, "../etc/passwd"),
        (environment.mail_server, "mail.example.org"),
        (environment.mail_server, "imap://mail.example.org"),
        (environment.mail_server, "smtp+tls://name:secret@mail.example.org:port"),
        (environment.mail_server, "smtp://"),
        (environment.mail_addresses, "privacy@example.org, nobody"),
    ],
)
def test_nonsense_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[str], object], value: str
) -> None:
    monkeypatch.setenv("SETTING", value)
    with pytest.raises(ImproperlyConfigured, match=r"^SETTING must .*\.$"):
        read("SETTING")


def test_a_mail_server_comes_from_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMADMIN_MAIL_URL", "smtp+tls://name:p%40ss@mail.example.org:587")
    server = environment.mail_server("MEMADMIN_MAIL_URL")
    assert server["EMAIL_BACKEND"] == "django.core.mail.backends.smtp.EmailBackend"
    assert (server["EMAIL_HOST"], server["EMAIL_PORT"], server["EMAIL_USE_TLS"]) == ("mail.example.org", 587, True)
    assert (server["EMAIL_HOST_USER"], server["EMAIL_HOST_PASSWORD"]) == ("name", "p@ss")
