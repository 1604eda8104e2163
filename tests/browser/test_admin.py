"""Django admin obeys the same policy as every page: the watch fails a test at the first violation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from http import HTTPStatus
from typing import TypeAlias

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from memadmin.audit.jobs import verify_log
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, SubjectAlias, SubjectKind
from tests.agents import add_items
from tests.browser.conftest import Look, Watch, in_all_views, say_why
from tests.builders import make_session, make_store, make_subject
from tests.memories.builders import one_of_each, proposed

SignIn: TypeAlias = Callable[..., User]
Part: TypeAlias = tuple[str, str | None, frozenset[str], frozenset[str]]

PASSES = [
    "plain words & an entity &amp;",
    "",
    '<span class="select2-selection" role="combobox" aria-haspopup="true" aria-expanded="false"></span>',
    '<tr class="add-row"><td colspan="4"><a role="button" class="addlink" href="#">Add another</a></td></tr>',
    '<input class="select2-search__field" type="search" tabindex="-1" autocomplete="off" spellcheck="false">',
]
REFUSED = [
    "<script>document.title = 'owned'</script>",
    "<img src=https://elsewhere.example/x.png>",
    "<img src=x onerror=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    '<a href="https://elsewhere.example/">x</a>',
    '<a href="data:text/html,x">x</a>',
    "<p onclick=alert(1)>x</p>",
    '<p style="color: red">x</p>',
    "<style>p { color: red }</style>",
    "<svg><use href=#x></use></svg>",
    "<math><mtext></mtext></math>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<form action=https://elsewhere.example/><input name=a></form>",
    "<input formaction=https://elsewhere.example/>",
    "<button hx-get=/>x</button>",
    "<template><script>alert(1)</script></template>",
    "</template><script>alert(1)</script><template>",
    "</template><p>x</p><template>",
    "<table><tr onclick=alert(1)><td>x</td></tr></table>",
    "<object data=x></object>",
    "<base href=https://elsewhere.example/>",
    "<meta http-equiv=refresh content=0;url=https://elsewhere.example/>",
    "<link rel=stylesheet href=https://elsewhere.example/>",
]

WRITE = """html => {
    const spot = document.createElement("div");
    try { spot.innerHTML = html; return true } catch { return false }
}"""


@pytest.fixture
def everything(sign_in: SignIn) -> User:
    """Somebody whom every page and every verb of raw edits is open to."""
    person = sign_in("administrator")
    User.objects.filter(pk=person.pk).update(is_superuser=True)
    return person


@in_all_views
def test_every_page_works_under_the_policy_and_is_accessible(
    kept_main_store: SessionStore, page: Page, look: Look, everything: User
) -> None:
    add_items("customer_1:ticket_1", "Hello")
    record = SessionRecord.objects.get()
    make_subject("customer_1")
    SessionIdPattern.objects.create(store=record.store, name="tickets", pattern="customer_{subject}", position=1)
    one_of_each(proposed("Drinks tea."))
    verify_log.defer()
    page.goto("/admin/")
    assert page.evaluate("trustedTypes.defaultPolicy !== null")
    assert_sound(page, look)
    signed_in = Client()
    signed_in.force_login(everything)
    known: set[Part] = set()
    looked_at = 0
    for path in pages_of_rows():
        answer = signed_in.get(path, follow=True)
        if answer.status_code == HTTPStatus.FORBIDDEN:
            continue
        assert answer.status_code == HTTPStatus.OK, path
        # A page whose parts were all on others, too, looks and works as they do. `tests/accounts/test_matrix.py` asks
        # every address for the policy.
        if parts := parts_of(answer.content.decode()) - known:
            page.goto(path)
            assert_sound(page, look)
            known |= parts
            looked_at += 1
    assert looked_at > 10


def pages_of_rows() -> Iterator[str]:
    """List, form, and the other pages of a row of each model; who may do everything may not open all of them."""
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        row = model._default_manager.first()
        assert row, f"nothing to look at in {name}"
        yield reverse(f"{name}_changelist")
        for kind in ("change", "delete"):
            yield reverse(f"{name}_{kind}", args=[row.pk])
        yield reverse(f"{name}_add")
        # Django's own, and for every model the same but for its words.
        if model is User:
            yield reverse(f"{name}_history", args=[row.pk])


class Parts(HTMLParser):
    """Elements of a page, by what they look like and do; not by the field, model or application that they are for."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[Part] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        classes = {
            name
            for name in (given.get("class") or "").split()
            if not name.startswith(("field-", "column-", "model-", "app-"))
        }
        inline = {name for name in given if name == "style" or name.startswith("on")}
        kind = given.get("src") if tag == "script" else given.get("type")
        self.found.add((tag, kind, frozenset(classes), frozenset(inline)))


