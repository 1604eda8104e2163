"""Showing who one is, in the browser: passkeys, codes, and the question before what cannot be undone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.models import User
from django.test import override_settings
from django.urls import reverse
from playwright.sync_api import BrowserContext, CDPSession, Page, expect

from memadmin.accounts.session_store import SessionStore
from tests.accounts.company import company, company_at, somebody
from tests.accounts.factors import code_of, with_app
from tests.browser.conftest import Watch, say_why
from tests.browser.looking import VIEWS, assert_accessible, turn_to
from tests.people import person

Look = Callable[[str], None]


@pytest.fixture(autouse=True)
def second_factor_required(transactional_db: None) -> Iterator[None]:
    with override_settings(SECOND_FACTOR_REQUIRED=True):
        yield


@pytest.fixture
def clerk() -> User:
    return person("support")


@pytest.fixture
def authenticator(page: Page) -> Iterator[CDPSession]:
    """A fingerprint reader that always recognises its owner."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options: dict[str, Any] = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    yield devtools
    devtools.send("WebAuthn.disable")


def sign_in_by_password(page: Page, name: str) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(name)
    page.get_by_role("button", name="Sign in").click()


def sign_out(page: Page) -> None:
    page.locator("summary", has_text="support").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page).to_have_title("Sign in · memadmin")


def test_newcomer_sets_up_an_app_and_signs_in_with_its_code(page: Page, clerk: User, look: Look, watch: Watch) -> None:
    watch.expect("status of 422")
    sign_in_by_password(page, "support")
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up a second factor")
    assert_accessible(page)
    page.get_by_role("link", name="Authenticator app").click()
    expect(page.get_by_alt_text("QR code")).to_be_visible()
    assert page.get_by_alt_text("QR code").evaluate("picture => picture.naturalWidth") > 0
    assert_accessible(page)
    secret = page.locator("#totp-key").inner_text()
    page.get_by_label("Code").fill("000000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("The code is wrong or has already been used.")
    expect(page.locator("#totp-key")).to_have_text(secret)
    page.get_by_label("Code").fill(code_of(secret))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Recovery codes")
    assert_accessible(page)
    codes = page.locator("#codes").inner_text().split()
    assert len(codes) == 10
    page.get_by_role("link", name="I have saved the codes").click()
    expect(page).to_have_title("Overview · memadmin")
    look("/accounts/password/")
    look("/accounts/")
    turn_to(page, VIEWS[0])

    sign_out(page)
    sign_in_by_password(page, "support")
    expect(page.get_by_role("heading", level=1)).to_have_text("Second factor")
    expect(page.get_by_label("Code of your authenticator app")).to_be_focused()
    assert_accessible(page)
    page.keyboard.type(code_of(secret))
    page.keyboard.press("Enter")
    expect(page).to_have_title("Overview · memadmin")

    sign_out(page)
    sign_in_by_password(page, "support")
    page.get_by_label("Code of your authenticator app").fill(codes[0])
    page.keyboard.press("Enter")
    expect(page).to_have_title("Overview · memadmin")


def test_newcomer_adds_a_passkey_and_needs_no_password_any_more(
    page: Page, clerk: User, authenticator: CDPSession, watch: Watch
) -> None:
    page.goto("/accounts/login/")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("alert").filter(has_text="The browser did not return a passkey")).to_be_visible()

    sign_in_by_password(page, "support")
    page.get_by_role("link", name="Passkey").click()
    assert_accessible(page)
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Recovery codes")
    page.goto("/accounts/")
    expect(page.locator("main")).to_contain_text("Passkey 1")
    assert_accessible(page)
    sign_out(page)

    page.goto("/accounts/login/?next=/stores/")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page).to_have_title("Stores · memadmin")
    assert Authenticator.objects.get(type="webauthn").last_used_at

    sign_out(page)
    Authenticator.objects.all().delete()
    watch.expect("status of 422")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This passkey is not accepted")
    assert_accessible(page)


def test_a_passkey_is_a_second_factor_too(page: Page, clerk: User, authenticator: CDPSession) -> None:
    sign_in_by_password(page, "support")
    page.get_by_role("link", name="Passkey").click()
    page.get_by_label("Use for sign-in without a password").uncheck()
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Recovery codes")
    page.goto("/")
    sign_out(page)
    sign_in_by_password(page, "support")
    expect(page.get_by_role("heading", level=1)).to_have_text("Second factor")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page).to_have_title("Overview · memadmin")


def let_proof_age(page: Page) -> None:
    cookie = next(each for each in page.context.cookies() if each["name"] == settings.SESSION_COOKIE_NAME)
    session = SessionStore(cookie["value"])
    session["confirmed_at"] -= 301
    session.save()


