"""Batches in a real browser: uploaded and approved by keyboard, and their pages in all sizes and themes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils.timezone import now
from playwright.sync_api import Page, expect

from memadmin.erasure.batches import services
from memadmin.erasure.batches.work import open_case
from memadmin.erasure.models import BatchLine, RequestBatch, SubjectRequest
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from sessions_app.services.subjects import merge_subjects
from tests.browser.conftest import in_all_views
from tests.erasure.batches import approved_batch, csv_of, make_subjects, uploaded
from tests.erasure.builders import make_request
from tests.people import person
from tests.retention.builders import make_hold

pytestmark = pytest.mark.usefixtures("transactional_db")

SignIn = Callable[..., User]
Look = Callable[[str], None]


def test_a_batch_is_uploaded_corrected_and_approved_by_keyboard(page: Page, sign_in: SignIn, tmp_path: Path) -> None:
    make_subjects(["cust_1", "cust_41213"])
    file = tmp_path / "erasures-q4.csv"
    file.write_bytes(csv_of("cust_1", "cust_4l213"))
    sign_in("compliance")
    page.goto("/requests/batches/")
    page.get_by_role("link", name="New batch").first.press("Enter")
    page.get_by_label("CSV file").set_input_files(file)
    page.get_by_label("Ground").select_option("consent")
    page.get_by_label("Note for who approves").fill("accounts closed before 1 July")
    page.get_by_role("button", name="Upload").press("Enter")
    page.get_by_role("link", name="Correct line 3").press("Enter")
    expect(page.get_by_label("ID of the subject")).to_have_value("cust_41213")
    page.get_by_role("button", name="Save line").press("Enter")
    expect(page.get_by_role("heading", name="erasure of 2 subjects")).to_be_visible()
    batch = RequestBatch.objects.get()
    assert batch.preview_run
    carry_on(batch.preview_run)
    # The page refreshes itself.
    ask = page.get_by_role("button", name="Ask for approval of 2 subjects")
    expect(ask).to_be_enabled()
    ask.press("Enter")
    expect(page.get_by_text("Another person than the requester has to approve it.")).to_be_visible()
    sign_in("compliance", "reviewer")
    page.goto(batch.get_absolute_url())
    page.get_by_label("I read the preview").press("Space")
    page.get_by_label("Type erase 2 to approve").fill("erase 2")
    page.get_by_role("button", name="Approve erasure of 2 subjects").press("Enter")
    expect(page.get_by_text("Until then it can be cancelled")).to_be_visible()


def test_a_refresh_waits_while_a_filter_is_typed(page: Page, sign_in: SignIn, refresh: Callable[[], None]) -> None:
    colleague, officer = person("compliance", "reviewer"), sign_in("compliance")
    batch = running(colleague, officer)
    page.goto(batch.get_absolute_url())
    page.get_by_label("Line or case").fill("12")
    page.get_by_role("button", name="Apply").focus()
    page.evaluate("""() => {
        window.sent = [];
        document.addEventListener("htmx:beforeSend", ({ target }) => window.sent.push(target.id));
    }""")
    RequestBatch.objects.filter(pk=batch.pk).update(state="complete", closed_at=now())
    refresh()
    assert "state" not in page.evaluate("window.sent")
    page.get_by_label("Line or case").fill("")
    page.get_by_role("button", name="Apply").focus()
    refresh()
    # A closed batch refreshes itself no more, and the focus is where it was.
    expect(page.locator("#state[hx-get]")).to_have_count(0)
    expect(page.get_by_role("button", name="Apply")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Outcomes")).to_be_visible()


def awaiting(officer: User) -> RequestBatch:
    """A batch with one line of each problem."""
    make_subjects([f"cust_{number}" for number in range(41200, 41240)])
    merged, into, held, other = make_subjects(["acct_207", "acct_112", "cust_33108", "cust_48213"])
    merge_subjects(merged, into, by=officer)
    make_hold(held, by=officer)
    make_request(other, by=officer)
    lines = [f"cust_{number}" for number in range(41200, 41240)]
    lines[5:5] = ["cust_4l213", ",user", "cust_41201", "cust_48213", "cust_41202;", "acct_207", "cust_33108"]
    batch = uploaded(csv_of(*lines, "nobody_at_all", "x" * 513), by=officer)
    preview = {
        **batch.preview,
        "places": {"main": [11_204, 188_410, 1_102], "planner": [2_318, 21_660, 48], "": [0, 30_118, 212]},
        "problems": {"hotline": "The store does not respond, so this is not counted."},
    }
    RequestBatch.objects.filter(pk=batch.pk).update(preview=preview, due_on=now().date() + timedelta(days=4))
    return services.request_approval(batch, by=officer)


def running(officer: User, second: User) -> RequestBatch:
    """A batch with lines of each outcome."""
    keys = [f"cust_{number}" for number in range(60400, 60440)]
    make_subjects(keys)
    batch = approved_batch(csv_of(*keys), by=officer, second=second)
    RequestBatch.objects.filter(pk=batch.pk).update(state="running", started_at=now())
    batch.lines.filter(number=35).update(problem=BatchLine.Problem.CHANGED)
    for line in batch.lines.select_related("subject")[:31]:
        with transaction.atomic():
            open_case(batch, line)
    cases = SubjectRequest.objects.filter(batch_lines__batch=batch).order_by("number")
    numbers = list(cases.values_list("number", flat=True))
    closed = {"closed_at": now(), "receipt": "{}"}
    SubjectRequest.objects.filter(number__in=numbers[:20]).update(state="complete", **closed)
    SubjectRequest.objects.filter(number__in=numbers[20:22]).update(state="exceptions", **closed)
    SubjectRequest.objects.filter(number__in=numbers[22:24]).update(state="scanning", receipt="{}")
    for numbers_of_state, columns in (
        (numbers[24:25], {"state": "stopped", "reason": "The subject is under the legal hold H-34."}),
        (numbers[25:27], {"state": "failed", "reason": "An error of the type RuntimeError.", "ended_at": now()}),
        (numbers[27:30], {"state": "waiting", "reason": "The store hotline does not respond.", "retry_at": now()}),
    ):
        Run.objects.filter(subject_request__number__in=numbers_of_state).update(**columns)
    for number in numbers[27:30]:
        request = SubjectRequest.objects.get(number=number)
        request.steps.create(name="sessions", place="hotline", position=0, state="waiting", expected=30, erased=18)
    Run.objects.filter(request_batch=batch).update(
        state="running",
        done=24,
        total=40,
        worked_ms=10_000,
        started_at=now(),
        chunk_at=now(),
        lease_until=now() + timedelta(hours=1),
        token=F("token") + 1,
    )
    return batch


@in_all_views
def test_pages_in_all_sizes_and_themes(look: Look, sign_in: SignIn) -> None:
    colleague, officer = person("compliance", "reviewer"), sign_in("compliance")
    look("/requests/batches/")
    look("/requests/batches/new/")
    batch = awaiting(colleague)
    look(batch.get_absolute_url())
    look(f"{batch.get_absolute_url()}broken/")
    look(running(colleague, officer).get_absolute_url())
    look("/requests/batches/")
    make_subjects(["cust_1"])
    open_one = uploaded(csv_of("cust_1", "cust_l"), by=officer)
    look(open_one.get_absolute_url())
    look(f"{open_one.get_absolute_url()}lines/3/")
    open_one = services.count_again(open_one, by=officer)
    reason = "An error of the type OperationalError; the worker's log has the details."
    Run.objects.filter(previewed_batch=open_one).update(state="failed", ended_at=now(), reason=reason)
    look(open_one.get_absolute_url())