def parts_of(html: str) -> set[Part]:
    parser = Parts()
    parser.feed(html)
    return parser.found


def assert_sound(page: Page, look: Look) -> None:
    expect(page.locator("#content")).to_be_visible()
    look.here(with_shell=True)


def test_administrator_adds_somebody_to_a_role(page: Page, sign_in: SignIn) -> None:
    sign_in("administrator")
    newcomer = User.objects.create_user("newcomer")
    page.goto(reverse("admin:auth_user_change", args=[newcomer.pk]))
    page.locator("#id_groups_from").select_option(label="auditor")
    page.get_by_role("button", name="Choose selected roles").click()
    say_why(page)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    assert newcomer.has_perm("audit.view_auditevent")


def test_subject_of_a_session_is_looked_up_in_a_page_of_its_own(page: Page, everything: User) -> None:
    subject, record = make_subject("customer_1"), make_session("customer_1:ticket_1")
    page.goto(reverse("admin:sessions_app_sessionrecord_change", args=[record.pk]))
    with page.expect_popup() as opened:
        page.locator("#lookup_id_subject").click()
    with opened.value.expect_event("close"):
        # A click that waits for its own end fails when the page has closed by then.
        link = opened.value.get_by_role("link", name=f"subject {subject.pk}")
        link.evaluate("link => setTimeout(() => link.click())")
    expect(page.locator("#id_subject")).to_have_value(str(subject.pk))


def test_scripts_of_admin_write_harmless_html_alone(page: Page, everything: User, watch: Watch) -> None:
    page.goto("/admin/")
    assert [html for html in PASSES if not page.evaluate(WRITE, html)] == []
    watch.expect("TrustedHTML")
    # What looks at a piece is under the policy itself.
    watch.expect("inline event handler")
    watch.expect("inline style")
    assert [html for html in REFUSED if page.evaluate(WRITE, html)] == []
    assert page.title() != "owned"


def test_without_its_types_admin_would_not_work(page: Page, everything: User, watch: Watch) -> None:
    """The broken variant: what jQuery writes while it loads is refused, and reported."""
    watch.expect("TrustedHTML")
    watch.expect("net::ERR_FAILED")
    for problem in ("jQuery is not defined", "$ is not a function", "Cannot read properties of undefined"):
        watch.expect(problem)
    page.route("**/trusted-types-admin*.js", lambda route: route.abort())
    with page.expect_console_message(lambda message: "TrustedHTML" in message.text):
        page.goto(reverse("admin:auth_user_change", args=[everything.pk]))


