"""The audit log in the browser: what it looks like, by keyboard, on a phone, without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from memadmin import audit
from memadmin.audit.models import AuditActor, AuditDetail, AuditEvent, AuditVerdict
from memadmin.audit.transparency import anchors
from tests.audit.log_pages import NOTED, SESSION_SEEN, SUBJECT_CHANGED, event, insert_notes, insert_row, note, sign_log
from tests.browser.conftest import Watch, in_all_views
from tests.builders import make_session, make_subject
from tests.people import person

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]


@pytest.fixture
def log(transactional_db: None) -> list[AuditEvent]:
    """Of every sort: a read, a denied one, a verb with its rows, raw SQL, somebody erased; some signed, some not."""
    helper, session, subject = person("support"), make_session(), make_subject("cust_48213")
    read = audit.record_alone(
        SESSION_SEEN,
        by=helper,
        target=session,
        subject=subject,
        counters={"items": 1_056},
        details={"reason": "Customer on the line, refund not arrived."},
    )
    note(by=helper, outcome="denied", reason_code="no_grant", shown=[session, subject])
    verb = audit.record_alone(SUBJECT_CHANGED, by=helper, target=subject, shown=[session], details={"reason": "Same"})
    insert_row("subject.row_updated", subject.pk, cause=verb)
    raw = insert_row("subject.row_updated", subject.pk)
    left = note(by=audit.Actor("agent", "Refunds"))
    AuditActor.objects.filter(ref=left.actor_ref).delete()
    AuditDetail.objects.filter(event__id=verb).delete()
    insert_notes(3)
    sign_log()
    note(by=audit.Actor("command", "attach_store"))
    return [event(read), event(verb), raw]


class TestLooks:
    @in_all_views
    def test_the_log_and_its_events(
        self, log: list[AuditEvent], look: Look, sign_in: SignIn, settings: Any, tmp_path: Any
    ) -> None:
        """The log, sound and broken; events: a read one, one of raw SQL, one with rows, without details and names."""
        read, verb, raw = log
        sign_in("compliance")
        look(read.get_absolute_url())
        look(raw.get_absolute_url())
        sign_in("auditor")
        look(verb.get_absolute_url())
        settings.ANCHOR_PATH = tmp_path / "anchors"
        anchors.publish()
        AuditVerdict.objects.create(verdict="ok", size=1_284_113)
        look("/audit/")
        findings = [{"kind": "edited_body", "detail": f"Event {read.id} is not what its leaf says."}] * 7
        AuditVerdict.objects.create(verdict="broken", size=7, findings=findings)
        look("/audit/?type=outside&outcome=succeeded")

    @in_all_views
    def test_pages_without_an_event_and_with_refusals(
        self, transactional_db: None, page: Page, look: Look, watch: Watch, sign_in: SignIn
    ) -> None:
        watch.expect("status of 400")
        sign_in("auditor")
        look("/audit/?type=tea.poured&since=yesterday&cursor=made-up")
        expect(page.get_by_text("This page link is incomplete")).to_be_visible()


def test_keys(transactional_db: None, page: Page, sign_in: SignIn) -> None:
    """The log is two keys away; its pages are turned, its rows walked and opened."""
    sign_in("auditor")
    insert_notes(60)
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page.get_by_role("heading", name="Audit log")).to_be_visible()

    page.goto("/audit/?type=note.taken")
    expect(page.locator("[data-row]")).to_have_count(50)
    page.keyboard.press("]")
    expect(page.locator("[data-row]")).to_have_count(10)
    page.keyboard.press("[")
    expect(page.locator("[data-row]")).to_have_count(50)

    ids = page.locator("[data-row]").evaluate_all("rows => rows.map(row => row.id)")
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator(f"#{ids[1]} a.event-link")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/audit/{ids[1].removeprefix('event-')}/$"))


class TestWork:
    def test_an_auditor_reads_the_log(self, log: list[AuditEvent], page: Page, sign_in: SignIn) -> None:
        """Unfolds rows of a verb, asks who looked at a person, takes that away, sees what is newer, takes a proof."""
        sign_in("auditor")
        page.goto("/audit/")
        row = page.locator(f"#event-{log[1].id}")
        expect(row.get_by_role("link", name="of the table “subject”")).to_be_hidden()
        row.get_by_text("1 change of rows recorded by the database").click()
        expect(row.get_by_role("link", name="of the table “subject”")).to_be_visible()

        page.get_by_role("textbox", name="short ID").fill("cust_48213")
        page.get_by_label("Event", exact=True).select_option("reading")
        page.get_by_role("button", name="Apply").click()
        expect(page.get_by_role("link", name="Remove filter about subject")).to_be_visible()
        expect(page.locator("[data-row]", has_text="test.session_viewed")).to_have_count(1)
        expect(page.locator("[data-row]", has_text="test.subject_merged")).to_have_count(0)
        assert "cust_48213" not in page.url

        page.locator("summary", has_text="Export this filter").click()
        with page.expect_download() as begun:
            page.get_by_role("link", name="CSV").click()
        assert begun.value.suggested_filename.endswith(".csv")
        text = begun.value.path().read_text()
        assert str(log[0].id) in text
        assert "cust_48213" not in text

        page.goto("/audit/?type=note.taken")
        note(reason_code="no_grant")
        # What the page does by itself every 15 seconds.
        page.evaluate(
            "htmx.ajax('GET', document.querySelector('[hx-get*=newer]').getAttribute('hx-get'),"
            " {target: '[hx-get*=newer]', swap: 'innerHTML'})"
        )
        expect(page.get_by_text("1 newer")).to_be_visible()
        before = page.locator("[data-row]").count()
        page.get_by_role("link", name="Show").click()
        expect(page.locator("[data-row]")).to_have_count(before + 1)
        expect(page.get_by_text("1 newer")).to_have_count(0)

        page.goto(log[0].get_absolute_url())
        with page.expect_download() as begun:
            page.get_by_role("link", name="Download proof file").click()
        assert begun.value.suggested_filename == f"event-{log[0].id}.json"

    def test_compliance_erases_details_by_keyboard(self, log: list[AuditEvent], page: Page, sign_in: SignIn) -> None:
        sign_in("compliance")
        page.goto(log[0].get_absolute_url())
        expect(page.get_by_text("refund not arrived")).to_be_visible()
        page.locator("summary", has_text="Details of 1 event").press("Enter")
        page.get_by_label("Reason").press("ArrowDown")
        page.get_by_role("button", name="Erase details").press("Enter")
        expect(page.get_by_text("Details of 1 event erased.")).to_be_visible()
        expect(page.get_by_role("link", name="Erased ")).to_be_visible()
        expect(page.get_by_text("refund not arrived")).to_have_count(0)

    def test_hostile_names_stay_text(self, transactional_db: None, page: Page, sign_in: SignIn) -> None:
        hostile = "<img src=x onerror=alert(1)>\u202e<script>alert(2)</script>"
        audit.record_alone(
            NOTED, by=audit.Actor("agent", hostile), subject=make_subject(hostile), details={"reason": hostile}
        )
        sign_in("compliance")
        page.goto("/audit/?type=note.taken")
        expect(page.locator("[data-row]")).to_contain_text("<script>alert(2)")
        page.locator("[data-row] a.event-link").click()
        expect(page.locator("main")).to_contain_text("<img src=x onerror=alert(1)>")


def test_the_chart_is_drawn_with_its_figures(log: list[AuditEvent], page: Page, sign_in: SignIn) -> None:
    sign_in("auditor")
    page.goto("/audit/?jobs=with")
    expect(page.get_by_role("img", name="Events by day and group")).to_be_visible()
    expect(page.locator("canvas[data-figures]")).to_have_attribute("style", re.compile("display: block"))
    page.locator("summary", has_text="Numbers by day").click()
    expect(page.get_by_role("columnheader", name="Reading")).to_be_visible()


@pytest.fixture
def plain_page(transactional_db: None, browser: Browser, live_server: LiveServer) -> Iterator[Page]:
    """An auditor's page without JavaScript."""
    client = Client()
    client.force_login(person("auditor"))
    context = browser.new_context(java_script_enabled=False, base_url=live_server.url)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url}])
    yield context.new_page()
    context.close()


@pytest.mark.release
def test_the_log_is_read_filtered_and_turned_without_javascript(plain_page: Page) -> None:
    subject = make_subject("cust_1")
    for _ in range(51):
        note(subject=subject)
    plain_page.goto("/audit/")
    plain_page.get_by_role("textbox", name="short ID").fill("cust_1")
    plain_page.get_by_label("Event", exact=True).select_option("settings")
    plain_page.get_by_role("button", name="Apply").click()
    expect(plain_page.locator("[data-row]")).to_have_count(50)
    plain_page.get_by_role("link", name="Older").click()
    expect(plain_page.locator("[data-row]")).to_have_count(1)
    plain_page.locator("[data-row] a.event-link").first.click()
    expect(plain_page.get_by_role("heading", name="note.taken")).to_be_visible()
