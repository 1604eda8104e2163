"""What an operator may set, and what happens when it is wrong: one sentence, exit 1, however memadmin is started."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memadmin import environment
from memadmin.web.checks import settings_are_known

GOOD_URL = "postgres://console:p%40ss@db.example:6432/agents?sslmode=require"

HOSTS = ["memadmin.example", ".example.org", "[::1]", "10.0.0.7", "*"]
HERE = "http://[::1]:8000"

STARTS = {
    "manage.py": [sys.executable, "manage.py", "migrate"],
    "memadmin": [sys.executable, "-m", "memadmin", "worker"],
    "wsgi": [sys.executable, "-c", "import memadmin.wsgi"],
}


WRONG = [
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
    ({"MEMADMIN_SECRET_KEY": "abcde"}, "MEMADMIN_SECRET_KEY must have at least 32 characters, such as `openssl"),
    ({"MEMADMIN_SECRET_KEY_FILE": "/dev/null"}, "MEMADMIN_SECRET_KEY_FILE names /dev/null, which is empty."),
    ({"DATABASE_URL_FILE": "/dev/null"}, "DATABASE_URL_FILE names /dev/null, which is empty."),
    ({"MEMADMIN_ALLOWED_HOSTS": "https://memadmin.example"}, "MEMADMIN_ALLOWED_HOSTS must list host names such as"),
    ({"MEMADMIN_READ_NOTICE": "301"}, "MEMADMIN_READ_NOTICE must be at most MEMADMIN_READ_LIMIT, which is 300; it"),
    ({"MEMADMIN_MAIL_FROM": "the console"}, "MEMADMIN_MAIL_FROM must be an e-mail address such as memadmin@"),
    ({"MEMADMIN_HSTS_PRELOAD": "yes"}, "MEMADMIN_HSTS_PRELOAD is on, so MEMADMIN_HSTS_SUBDOMAINS must be on, too."),
    ({"MEMADMIN_HSTS_SUBDOMAINS": "yes"}, "MEMADMIN_HSTS_SUBDOMAINS is on, so MEMADMIN_HTTPS must be on, too."),
    ({"MEMADMIN_DATA_DIR": "/dev/null"}, "MEMADMIN_DATA_DIR must be the path of a folder; /dev/null is a file."),
    ({"MEMADMIN_ANCHOR_PATH": "/dev"}, "MEMADMIN_ANCHOR_PATH must be the path of a file; /dev is a folder."),
    ({"MEMADMIN_DATA_DIR": "/dev/null/x"}, "MEMADMIN_SECRET_KEY is not set and /dev/null/x/secret-key cannot be"),
]


def test_a_wrong_value_is_named_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    faults = []
    for variables, sentence in WRONG:
        with monkeypatch.context() as patching:
            for name, value in {"MEMADMIN_DATA_DIR": str(tmp_path), **variables}.items():
                patching.setenv(name, value)
            with pytest.raises(ImproperlyConfigured) as refused:
                runpy.run_path(str(settings.CHECKOUT_DIR / "memadmin" / "settings.py"))
        said = str(refused.value)
        if not said.startswith(sentence) or "\n" in said or "secret@" in said:
            faults.append((variables, said))
    assert faults == []


@pytest.mark.slow
@pytest.mark.parametrize("command", STARTS.values(), ids=STARTS)
def test_every_start_is_stopped_by_a_wrong_value(command: list[str], tmp_path: Path) -> None:
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
    (tmp_path / "key").write_text("$ecret-from-a-file-that-is-long-enough\n")
    monkeypatch.setenv("MEMADMIN_SECRET_KEY_FILE", str(tmp_path / "key"))
    assert environment.secret_key("MEMADMIN_SECRET_KEY", kept=tmp_path / "unused") == (
        "$ecret-from-a-file-that-is-long-enough"
    )


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
        (environment.hosts, "memadmin.example, .example.org,[::1],10.0.0.7, *", HOSTS),
        (environment.origins, "https://memadmin.example/, http://[::1]:8000", ["https://memadmin.example", HERE]),
        (environment.mail_sender, "memadmin@localhost", "memadmin@localhost"),
        (environment.mail_sender, "The console <console@example.org>", "The console <console@example.org>"),
        (environment.https_address, "https://memadmin.example/", "https://memadmin.example"),
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
        (environment.origins, "https://"),
        (environment.origins, "https://memadmin.example/console"),
        (environment.hosts, "memadmin.example:8000"),
        (environment.hosts, "memadmin.example/console"),
        (environment.hosts, "*.example.org"),
        (environment.hosts, "::1"),
        (environment.hosts, "[::1]:8000"),
        (environment.hosts, "[memadmin.example]"),
        (environment.https_address, "https://"),
        (environment.mail_sender, "memadmin"),
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


@pytest.mark.parametrize(
    ("given", "keyring", "sentences"),
    [
        (
            "MEMADMIN_ALOWED_HOSTS",
            "",
            ["MEMADMIN_ALOWED_HOSTS is no setting and has no effect. Did you mean MEMADMIN_ALLOWED_HOSTS?"],
        ),
        (
            "MEMADMIN_SECRETKEY_FILE",
            "",
            ["MEMADMIN_SECRETKEY_FILE is no setting and has no effect. Did you mean MEMADMIN_SECRET_KEY?"],
        ),
        (
            "MEMADMIN_DATABASE_URL",
            "",
            ["MEMADMIN_DATABASE_URL is no setting and has no effect. Did you mean DATABASE_URL?"],
        ),
        ("MEMADMIN_TEAPOT", "", ["MEMADMIN_TEAPOT is no setting and has no effect."]),
        ("MEMADMIN_POOL_SIZE", "", []),
        ("MEMADMIN_SECRET_KEY_FILE", "", []),
        ("MEMADMIN_SESSION_KEY_VAULT_2026_FILE", "vault-2026", []),
        (
            "MEMADMIN_SESSION_KEY_VAULT_2026",
            "vault-2025",
            ["MEMADMIN_SESSION_KEY_VAULT_2026 is set, and MEMADMIN_KEYRING does not list that key: it is not used."],
        ),
        ("TEAPOT", "", []),
    ],
)
def test_names_that_nothing_reads_are_told(
    monkeypatch: pytest.MonkeyPatch, given: str, keyring: str, sentences: list[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("MEMADMIN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEMADMIN_KEYRING", keyring)
    monkeypatch.setenv(given, "x")
    assert environment.unknown_names() == sentences
    assert [message.msg for message in settings_are_known()] == sentences


@pytest.mark.release
def test_misspelt_names_are_told_at_the_start_of_a_web_server(tmp_path: Path) -> None:
    result = start(STARTS["wsgi"], {"MEMADMIN_DATA_DIR": str(tmp_path), "MEMADMIN_POOLSIZE": "9"})
    assert result.returncode == 0
    assert "MEMADMIN_POOLSIZE is no setting and has no effect. Did you mean MEMADMIN_POOL_SIZE?" in result.stderr


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"MEMADMIN_HTTPS": "yes"}, (False, False)),
        ({"MEMADMIN_HTTPS": "yes", "MEMADMIN_HSTS_SUBDOMAINS": "yes"}, (True, False)),
        ({"MEMADMIN_HTTPS": "yes", "MEMADMIN_HSTS_SUBDOMAINS": "yes", "MEMADMIN_HSTS_PRELOAD": "yes"}, (True, True)),
    ],
)
def test_other_sites_of_the_domain_are_bound_only_by_choice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], expected: tuple[bool, bool]
) -> None:
    monkeypatch.setenv("MEMADMIN_DATA_DIR", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    made = runpy.run_path(str(settings.CHECKOUT_DIR / "memadmin" / "settings.py"))
    assert made["SECURE_HSTS_SECONDS"] == 365 * 24 * 3600
    assert (made["SECURE_HSTS_INCLUDE_SUBDOMAINS"], made["SECURE_HSTS_PRELOAD"]) == expected


PIP = """#!/bin/sh
case "$*" in
    *--version*) exit 0 ;;
    -c*) echo 2; exit 0 ;;
