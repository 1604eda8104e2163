"""`run_retention`: what it prints, and with which code it ends."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memadmin.retention.sweep import starting
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord
from tests.agents import add_items, attach_main_store
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import age, in_force


@pytest.fixture(autouse=True)
def sessions(agent_tables: None) -> None:
    attach_main_store()
    for name in ("old", "held", "young"):
        add_items(name, "one", "two")
    for name in ("old", "held"):
        age(name, timedelta(days=40))
    make_hold(SessionRecord.objects.get(session_id="held"), by=person("compliance"))
    in_force("Chats", days=30)
    in_force("Bots", days=30, agent="bot")


def printed(*flags: str) -> str:
    out = StringIO()
    call_command("run_retention", *flags, stdout=out)
    return out.getvalue()


def told(*flags: str) -> Any:
    return json.loads(printed("--json", *flags))


def on_record() -> int:
    return SessionRecord.objects.on_record().count()


def test_a_preview_has_the_keys_that_scripts_rely_on_and_changes_nothing() -> None:
    assert told("--preview", "--policy", "Chats") == {
        "run": None,
        "policies": [
            {
                "policy": "Chats",
                "version": 1,
                "rows": {"sessions": 1, "items": 2},
                "held": 1,
                "live": 0,
                "skipped": [],
            }
        ],
        "outcome": "preview",
    }
    assert [each["policy"] for each in told("--preview")["policies"]] == ["Bots", "Chats"]
    assert (on_record(), Run.objects.count()) == (3, 0)


def test_a_run_tells_what_it_took() -> None:
    report = told("--policy", "Chats")
    run = Run.objects.get()
    assert (report["run"], report["outcome"]) == (str(run), "complete")
    assert report["policies"] == [
        {"policy": "Chats", "version": 1, "rows": {"sessions": 1, "items": 2}, "held": 1, "live": 0, "skipped": []}
    ]
    assert on_record() == 2


def test_people_read_sentences() -> None:
    text = printed()
    assert "Chats (version 1): 1 sessions, 2 items." in text
    assert "1 kept by holds" in text
    assert "complete." in text


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(CommandError, match="No policy in force has the name 'Nobody'"):
        printed("--policy", "Nobody")
    assert on_record() == 3


def test_a_run_that_asks_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "SLACK", 0)
    in_force("Asking", days=30, session_pattern="old", preview={"places": [{"place": "main", "rows": 0}]})
    out = StringIO()
    with pytest.raises(CommandError, match=r"is stopped\. Asking would take 1 rows in main; 0 were expected"):
        call_command("run_retention", "--json", stdout=out)
    assert json.loads(out.getvalue())["outcome"] == "stopped"
    assert on_record() == 3
