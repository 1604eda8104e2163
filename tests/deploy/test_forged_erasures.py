"""Forged facts of erasures: what a worker signs in a receipt, the web server's role cannot write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from memadmin import audit
from memadmin.audit.transparency import receipts
from memadmin.deploy.roles import Roles
from memadmin.erasure import services
from memadmin.erasure.access_copy import services as copies
from memadmin.erasure.access_copy.deleting import delete_copy
from memadmin.erasure.batches import services as batches
from memadmin.erasure.exceptions import Left
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.runs import services as runs
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from sessions_app.models import Subject
from tests.agents import run_sql, value_of
from tests.builders import make_subject
from tests.deploy.connecting import connected_as, in_a_command, refusal
from tests.erasure.batches import csv_of
from tests.erasure.builders import approved, work_off
from tests.erasure.copies import started_copy
from tests.memories.builders import approved as approved_memory
from tests.people import person, proven

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

BELIEVING = """
CREATE OR REPLACE FUNCTION memadmin_workers_alone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RETURN NEW; END $$
"""
"""The broken variant: whoever may change the table may forge the facts."""

CLEAN_SCAN = '[{"at": "2026-01-02T03:04:05.000000Z", "rows": 1, "found": 0, "places": []}]'

FORGED: dict[str, dict[str, str]] = {
    "erasure_subjectrequest": {
        "scans": f"'{CLEAN_SCAN}'",
        "pending_scan": "'{\"number\": 9}'",
        "receipt": "'forged'",
        "started_at": "NULL",
        "scanned_by_id": "run_id",
        "subject_id": "(SELECT id FROM sessions_app_subject AS s WHERE s.id <> subject_id LIMIT 1)",
        "kind": "'access'",
        "received_on": "received_on - 20",
        "state": "'approved'",
        "run_id": "NULL",
        "preview": "preview - 'out_of_reach'",
        "closed_at": "now()",
        "id": "gen_random_uuid()",
    },
    "erasure_erasurestep": {
        "erased": "erased + 1000",
        "held": "held + 1",
        "expected": "0",
        "exceptions": "'{\"others_text\": 1}'",
        "name": "'forged'",
        "place": "'forged'",
        "cursor": "'zzz'",
        "reason": "'forged'",
        "request_id": "request_id + 1",
    },
    "runs_run": {
        "cursor": "'{\"clean\": 1}'",
        "counters": "'{\"rows\": 9}'",
        "exceptions": '\'[["held", "memories", 1]]\'',
        "done": "done + 1",
        "token": "token + 1",
        "kind": "'retention'",
        "parameters": "'{\"replays\": 1}'",
    },
}


FORGED_BESIDES: dict[str, dict[str, str]] = {
    "erasure_accesscopy": {
        "sha256": "'forged'",
        "size": "1",
        "file_name": "'../forged'",
        "key": "'forged'",
        "request_id": "request_id + 1",
        "expires_at": "expires_at + interval '1 year'",
    },
    "erasure_requestbatch": {"preview": "'{\"rows\": 1}'", "previewed_at": "now() + interval '1 day'"},
    "erasure_batchline": {"request_id": "(SELECT number FROM erasure_subjectrequest LIMIT 1)"},
}


@pytest.fixture(autouse=True)
def with_its_key() -> Iterator[None]:
    """A proven actor, whom these triggers ask for nothing."""
    with in_a_command():
        yield


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


@pytest.fixture
def second(db: None) -> User:
    return person("compliance", "reviewer")


@pytest.fixture
def subject(db: None) -> Subject:
    make_subject("bob-1")
    ada = make_subject("ada-1")
    approved_memory("Drinks tea.", subject=ada)
    return ada


@pytest.fixture
def started(ours: Roles, subject: Subject, officer: User, second: User) -> SubjectRequest:
    """An erasure that the web server approved, and a worker carried out up to the first receipt."""
    with connected_as(ours["web"]):
        request = approved(subject, by=officer, second=second)
    with connected_as(ours["worker"]):
        work_off(request)
    assert request.receipt
    return request


def payload_of(request: SubjectRequest) -> dict[str, object]:
    request.refresh_from_db()
    payload: dict[str, object] = json.loads(request.receipt)["payload"]
    return payload


def test_facts_of_a_started_erasure_are_the_workers(ours: Roles, started: SubjectRequest) -> None:
    with connected_as(ours["web"]):
        for table, columns in FORGED.items():
            for column, value in columns.items():
                found = refusal(f"UPDATE {table} SET {column} = {value}")
                assert f"Only a worker writes {column} of {table}" in found, (table, column, found)
        for table in ("erasure_subjectrequest", "erasure_erasurestep"):
            assert "permission denied" in refusal(f"DELETE FROM {table}")
        assert "permission denied" in refusal(
            "INSERT INTO erasure_suppressionentry VALUES (1, gen_random_uuid(), now())"
        )


def test_broken_variant_without_the_trigger_the_worker_signs_a_forged_scan(
    ours: Roles, started: SubjectRequest
) -> None:
    run_sql(BELIEVING)
    with connected_as(ours["web"]):
        run_sql(f"UPDATE erasure_subjectrequest SET scans = '{CLEAN_SCAN}', state = 'running'")
        run_sql("UPDATE erasure_erasurestep SET erased = 1000 WHERE name = 'memories'")
        run_sql("UPDATE runs_run SET state = 'waiting', retry_at = NULL, cursor = '{\"clean\": 1}'")
    with connected_as(ours["worker"]):
        work_off(started)
    payload = payload_of(started)
    assert payload["scans"][0] == {"at": "2026-01-02T03:04:05.000000Z", "rows_read": 1, "found": 0}  # type: ignore[index]
    assert payload["counts"]["memories"] == 1000  # type: ignore[index]


def test_nothing_begins_with_forged_facts(ours: Roles, started: SubjectRequest) -> None:
    columns = "kind, subject_id, channel, received_on, due_on"
    values = f"'access', '{started.subject_id}', 'letter', now(), now()"
    with connected_as(ours["web"]):
        for column, value in FORGED["erasure_subjectrequest"].items():
            if column in ("scans", "pending_scan", "receipt"):
                insert = f"INSERT INTO erasure_subjectrequest ({columns}, {column}) VALUES ({values}, {value})"
                assert f"Only a worker writes {column}" in refusal(insert)
        assert "permission denied" in refusal("INSERT INTO erasure_erasurestep (name, position) VALUES ('x', 1)")
        for column in ("cursor", "counters", "exceptions"):
            insert = f"INSERT INTO runs_run (kind, {column}) VALUES ('erasure', {FORGED['runs_run'][column]})"
            assert f"Only a worker writes {column}" in refusal(insert)
        for kind in ("erasure", "erasure_batch"):
            insert = f"INSERT INTO runs_run (kind, parameters) VALUES ('{kind}', '{{\"replays\": 1}}')"
            assert "Only a worker writes parameters" in refusal(insert)


def test_what_people_decide_during_an_erasure_is_proven(ours: Roles, started: SubjectRequest, officer: User) -> None:
    with connected_as(ours["web"]), audit.acting(None):
        for statement in (
            "UPDATE erasure_subjectrequest SET first_due_on = due_on, due_on = due_on + 30",
            "UPDATE erasure_erasurestep SET state = 'left_out', cursor = '' WHERE name = 'memories'",
            "UPDATE erasure_subjectrequest SET locators = ''",
            "UPDATE erasure_accesscopy SET token_digest = 'forged', left_out = '{main}'",
        ):
            assert "the actor is not proven" in refusal(statement)
            with proven(officer):
                assert refusal(statement) == ""


def test_people_still_decide_as_the_web_server(ours: Roles, started: SubjectRequest, officer: User) -> None:
    step = ErasureStep.objects.filter(request=started)[0]
    ErasureStep.objects.filter(pk=step.pk).update(state="waiting", expected=step.erased + 2)
    with connected_as(ours["web"]):
        services.leave_out(started, step, note="gone for good", by=officer)
        request = services.extend_request(started, until=started.due_on + timedelta(days=9), note="many", by=officer)
        assert request.run is not None
        runs.pause_run(request.run, by=officer)
        runs.resume_run(request.run, by=officer)
        services.open_request(
            started.Kind.ERASURE, started.subject, by=officer, channel=started.Channel.LETTER, known_as=["Adele"]
        )
    step.refresh_from_db()
    assert step.state == "left_out"


def test_copy_for_a_person_and_count_of_a_batch_are_the_workers(
    ours: Roles, officer: User, subject: Subject, settings: Settings, tmp_path: Path
) -> None:
    settings.ACCESS_COPY_FOLDER = tmp_path
    with connected_as(ours["web"]):
        copy = started_copy(subject, by=officer)
        batch = batches.upload(csv_of("ada-1"), name="list.csv", ground="consent", note="", by=officer)
    with connected_as(ours["worker"]):
        carry_on(copy.run)
        assert batch.preview_run
        carry_on(batch.preview_run)
    batch.refresh_from_db()
    assert batch.previewed_at
    with connected_as(ours["web"]):
        for table, columns in FORGED_BESIDES.items():
            for column, value in columns.items():
                found = refusal(f"UPDATE {table} SET {column} = {value}")
                assert f"{column} of {table}" in found, (table, column, found)
        token = copies.make_link(copy.request, by=officer)
        _, content = copies.fetch(copy.request, token, by=officer)
        assert b"".join(content)
        assert delete_copy(copy, reason="expired")
        batches.count_again(batch, by=officer)


def test_run_that_is_cancelled_by_a_person_ends(ours: Roles, subject: Subject, officer: User, second: User) -> None:
    with connected_as(ours["web"]):
        request = approved(subject, by=officer, second=second)
        request = services.cancel_request(request, note="withdrawn", by=officer)
    assert request.state == "cancelled"


def test_preview_that_differs_from_the_approved_one_stops_the_run(
    ours: Roles, subject: Subject, officer: User, second: User
) -> None:
    """Before the start the preview is the web server's word, and the approval is a person's."""
    with connected_as(ours["web"]):
        request = approved(subject, by=officer, second=second)
        run_sql("UPDATE erasure_subjectrequest SET preview = jsonb_set(preview, '{out_of_reach}', '[]')")
    with connected_as(ours["worker"]):
        run = work_off(request)
    assert (run.state, request.is_started) == ("stopped", False)


def test_receipt_is_made_of_the_facts_and_not_of_what_a_run_kept(
    ours: Roles, subject: Subject, officer: User, second: User
) -> None:
    """Of one role that does everything, too: a payload and an event that are planted change nothing."""
    request = approved(subject, by=officer, second=second)
    work_off(request)
    planted = payload_of(request) | {"outcome": "complete", "counts": {"memories": 1000}}
    assert request.run is not None
    Run.objects.filter(pk=request.run.pk).update(
        cursor={"clean": 1, "payload": planted, "scans": 1, "event": json.loads(request.receipt)["event"]["id"]},
        state="waiting",
        retry_at=None,
    )
    step = ErasureStep.objects.filter(request=request, name="memories")
    step.update(exceptions={Left.OTHERS_TEXT.value: 1})
    SubjectRequest.objects.filter(pk=request.pk).update(state="running")
    work_off(request)
    payload = payload_of(request)
    assert payload["counts"] != planted["counts"]
    assert payload["outcome"] == "exceptions", "what has changed since has an event of its own"
    assert not receipts.verify(request.receipt.encode()).findings
    assert value_of("SELECT count(*) FROM audit_event WHERE type = 'request.closed'") == 2
