"""The command: the text comes by the standard input, and what is left makes it fail."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core import mail
from django.core.management import CommandError, call_command

from sessions_app.models import Redaction, SessionRecord, SessionStore
from tests.agents import add_items, in_sdk, user
from tests.builders import make_subject
from tests.people import person

SECRET = "sk-live-4711"


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("s", user(f"My key is {SECRET}"))
    SessionRecord.objects.filter(session_id="s").update(subject=make_subject("customer_1"))
    return SessionRecord.objects.get(session_id="s")


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SECRET}\n"))


def run(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("redact_text", *arguments, "--json", stdout=out)
    told: dict[str, Any] = json.loads(out.getvalue())
    return told


def read() -> list[Any]:
    return list(in_sdk(lambda tables: tables.session("s").get_items()))


def test_a_preview_changes_nothing(record: SessionRecord, typed: None) -> None:
    told = run("--subject", "customer_1", "--preview")
    assert (told["sessions"], told["items"], told["places"], told["left"]) == (1, 1, 1, [])
    assert SECRET in read()[0]["content"]
    assert not Redaction.objects.exists()


def test_a_session_and_a_subject(record: SessionRecord, typed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run("--session", str(record.pk), "--reason", "leaked_secret")
    assert (told["items"], told["replayed"], told["left"]) == (1, 1, [])
    assert read() == [user("My key is [redacted]")]
    add_items("s", user(SECRET))
    monkeypatch.setattr("sys.stdin", io.StringIO(SECRET))
    assert run("--subject", "customer_1", "--reason", "leaked_secret")["items"] == 1
    assert not Redaction.objects.exclude(text="").exists()


def test_what_is_left_is_named_and_makes_it_fail(
    record: SessionRecord, typed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    bots = SessionStore.objects.create(name="bots", kind="sqlite", options={"path": "/nowhere/bots.db"})
    SessionRecord.objects.create(store=bots, session_id="there", subject=record.subject)
    with pytest.raises(SystemExit) as ended:
        call_command("redact_text", "--subject", "customer_1", "--reason", "leaked_secret")
    assert ended.value.code == 1
    told = capsys.readouterr().out
    assert "rejected the change. Redact again when it is available. (bots: 1)" in told
    assert SECRET not in told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--session", "3f2b0c52-1111-4111-8111-111111111111", "--preview"], "no session"),
        (["--subject", "nobody", "--preview"], "There is no subject with the"),
        (["--subject", "customer_1"], "--reason"),
    ],
)
def test_what_is_wrong_is_a_sentence(record: SessionRecord, typed: None, arguments: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("redact_text", *arguments)


def test_many_places_need_two_people(
    record: SessionRecord, monkeypatch: pytest.MonkeyPatch, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    settings.REDACT_ALONE_PLACES, settings.NOTICES_TO, settings.MAIL_SERVER = 1, ["all@example.com"], "mail"
    add_items("s", user(SECRET))
    person("compliance"), person("compliance", "support"), person("auditor")
    people: list[tuple[tuple[str, ...], str]] = [
        ((), "give --requested-by and --approved-by"),
        (("--requested-by", "compliance", "--approved-by", "compliance"), "Another person"),
        (("--requested-by", "compliance", "--approved-by", "auditor"), "no role that allows this"),
        (("--requested-by", "nobody", "--approved-by", "compliance"), "no active user nobody"),
    ]
    for given, sentence in people:
        monkeypatch.setattr("sys.stdin", io.StringIO(SECRET))
        with pytest.raises(CommandError, match=sentence):
            run("--session", str(record.pk), "--reason", "leaked_secret", *given)
    assert not Redaction.objects.exists()
    monkeypatch.setattr("sys.stdin", io.StringIO(SECRET))
    two = ("--requested-by", "compliance", "--approved-by", "compliance-support")
    with django_capture_on_commit_callbacks(execute=True):
        told = run("--session", str(record.pk), "--reason", "leaked_secret", *two)
    assert (told["places"], told["left"], mail.outbox) == (2, [], [])
    asked = Redaction.objects.get()
    assert asked.requested_by
    assert asked.approval
    assert asked.approval.decided_by
    assert (asked.requested_by.username, asked.approval.decided_by.username) == ("compliance", "compliance-support")