def test_the_question_before_what_takes_a_new_proof(page: Page, clerk: User, watch: Watch) -> None:
    """An administrator's proof is too old before a form, a page, and a form of htmx."""
    secret = with_app(person("administrator"))
    sign_in_by_password(page, "administrator")
    page.get_by_label("Code of your authenticator app").fill(code_of(secret))
    page.keyboard.press("Enter")
    expect(page).to_have_title("Overview · memadmin")
    watch.expect("status of 422")
    heading = page.get_by_role("heading", level=1)

    # It can be left, and comes after what is wrong with the form.
    page.goto(reverse("admin:auth_user_change", args=[clerk.pk]))
    let_proof_age(page)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Choose a reason.")).to_be_visible()
    say_why(page)
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("link", name="Cancel").click()
    expect(page).to_have_url(re.compile(f"/admin/auth/user/{clerk.pk}/change/"))

    # It keeps what was typed, and sends it with the right answer.
    page.get_by_label("Last name").fill('Line "1" <b>')
    say_why(page)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(heading).to_have_text("Confirm it's you")
    assert_accessible(page)
    page.get_by_label("Your password").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").first).to_have_text("The password is wrong.")
    page.get_by_label("Your password").fill("administrator")
    page.keyboard.press("Enter")
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    clerk.refresh_from_db()
    assert clerk.last_name == 'Line "1" <b>'
    assert clerk.has_perm("sessions_app.read_content")

    # It leads on to a page that asks.
    let_proof_age(page)
    page.goto(reverse("mfa_add_webauthn"))
    expect(heading).to_have_text("Confirm it's you")
    assert_accessible(page)
    page.get_by_label("Your password").fill("administrator")
    page.keyboard.press("Enter")
    expect(heading).to_have_text("Add a passkey")

    # It takes the place of a page that asked for a part: a form of htmx, as a row of a list has it.
    page.goto("/accounts/")
    let_proof_age(page)
    page.evaluate(
        """([address]) => {
            const form = document.createElement("form");
            form.id = "part";
            form.setAttribute("hx-post", address);
            form.setAttribute("hx-target", "this");
            const typed = document.createElement("input");
            typed.name = "reason"; typed.value = "staff"; typed.setAttribute("aria-label", "Reason");
            const button = document.createElement("button");
            button.textContent = "Send the part";
            form.append(typed, button);
            document.getElementById("main").append(form);
            htmx.process(form);
        }""",
        [reverse("people:off", args=[clerk.pk])],
    )
    page.get_by_role("button", name="Send the part").click()
    expect(heading).to_have_text("Confirm it's you")
    expect(page.locator("input[name=reason][value=staff]").first).to_be_attached()
    expect(page.locator("main")).to_have_count(1)
    page.get_by_label("Your password").fill("administrator")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/people/{clerk.pk}/$"))
    expect(page.locator("#toasts")).to_contain_text("The account is switched off.")


def test_somebody_comes_in_through_the_company(page: Page, clerk: User, watch: Watch) -> None:
    clerk.email = "clerk@tea.example"
    clerk.save()
    # The provider's own page, which takes its looks from afar.
    page.context.route("https://cdn.jsdelivr.net/**", lambda route: route.abort())
    for theirs in ("foreign request", "ERR_FAILED"):
        watch.expect(theirs)
    with company(somebody("c1", "clerk@tea.example")), override_settings(SECOND_FACTOR_REQUIRED=False):
        page.goto("/stores/")
        assert_accessible(page)
        page.get_by_role("link", name="Tea company").click()
        page.get_by_placeholder("sub").fill("c1")
        page.get_by_role("button", name="Authorize").click()
        expect(page).to_have_title("Stores · memadmin")


def test_company_that_is_away_is_a_sentence(page: Page, watch: Watch) -> None:
    watch.expect("status of 503")
    with company_at("http://localhost:1"):
        page.goto("/accounts/login/")
        page.get_by_role("link", name="Tea company").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("sign-in is not responding")
        assert_accessible(page)


def test_page_that_refreshes_itself(page: Page, sign_in: Callable[..., User], refresh: Callable[[], None]) -> None:
    """It says that nobody asked, and becomes the login once its person was switched off."""
    sign_in("reviewer")
    with override_settings(SECOND_FACTOR_REQUIRED=False):
        page.goto("/accounts/")
        page.evaluate(
            """() => {
                const part = document.createElement("div");
                part.setAttribute("hx-get", "/accounts/confirm/");
                part.setAttribute("hx-trigger", "every 2s, click");
                part.setAttribute("hx-swap", "none");
                part.textContent = "Refresh the part";
                document.getElementById("main").append(part);
                htmx.process(part);
            }"""
        )
        # Answered, so that the click meets no request under way: of two at once htmx would drop one.
        with page.expect_response(lambda response: "x-background" in response.request.headers):
            refresh()
        with page.expect_request(lambda request: "x-background" not in request.headers):
            page.get_by_text("Refresh the part").click()
        User.objects.filter(username="reviewer").update(is_active=False)
        refresh()
        expect(page).to_have_title("Sign in · memadmin")
        assert page.url.endswith("/accounts/login/?next=/accounts/")


class TestWithoutScripts:
    @pytest.fixture
    def context(self, new_context: Callable[..., BrowserContext]) -> BrowserContext:
        return new_context(java_script_enabled=False)

    def test_an_app_is_enough(self, page: Page, clerk: User) -> None:
        page.goto("/accounts/login/")
        expect(page.get_by_role("button", name="Use a passkey")).to_be_hidden()
        sign_in_by_password(page, "support")
        expect(page.get_by_role("link", name="Passkey")).to_be_hidden()
        page.get_by_role("link", name="Authenticator app").click()
        page.get_by_label("Code").fill(code_of(page.locator("#totp-key").inner_text()))
        page.get_by_role("button", name="Set up app").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Recovery codes")
