"""Requests of people in a real browser: from a subject's page to the receipt, by keyboard and by two people."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

import pytest
from django.contrib.auth.models import User
from django.utils.timezone import now
from playwright.sync_api import Page, expect

from memadmin.erasure import services
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.runs.models import Run
from memories_app.models import Recall, Signal
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items
from tests.approvals import without_triggers
from tests.browser.conftest import in_all_views
from tests.browser.looking import assert_no_sideways_scroll
from tests.builders import make_subject
from tests.erasure.builders import Kind, approved, awaiting, make_request, work_off
from tests.memories.builders import approved as approved_memory
from tests.people import person
from tests.retention.builders import make_hold

pytestmark = pytest.mark.usefixtures("transactional_db")

SignIn = Callable[..., User]
Look = Callable[[str], None]


class Watch(Protocol):
    def expect(self, text: str) -> None: ...


State = SubjectRequest.State


def person_with_data(key: str, by: User, *sessions: str) -> Subject:
    """A subject with sessions in the main store, a memory, a signal and a recall."""
    subject = make_subject(key)
    for name in sessions:
        add_items(name, *(f"item {number}" for number in range(12)))
    attach_sessions(SessionRecord.objects.filter(session_id__in=sessions), subject, by=by)
    approved_memory("Prefers a window seat.", subject=subject)
    Signal.objects.create(subject=subject, kind="preference", text="window seat")
    Recall.objects.create(subject=subject)
    return subject


def finish(case: SubjectRequest, settings: Any) -> None:
    """Works on an approved erasure until it is complete, as if the day between the scans was over."""
    settings.RESCAN_AFTER = timedelta(0)
    for _ in range(3):  # the receipt of each scan waits for the log
        Run.objects.filter(subject_request=case).update(retry_at=None)
        case.refresh_from_db()
        if case.is_closed:
            return
        work_off(case)
    assert case.is_closed


def test_an_erasure_by_two_people_with_the_keyboard(
    kept_main_store: SessionStore,
    page: Page,
    sign_in: SignIn,
    watch: Watch,
    settings: Any,
    refresh: Callable[[], None],
) -> None:
    officer = sign_in("compliance")
    subject = person_with_data("cust_48213", officer, "chat_1", "chat_2")
    page.goto(subject.get_absolute_url())
    page.get_by_role("link", name="New request").press("Enter")
    expect(page.get_by_label("ID of the subject")).to_have_value("cust_48213")
    page.get_by_label("Ground of an erasure").select_option("consent")
    page.get_by_label("Other names, addresses and numbers").fill("Ada Example")
    page.get_by_role("button", name="Open case").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("was opened. Next, check the identity.")
    page.get_by_label("How it was checked").fill("called back on the number on file")
    page.get_by_role("button", name="Identity is checked").press("Enter")
    expect(page.get_by_text("approval needs a preview")).to_be_visible()
    page.get_by_role("button", name="Count", exact=True).press("Enter")
    expect(page.get_by_role("row", name="main")).to_contain_text("24")
    page.get_by_role("button", name="Ask for approval").press("Enter")
    expect(page.get_by_text("You requested this. Another person has to decide.")).to_be_visible()
    page.locator("summary", has_text="Note").press("Enter")
    page.locator("#comment-note").fill("The person was told.")
    page.get_by_role("button", name="Add note").press("Enter")
    expect(page.get_by_text("The person was told.")).to_be_visible()

    sign_in("compliance", "reviewer")
    page.goto("/requests/?state=mine")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_label("I read the preview and the identity check").press("Space")
    page.get_by_label("Type the subject's ID to confirm").fill("cust_99999")
    watch.expect("422")
    page.get_by_role("button", name="Approve erasure").press("Enter")
    expect(page.get_by_text("This is not an ID of the subject.")).to_be_visible()
    expect(page.get_by_label("Type the subject's ID to confirm")).to_be_focused()
    described = "This is not an ID of the subject. Nothing was approved."
    expect(page.get_by_label("Type the subject's ID to confirm")).to_have_accessible_description(described)
    page.get_by_label("Type the subject's ID to confirm").fill("cust_48213")
    page.get_by_role("button", name="Approve erasure").press("Enter")
    expect(page.get_by_text("Until then it can be cancelled")).to_be_visible()

    case = SubjectRequest.objects.get()
    # As if the time to cancel was over.
    with without_triggers():
        SubjectRequest.objects.update(starts_at=now())
    Run.objects.update(retry_at=None)
    page.locator("summary", has_text="Note").press("Enter")
    page.locator("#comment-note").fill("half a sentence")
    case.refresh_from_db()
    work_off(case)
    refresh()
    # The page shows it by itself, and what was typed stays.
    expect(page.locator("#case")).to_contain_text("The second scan, a day after the first")
    expect(page.locator("#comment-note")).to_have_value("half a sentence")
    finish(case, settings)
    refresh()
    expect(page.locator("#case")).to_contain_text("2 of 2 clean")
    with page.expect_download() as download:
        page.get_by_role("link", name="Signed file").press("Enter")
    assert download.value.suggested_filename == f"{case}-receipt.json"
    assert json.loads(download.value.path().read_text())["payload"]["outcome"] == "complete"
    page.reload()
    assert "cust_48213" not in page.content()


def running(subject: Subject, *, by: User, second: User) -> SubjectRequest:
    """An erasure that a worker is busy with."""
    case = approved(subject, by=by, second=second)
    SubjectRequest.objects.filter(pk=case.pk).update(state=State.RUNNING, started_at=now())
    Run.objects.filter(subject_request=case).update(state="running", retry_at=None)
    ErasureStep.objects.create(request=case, name="sessions", position=0, expected=20)
    return case


def test_a_refresh_keeps_the_focus_where_it_is(
    agent_tables: None, page: Page, sign_in: SignIn, refresh: Callable[[], None]
) -> None:
    case = running(make_subject("cust_48213"), by=person("compliance", "reviewer"), second=sign_in("compliance"))
    page.goto(case.get_absolute_url())
    pause = page.get_by_role("button", name="Pause")
    for control in (pause, page.get_by_role("link", name="Run R-"), page.get_by_role("group", name="Holders of data")):
        control.focus()
        erased = ErasureStep.objects.get()
        erased.erased += 1
        erased.save()
        refresh()
        expect(page.get_by_text(f"{erased.erased} row").first).to_be_visible()
        expect(control).to_be_focused()


def test_on_a_phone_the_state_is_above_the_actions_which_open_within_the_page(
    agent_tables: None, page: Page, sign_in: SignIn
) -> None:
    case = make_request(make_subject("cust_48213"), by=sign_in("compliance"))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(case.get_absolute_url())
    blocks = [page.locator(name) for name in ("h1", ".case-state", ".head > .btn-list", "ol.case")]
    tops = [block.bounding_box() for block in blocks]
    assert all(tops)
    assert sorted(tops, key=lambda box: box["y"] if box else 0) == tops
    for action in ("Note", "Extend", "Refuse", "Cancel"):
        page.locator(".head summary", has_text=action).press("Enter")
        menu = page.locator("details[open] > form").bounding_box()
        assert menu
        assert menu["width"] > 300, f"{action} has room for its fields"
        assert_no_sideways_scroll(page)
        page.keyboard.press("Escape")


def test_why_nothing_was_changed_gets_the_focus_and_stays(
    agent_tables: None, page: Page, sign_in: SignIn, watch: Watch, refresh: Callable[[], None]
) -> None:
    case = running(make_subject("cust_48213"), by=person("compliance", "reviewer"), second=sign_in("compliance"))
    page.goto(case.get_absolute_url())
    Run.objects.filter(subject_request=case).update(state="complete", ended_at=now())
    watch.expect("409")
    page.get_by_role("button", name="Pause").press("Enter")
    problem = page.locator("[role=alert]")
    expect(problem).to_be_focused()
    refresh()
    expect(problem).to_be_visible()
    expect(page.locator("#case[hx-get]")).to_have_count(0)


def test_a_receipt_is_printed_without_the_console(
    kept_main_store: SessionStore, page: Page, sign_in: SignIn, settings: Any
) -> None:
    asks, officer = person("compliance", "reviewer"), sign_in("compliance")
    case = approved(person_with_data("cust_70031", asks, "g1"), by=asks, second=officer)
    finish(case, settings)
    page.goto(f"{case.get_absolute_url()}receipt/")
    expect(page.get_by_role("row", name="Sessions in the store main")).to_be_visible()
    expect(page.get_by_text("Django admin's log")).to_be_visible()  # nothing in it
    page.keyboard.press("Tab")
    expect(page.locator(".skip-link")).to_be_focused()
    page.emulate_media(media="print")
    for part in (".skip-link", ".navbar-vertical", ".topbar", ".footnote", "main .btn", ".crumbs"):
        expect(page.locator(part).first).to_be_hidden()
    page.emulate_media(media="screen")


@in_all_views
def test_pages_in_all_sizes_and_themes(
    kept_main_store: SessionStore, look: Look, sign_in: SignIn, settings: Any
) -> None:
    asks, officer = person("compliance", "reviewer"), sign_in("compliance")
    look("/requests/")
    look("/requests/new/")
    gone = approved(person_with_data("cust_70031", asks, "g1", "g2", "g3"), by=asks, second=officer)
    finish(gone, settings)
    look(gone.get_absolute_url())
    look(f"{gone.get_absolute_url()}receipt/")

    running = approved(person_with_data("cust_77120", asks, "r1"), by=asks, second=officer)
    assert running.run
    SubjectRequest.objects.filter(pk=running.pk).update(state=State.RUNNING, started_at=now() - timedelta(minutes=4))
    Run.objects.filter(pk=running.run.pk).update(
        state="running", done=401, total=590, worked_ms=120_000, retry_at=None, chunk_at=now()
    )
    away = "The store claims-mongo does not respond."
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("sessions", "support-main", {"state": "done", "expected": 204, "erased": 206}),
        ("sessions", "claims-mongo", {"state": "waiting", "expected": 61, "reason": away}),
        ("recalls", "", {"state": "running", "expected": 266, "erased": 166}),
        ("memories", "", {"expected": 9}),
        ("signals", "", {}),
        ("audit_details", "", {"expected": 12}),
    ]
    for position, (name, place, columns) in enumerate(steps):
        ErasureStep.objects.create(request=running, name=name, place=place, position=position, **columns)
    look(running.get_absolute_url())
    look(f"{running.get_absolute_url()}steps/{ErasureStep.objects.get(place='claims-mongo').pk}/leave-out/")

    subject = person_with_data("cust_48213", asks, "a1", "a2", "held")
    make_hold(SessionRecord.objects.get(session_id="held"), by=asks, reason="Chargeback 2026-5512, placed by Legal")
    case = awaiting(subject, by=asks, received_on=now().date() - timedelta(days=28))
    services.comment(case, note="Asked the booking team about saved run states " + "many words " * 12, by=asks)
    look(case.get_absolute_url())

    overdue = make_request(make_subject("cust_50977"), by=asks, received_on=now().date() - timedelta(days=40))
    make_request(make_subject("cust_50978"), by=officer, kind=Kind.ACCESS)
    services.refuse_request(
        make_request(make_subject("cust_50979"), by=asks),
        reason=SubjectRequest.Refusal.LEGAL_CLAIM,
        note="claim pending",
        by=asks,
    )
    look("/requests/")
    look(overdue.get_absolute_url())
    look(make_request(make_subject("cust_50980"), by=asks, kind=Kind.ACCESS).get_absolute_url())
    look(subject.get_absolute_url())
    look("/")