esac
echo "Collecting one==1 (from -r requirements.txt (line 1))"
echo "  Downloading one-1.whl"
patience=3000
while [ ! -e shown ] && [ $patience -gt 0 ]; do sleep 0.1; patience=$((patience - 1)); done
[ -e shown ] || exit 9
echo "Collecting two==2 (from -r requirements.txt (line 2))"
echo "Installing collected packages: one, two"
exit {code}
"""
"""Goes on once the test has read its first line: what is read later is no progress."""


@pytest.mark.parametrize("code", [0, 1])
def test_an_installation_shows_its_progress_and_its_failure(tmp_path: Path, code: int) -> None:
    shutil.copytree(settings.CHECKOUT_DIR / "tools", tmp_path / "tools")
    (tmp_path / "requirements.txt").write_text("one==1\ntwo==2\n")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PIP.replace("{code}", str(code)))
    python.chmod(0o755)
    command = [str(tmp_path / "tools" / "venv.sh"), "requirements.txt"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as installing:
        assert installing.stdout
        first = [installing.stdout.readline() for _ in range(2)]
        (tmp_path / "shown").touch()
        rest = installing.stdout.read().splitlines()
    assert (installing.returncode, first[1]) == (code, "  1 of 2: one==1\n")
    assert rest[:2] == ["  2 of 2: two==2", "  unpacking 2 packages ..."]
    assert [bool(re.fullmatch(r"Installed in \d+ seconds\.", line)) for line in rest[2:]] == [True] * (code == 0)
    assert (tmp_path / ".venv" / ".requirements.txt").exists() == (code == 0)
