"""What browsers report about the policy: the rule and the host, and nothing that anybody said."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from memadmin.web import policy_reports

ADDRESS = "/policy-report/"


@pytest.fixture(autouse=True)
def fresh_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_reports, "limit", policy_reports.Limit(policy_reports.PER_MINUTE))


def send(client: Client, told: object) -> int:
    body = told if isinstance(told, bytes | str) else json.dumps(told)
    return client.post(ADDRESS, body, content_type="application/csp-report").status_code


def report(**fields: str) -> dict[str, dict[str, str]]:
    return {"csp-report": {"effective-directive": "img-src", **fields}}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "memadmin.policy"]


def test_a_report_is_a_line_with_rule_and_host(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    told = report(**{"blocked-uri": "https://elsewhere.example/pixel?marta=1", "document-uri": "/sessions/marta/"})
    assert send(client, told) == 204
    assert lines(caplog) == ["Content Security Policy: img-src refused elsewhere.example"]


@pytest.mark.parametrize("word", ["inline", "eval", "trusted-types-sink"])
def test_what_has_no_host_is_said_in_the_browsers_word(
    client: Client, caplog: pytest.LogCaptureFixture, word: str
) -> None:
    told = report(**{"blocked-uri": word, "script-sample": "alert('what marta said')"})
    assert send(client, told) == 204
    assert lines(caplog) == [f"Content Security Policy: img-src refused {word}"]


def test_both_ways_of_writing_it_are_read(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    newer = [{"type": "csp-violation", "body": {"effectiveDirective": "script-src-elem", "blockedURL": "inline"}}]
    assert send(client, newer) == 204
    assert lines(caplog) == ["Content Security Policy: script-src-elem refused inline"]


@pytest.mark.parametrize(
    "told",
    [
        "",
        "not json",
        b"\xff\xfe",
        "[" * 5_000,
        "7",
        [7, None],
        {"csp-report": "words"},
        report(**{"blocked-uri": "http://[broken"}),
        report(**{"effective-directive": "marta said\nINFO forged line", "blocked-uri": "marta said"}),
        {"csp-report": {}},
    ],
)
def test_nothing_that_somebody_made_up_gets_into_the_log(
    client: Client, caplog: pytest.LogCaptureFixture, told: object
) -> None:
    assert send(client, told) == 204
    assert all("marta" not in line and "\n" not in line for line in lines(caplog))


def test_a_flood_is_dropped(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(policy_reports.PER_MINUTE + 20):
        assert send(client, report(**{"blocked-uri": "inline"})) == 204
    assert len(lines(caplog)) == policy_reports.PER_MINUTE


def test_a_minute_later_it_is_listened_to_again() -> None:
    instant = 0.0
    limit = policy_reports.Limit(2, clock=lambda: instant)
    assert [limit.take() for _ in range(3)] == [True, True, False]
    instant = 60.0
    assert limit.take()


def test_a_large_report_is_not_read(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    assert send(client, report(**{"blocked-uri": "inline", "padding": "x" * 20_000})) == 204
    assert lines(caplog) == []


def test_it_takes_neither_session_nor_database(client: Client) -> None:
    """The mark of the database is missing on purpose."""
    assert send(client, report(**{"blocked-uri": "inline"})) == 204
    assert client.get(ADDRESS).status_code == 405