@pytest.mark.urls("tests.browser.trial_admin")
class TestEveryWidget:
    """On pages that only this test has, with the widgets that no page of ours uses yet."""

    def test_row_of_an_inline_is_added_and_taken_away(self, page: Page, everything: User) -> None:
        subject = make_subject("customer_1")
        page.goto(reverse("trial:sessions_app_subject_change", args=[subject.pk]))
        page.locator("#id_aliases-1-key").fill("also_1")
        page.get_by_role("button", name="Add another Subject alias").click()
        page.locator("#id_aliases-2-key").fill("twice_1")
        page.get_by_role("button", name="Add another Subject alias").click()
        page.locator("#aliases-3").get_by_role("button", name="Remove").click()
        say_why(page)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("was changed successfully")).to_be_visible()
        assert set(SubjectAlias.objects.values_list("key", flat=True)) == {"customer_1", "also_1", "twice_1"}

    def test_subject_is_found_while_typing(self, page: Page, everything: User) -> None:
        subject, record = make_subject("customer_<b>1</b>"), make_session("customer_1:ticket_1")
        make_subject("tenant_2")
        page.goto(reverse("trial:sessions_app_sessionrecord_change", args=[record.pk]))
        page.locator(".select2-selection").click()
        page.locator(".select2-search__field").fill("customer")
        options = page.locator(".select2-results__option")
        expect(options).to_have_count(1)
        options.get_by_text(f"subject {subject.pk}").click()
        say_why(page)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("was changed successfully")).to_be_visible()
        assert SessionRecord.objects.get().subject == subject

    def test_field_follows_another_and_store_is_added_from_the_form_that_needs_it(
        self, page: Page, everything: User
    ) -> None:
        page.goto(reverse("trial:sessions_app_sessionidpattern_add"))
        page.locator("#id_name").press_sequentially("Ticket numbers")
        expect(page.locator("#id_pattern")).to_have_value("ticket-numbers")
        with page.expect_popup() as opened:
            page.locator("#add_id_store").click()
        opened.value.locator("#id_name").fill("second")
        say_why(opened.value)
        with opened.value.expect_event("close"):
            opened.value.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator("#id_store option:checked")).to_have_text("second")
        assert SessionStore.objects.filter(name="second").exists()

    def test_days_times_and_roles_are_chosen(self, page: Page, everything: User) -> None:
        page.goto(reverse("trial:auth_user_change", args=[everything.pk]))
        page.locator("#calendarlink0").click()
        expect(page.locator("#calendarbox0")).to_be_visible()
        page.locator("#calendarin0 td a", has_text="15").click()
        expect(page.locator("#id_last_login_0")).to_have_value(re.compile(r"^\d{4}-\d\d-15$"))
        page.locator("#clocklink0").click()
        page.locator("#clockbox0").get_by_role("link", name="12:00").click()
        expect(page.locator("#id_last_login_1")).to_have_value("12:00:00")

        page.locator("#id_groups_input").press_sequentially("aud")
        expect(page.locator("#id_groups_from option")).to_have_count(1)
        page.locator("#id_groups_from").select_option(label="auditor")
        page.get_by_role("button", name="Choose selected groups").click()
        say_why(page)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("was changed successfully")).to_be_visible()
        assert Group.objects.get(name="auditor") in everything.groups.all()

    def test_rows_of_a_list_are_chosen_for_an_action(self, page: Page, everything: User) -> None:
        make_store("second")
        make_store("third")
        page.goto(reverse("trial:sessions_app_sessionstore_changelist"))
        page.locator("#action-toggle").check()
        expect(page.locator(".action-counter")).to_have_text("2 of 2 selected")
        page.get_by_label("Action:").select_option("delete_selected")
        page.get_by_role("button", name="Go").click()
        expect(page.get_by_role("heading", name="Delete multiple objects")).to_be_visible()
        page.get_by_label("Reason").select_option(label="incident")
        page.get_by_label("Explanation").fill("Made by mistake")
        page.get_by_role("button", name="Delete").click()
        expect(page.get_by_text("Successfully deleted 2")).to_be_visible()
        assert not SessionStore.objects.exists()

    def test_action_without_a_page_asks_why(self, page: Page, everything: User, watch: Watch) -> None:
        watch.expect("status of 422")
        make_subject("customer_1", SubjectKind.TENANT)
        page.goto(reverse("trial:sessions_app_subjectalias_changelist"))
        page.locator("#action-toggle").check()
        page.get_by_label("Action:").select_option("call_users")
        page.get_by_role("button", name="Go").click()
        expect(page.get_by_role("heading", name="Reason for the change")).to_be_visible()
        say_why(page)
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("#changelist")).to_be_visible()
        assert SubjectAlias.objects.get().kind == SubjectKind.USER

    def test_form_without_a_reason_keeps_what_was_typed_and_takes_blocks(
        self, page: Page, everything: User, watch: Watch
    ) -> None:
        watch.expect("status of 422")
        store = make_store()
        page.goto(reverse("trial:sessions_app_sessionstore_change", args=[store.pk]))
        page.locator("#id_name").fill("renamed")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("A raw edit needs a reason")).to_be_visible()
        expect(page.locator("#id_name")).to_have_value("renamed")
        # The block of an inline gets the next number.
        for _ in range(2):
            page.get_by_role("button", name="Add another Session id pattern").click()
        expect(page.locator("#patterns-1 .inline_label")).to_have_text("#2")
        page.locator("#patterns-0").get_by_role("button", name="Remove").click()
        expect(page.locator("#patterns-0 .inline_label")).to_have_text("#1")
        page.locator("#patterns-0").get_by_role("button", name="Remove").click()
        say_why(page)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("was changed successfully")).to_be_visible()
