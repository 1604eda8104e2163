"""The pages of batches."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models.functions import Now
from django.http import HttpResponseBase
from django.test import Client
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.erasure.batches import services
from memadmin.erasure.batches.work import open_case
from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.erasure.services import latest_due_date
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from tests.accounts.factors import let_proof_age
from tests.approvals import shown
from tests.erasure.batches import (
    approved_batch,
    awaiting_batch,
    csv_of,
    let_a_day_pass,
    make_subjects,
    uploaded,
    work_off_batch,
)
from tests.people import person, signed_in
from tests.retention.builders import make_hold

pytestmark = pytest.mark.django_db

State = RequestBatch.State


@pytest.fixture
def colleague() -> User:
    return person("compliance", "reviewer")


@pytest.fixture
def first(officer: User) -> Client:
    return signed_in(officer)


@pytest.fixture
def second(colleague: User) -> Client:
    return signed_in(colleague)


def text(response: HttpResponseBase) -> str:
    return " ".join(response.content.decode().split())  # type: ignore[attr-defined]


def streamed(response: HttpResponseBase) -> str:
    return b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]


def send(client: Client, data: bytes, **changed: str) -> HttpResponseBase:
    values = {"ground": "consent", "received_on": str(now().date()), "note": "closed accounts", **changed}
    file = SimpleUploadedFile("erasures-q4.csv", data, content_type="text/csv")
    return client.post("/requests/batches/new/", {"file": file, **values})


def test_from_the_upload_to_the_end_in_two_browsers(first: Client, second: Client, officer: User) -> None:
    make_subjects(["ann", "bob", "cust_41213"])
    assert "No batches yet" in text(first.get("/requests/batches/"))
    assert "The file is not kept" in text(first.get("/requests/batches/new/"))
    answer = send(first, csv_of("ann", "bob", "cust_4l213"))
    batch = RequestBatch.objects.get()
    assert answer.status_code == 302
    here = batch.get_absolute_url()
    page = text(first.get(here))
    for words in (f"{batch}: erasure of 2 subjects", "erasures-q4.csv", "Did you mean cust_41213?", "Counting 0 of 2"):
        assert words in page
    assert "Counting 0 of 2" in text(first.get(here, headers={"HX-Request": "true"}))
    assert 'value="cust_41213"' in text(first.get(f"{here}lines/4/"))
    assert first.post(f"{here}lines/4/", {"key": "cust_41213", "kind": "user"}).status_code == 302
    assert first.post(f"{here}ask/").status_code == 409  # not counted yet
    batch.refresh_from_db()
    assert batch.preview_run
    carry_on(batch.preview_run)
    assert "of 3 subjects." in text(first.get(here))
    assert first.post(f"{here}ask/").status_code == 302
    assert "Another person has to approve" in text(first.get(here))
    batch.refresh_from_db()
    confirmed = {"is_read": "on", "typed": "erase 3", "shown": shown(batch)}
    assert first.post(f"{here}approve/", confirmed).status_code == 403
    page = text(second.get(here))
    assert "waiting for you" in page
    assert "Approve erasure of 3 subjects" in page
    assert second.post(f"{here}approve/", {**confirmed, "typed": "erase 2"}).status_code == 422
    assert second.post(f"{here}approve/", {**confirmed, "is_read": ""}).status_code == 422
    of_other_counts = second.post(f"{here}approve/", {**confirmed, "shown": "0"})
    assert (of_other_counts.status_code, "Read it again." in text(of_other_counts)) == (409, True)
    assert second.post(f"{here}approve/", confirmed).status_code == 302
    page = text(first.get(here))
    assert "Until then it can be cancelled" in page
    assert "Cancel batch" in page
    Run.objects.update(retry_at=None)
    RequestBatch.objects.update(starts_at=Now())
    batch.refresh_from_db()
    work_off_batch(batch)
    page = text(first.get(here))
    for words in ("3 of 3 subjects", "erased, second scan to come", "receipt signed", "DSR-", "Outcome, CSV"):
        assert words in page
    assert first.post(f"{here}cancel/").status_code == 409
    outcome = streamed(first.get(f"{here}outcome.csv"))
    assert outcome.count("erased, second scan to come") == 3
    assert "cust_41213" not in outcome
    let_a_day_pass(batch)
    work_off_batch(batch)
    page = text(first.get(here))
    assert "100 %" in page
    assert "cust_41213" not in page
    assert "complete" in text(first.get("/requests/batches/"))
    types = set(AuditEvent.objects.filter(type__startswith="batch.").values_list("type", flat=True))
    assert types >= {
        f"batch.{name}"
        for name in (
            *("uploaded", "line_corrected", "previewed", "approved"),
            *("started", "closed", "outcome_downloaded"),
        )
    }


@pytest.mark.parametrize(
    ("data", "sentence"),
    [(b"", "The file is empty."), ("ann".encode("utf-16"), "is not UTF-8"), (b"x" * 1_000_001, "larger than 1 MB")],
)
def test_a_bad_file_gets_a_sentence(data: bytes, sentence: str, first: Client) -> None:
    answer = send(first, data)
    assert answer.status_code == 422
    assert sentence in text(answer)
    assert not RequestBatch.objects.exists()


def test_a_form_without_values_gets_sentences(first: Client) -> None:
    answer = first.post("/requests/batches/new/", {})
    assert answer.status_code == 422
    for sentence in ("Choose a file.", "Choose the ground.", "Enter the day of receipt.", "Enter where the list"):
        assert sentence in text(answer)


def test_the_same_file_leads_to_its_batch(first: Client, officer: User) -> None:
    make_subjects(["ann"])
    batch = uploaded(csv_of("ann"), by=officer)
    answer = send(first, csv_of("ann"))
    assert answer.headers["Location"] == batch.get_absolute_url()


def test_broken_lines_have_a_page_and_a_file_without_keys(first: Client, officer: User) -> None:
    (held,) = make_subjects(["held_1"])
    make_hold(held, by=officer)
    batch = uploaded(csv_of("held_1", *(f"nobody_{number}" for number in range(60))), by=officer)
    page = text(first.get(batch.get_absolute_url()))
    assert "6 of 60 broken lines" in page
    assert "left out: 0 remain" in page
    page = text(first.get(f"{batch.get_absolute_url()}broken/"))
    assert "nobody_40" in page
    assert "On hold H-" in page
    file = streamed(first.get(f"{batch.get_absolute_url()}broken.csv"))
    assert file.count("Unknown subject.") == 60
    assert "nobody" not in file
    assert first.get(f"{batch.get_absolute_url()}broken/?cursor=odd").status_code == 400


def test_a_file_with_lines_on_hold_alone_has_no_broken_ones(first: Client, officer: User) -> None:
    held, _ = make_subjects(["held_1", "ann"])
    make_hold(held, by=officer)
    page = text(first.get(uploaded(csv_of("held_1", "ann"), by=officer).get_absolute_url()))
    assert "Lines on hold, CSV" in page
    assert "Show lines on hold" in page
    assert "Broken lines" not in page


def test_a_correction_that_does_not_help_says_why(first: Client, officer: User) -> None:
    make_subjects(["ann"])
    batch = uploaded(csv_of("ann", "nobody"), by=officer)
    here = f"{batch.get_absolute_url()}lines/3/"
    for key, sentence in (("ann", "Duplicate of line 2."), ("", "Enter the ID of the subject.")):
        answer = first.post(here, {"key": key, "kind": "user"})
        assert answer.status_code == 422
        assert sentence in text(answer)
    assert first.post(here, {"key": "ann", "kind": "user"}).status_code == 409  # a duplicate is not corrected
    assert first.get(f"{batch.get_absolute_url()}lines/9/").status_code == 404


def test_approving_needs_a_recent_sign_in(second: Client, officer: User, colleague: User) -> None:
    make_subjects(["ann"])
    batch = awaiting_batch(csv_of("ann"), by=officer)
    let_proof_age(second)
    answer = second.post(
        f"{batch.get_absolute_url()}approve/", {"is_read": "on", "typed": "erase 1", "shown": shown(batch)}
    )
    batch.refresh_from_db()
    assert (answer.status_code, batch.state) != (302, State.APPROVED)
    assert batch.state == State.AWAITING


def test_it_is_sent_back_paused_resumed_and_retried(
    first: Client, second: Client, officer: User, colleague: User
) -> None:
    _ann, bob = make_subjects(["ann", "bob"])
    batch = awaiting_batch(csv_of("ann", "bob"), by=officer)
    here = batch.get_absolute_url()
    assert second.post(f"{here}reject/", {"note": "which list?"}).status_code == 302
    assert "which list?" in text(first.get(here))
    assert first.post(f"{here}pause/").status_code == 409
    assert first.post(f"{here}count/").status_code == 302
    assert first.post(f"{here}cancel/").status_code == 302
    assert "cancelled before anything was erased" in text(first.get(here))
    batch = approved_batch(csv_of("ann", "bob"), by=officer, second=colleague)
    here = batch.get_absolute_url()
    make_hold(bob, by=officer)
    work_off_batch(batch)
    page = text(first.get(here))
    assert "Retry 1 failed or on hold" in page
    assert "under the legal hold" in page
    assert "bob" in page
    assert first.post(f"{here}pause/").status_code == 302
    assert "paused" in text(first.get(here))
    assert first.post(f"{here}resume/").status_code == 302
    assert first.post(f"{here}retry/").status_code == 302
    assert Run.objects.get(subject_request__subject=bob).state == Run.State.WAITING


def test_its_time_is_extended(first: Client, officer: User) -> None:
    make_subjects(["ann"])
    batch = awaiting_batch(csv_of("ann"), by=officer)
    here, latest = batch.get_absolute_url(), latest_due_date(batch)
    assert f'value="{latest}"' in text(first.get(here))
    for until, sentence in (("soon", "Enter a date"), (str(batch.due_on), "must be after the due date")):
        answer = first.post(f"{here}extend/", {"until": until, "note": "many stores"})
        assert (answer.status_code, sentence in text(answer)) == (422, True)
    assert first.post(f"{here}extend/", {"until": str(latest), "note": "many stores"}).status_code == 302
    page = text(first.get(here))
    assert f"extended from {batch.due_on:%-d %B}" in page
    assert f"{here}extend/" not in page
    assert first.post(f"{here}extend/", {"until": str(latest), "note": "again"}).status_code == 409


def test_outcomes_are_filtered_and_paged(first: Client, officer: User, colleague: User) -> None:
    make_subjects(f"cust_{number:02}" for number in range(30))
    batch = approved_batch(csv_of(*(f"cust_{number:02}" for number in range(30))), by=officer, second=colleague)
    RequestBatch.objects.filter(pk=batch.pk).update(state="running", started_at=now())
    for line in batch.lines.all()[:28]:
        open_case(batch, line)
    SubjectRequest.objects.filter(batch_lines__number=5).update(state="complete", closed_at=now())
    here = batch.get_absolute_url()
    page = text(first.get(here))
    assert "cust_27" in page
    assert "cust_28" not in page  # to do
    assert "cust_01" not in page  # on the next page
    shown = {
        "?outcome=to_do": "cust_29",
        "?outcome=complete": "cust_03",
        "?which=5": "cust_03",
        f"?which=DSR-{batch.lines.get(number=5).request_id}": "cust_03",
    }
    for query, key in shown.items():
        page = text(first.get(f"{here}{query}"))
        assert key in page, query
        assert "cust_20" not in page, query
    assert "No line matches" in text(first.get(f"{here}?outcome=failed"))
    for query in ("outcome=odd", "which=odd", "cursor=odd"):
        assert first.get(f"{here}?{query}").status_code == 400, query
    assert services.accepted_lines(batch).count() == 30
