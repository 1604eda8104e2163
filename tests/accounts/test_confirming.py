"""Asking again who somebody is, before what cannot be undone."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memadmin.accounts import reauth_views
from memadmin.audit.models import AuditEvent
from memadmin.erasure.services import reject_request
from memadmin.rehearsal import Rehearsal
from sessions_app.models import SessionIdPattern, SessionStore
from tests.accounts.factors import code_of, let_proof_age, with_app
from tests.approvals import shown
from tests.builders import make_subject
from tests.erasure.builders import awaiting
from tests.people import person
from tests.ports import free_port
from tests.raw_edits import WHY

pytestmark = pytest.mark.django_db

TYPED = {"username": "support", "is_active": "on", "last_name": '<b>two</b> "3"', "groups": ["1", "2"], **WHY}
RIGHT = {"confirm-password": "administrator"}


@pytest.fixture
def boss(administrator: Client) -> Client:
    """An administrator whose needs a sign-in from the last 5 minutes."""
    let_proof_age(administrator)
    return administrator


@pytest.fixture
def clerk() -> User:
    return person("support")


def change(clerk: User) -> str:
    return reverse("admin:auth_user_change", args=[clerk.pk])


class Forms(HTMLParser):
    """What the last form in the main part of a page would send."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: list[tuple[str, str]] = []
        self.feed(page.partition("<dialog")[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "form" and named.get("method") == "post":
            self.fields = []
        if tag == "input" and named.get("type") == "hidden" and named.get("name"):
            self.fields.append((str(named["name"]), named.get("value") or ""))


def kept(page: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in Forms(page).fields:
        if name != "csrfmiddlewaretoken":
            found.setdefault(name, []).append(value)
    return found


def test_the_form_comes_back_with_the_question_and_with_what_was_typed(boss: Client, clerk: User) -> None:
    answer = boss.post(change(clerk), TYPED)
    assert answer.status_code == 422
    assert "Nothing has changed yet" in answer.text
    fields = kept(answer.text[: answer.text.index("confirm-username")])
    assert (fields["last_name"], fields["groups"]) == ([TYPED["last_name"]], TYPED["groups"])
    clerk.refresh_from_db()
    assert clerk.last_name == ""
    assert "no-store" in answer["Cache-Control"]


def test_the_right_answer_carries_the_action_out_and_shows_its_result(boss: Client, clerk: User) -> None:
    asked = boss.post(change(clerk), TYPED)
    answer = boss.post(change(clerk), {**kept(asked.text), **RIGHT}, follow=True)
    assert "was changed successfully" in answer.text
    clerk.refresh_from_db()
    assert clerk.last_name == TYPED["last_name"]
    event = AuditEvent.objects.get(type="person.confirmed")
    assert event.reason_code == "password"
    # Another one within five minutes is not asked about.
    assert boss.post(change(clerk), {**TYPED, "last_name": "Known"}).status_code == 302


def test_invalid_input_is_found_before_the_question(boss: Client, clerk: User) -> None:
    """A page, and a form of Django admin: the password would be typed for nothing."""
    new = {"username": "support", "name": "", "email": "support@example.org", "way": "link"}
    for address, form, complaint in (
        (reverse("people:new"), new, "Another account has this user name."),
        (change(clerk), {**TYPED, "username": "b c"}, "Enter a valid username"),
        (change(clerk), {**TYPED, "why-reason": ""}, "errornote"),
    ):
        page = boss.post(address, form)
        assert (page.status_code, complaint in page.text) == (422, True), complaint
        assert "Confirm it's you" not in page.text
    assert not AuditEvent.objects.filter(type__in=["person.confirmed", "person.added"]).exists()
    page = boss.post(reverse("people:new"), {**new, "username": "clerk"})
    assert "Confirm your password to add an account." in page.text
    assert not User.objects.filter(username="clerk").exists()
    sent = kept(page.text)
    page = boss.post(reverse("people:new"), {**sent, **RIGHT})
    assert "clerk" in page.text
    assert User.objects.filter(username="clerk").exists()
    # Sent twice, or again by the browser's way back: the form says so, nothing is done twice.
    page = boss.post(reverse("people:new"), {**sent, **RIGHT})
    assert (page.status_code, User.objects.filter(username="clerk").count()) == (422, 1)


def test_what_a_service_refuses_is_found_before_the_question(boss: Client) -> None:
    store = SessionStore.objects.create(name="tried", kind="sqlalchemy", sessions_table="s", messages_table="m")
    SessionIdPattern.objects.create(store=store, name="first", pattern="customer_{subject}", position=0)
    address = reverse("sessions:pattern-add", args=[store.name])
    form = {"name": "first", "pattern": "user_{subject}", "subject_kind": "user"}
    taken = boss.post(address, form)
    assert (taken.status_code, "Confirm your password" in taken.text) == (422, False)
    broken = boss.post(address, {**form, "name": "second", "pattern": "{"})
    assert (broken.status_code, "Confirm your password" in broken.text) == (422, False)
    asked = boss.post(address, {**form, "name": "second"})
    assert "Confirm your password to change a pattern." in asked.text
    # Somebody else takes the name while the question is read.
    SessionIdPattern.objects.create(store=store, name="second", pattern="x_{subject}", position=1)
    late = boss.post(address, {**kept(asked.text), **RIGHT})
    assert (late.status_code, "Confirm your password" in late.text) == (422, False)
    assert store.patterns.count() == 2


def test_a_store_that_cannot_be_connected_is_found_before_the_question(
    boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMADMIN_STORE_NOWHERE", f"redis://127.0.0.1:{free_port()}/0")
    page = boss.post(
        reverse("sessions:connect-kind", args=["redis"]), {"name": "cache", "url_env": "MEMADMIN_STORE_NOWHERE"}
    )
    assert (page.status_code, "Confirm your password" in page.text) == (422, False)
    assert page.context["problem"]
    assert not SessionStore.objects.exists()


def test_an_id_of_another_subject_is_found_before_the_question(client: Client) -> None:
    client.force_login(person("compliance"))
    make_subject("cust_1")
    let_proof_age(client)
    address = reverse("sessions:alias-add", args=[make_subject("cust_2").pk])
    taken = client.post(address, {"kind": "user", "key": "cust_1"})
    assert (taken.status_code, "Confirm your password" in taken.text) == (409, False)
    assert "Confirm your password" in client.post(address, {"kind": "user", "key": "cust_3"}).text


def test_a_denial_is_recorded_once_and_needs_no_question(client: Client) -> None:
    officer = person("compliance")
    client.force_login(officer)
    case = awaiting(make_subject("cust_1"), by=officer)
    let_proof_age(client)
    page = client.post(f"{case.get_absolute_url()}approve/", {"is_read": "on", "typed": "cust_1"})
    assert (page.status_code, "Confirm your password" in page.text) == (403, False)
    assert AuditEvent.objects.get(type="approval.decided").outcome == "denied"


def test_someone_else_who_decides_meanwhile_is_told_after_the_answer(client: Client) -> None:
    officer, second = person("compliance"), person("compliance", "reviewer")
    client.force_login(second)
    case = awaiting(make_subject("cust_1"), by=officer)
    address = f"{case.get_absolute_url()}approve/"
    let_proof_age(client)
    wrong = client.post(address, {"is_read": "on", "typed": "cust_2", "shown": shown(case)})
    assert (wrong.status_code, "Confirm your password" in wrong.text) == (422, False)
    asked = client.post(address, {"is_read": "on", "typed": "cust_1", "shown": shown(case)})
    assert "Confirm your password to approve an erasure." in asked.text
    assert "cust_1" not in str(asked.headers)
    reject_request(case, by=second, note="Too broad.")
    late = client.post(address, {**kept(asked.text), "confirm-password": second.username})
    assert late.status_code == 409
    case.refresh_from_db()
    assert case.run is None


def test_a_wrong_answer_asks_again_and_keeps_all(boss: Client, clerk: User) -> None:
    answer = boss.post(change(clerk), {**TYPED, "confirm-password": "wrong"})
    assert answer.status_code == 422
    assert "The password is wrong." in answer.text
    assert kept(answer.text[: answer.text.index("confirm-username")])["last_name"] == [TYPED["last_name"]]
    assert boss.post(change(clerk), TYPED).status_code == 422


def test_answers_are_not_guessed(boss: Client, clerk: User) -> None:
    for number in range(5):
        assert boss.post(change(clerk), {**TYPED, "confirm-password": f"guess {number}"}).status_code == 422
    refused = boss.post(change(clerk), {**TYPED, **RIGHT})
    assert "Too many failed attempts" in refused.text
    assert boss.post(change(clerk), TYPED).status_code == 422


def test_a_code_answers_too(boss: Client, clerk: User) -> None:
    secret = with_app(User.objects.get(username="administrator"))
    answer = boss.post(change(clerk), {**TYPED, "confirm-code": code_of(secret)})
    assert answer.status_code == 302
    assert AuditEvent.objects.get(type="person.confirmed").reason_code == "totp"


def test_a_sign_in_is_a_proof_for_five_minutes(administrator: Client, clerk: User) -> None:
    let_proof_age(administrator, 240)
    form = {"username": "support", "is_active": "on"} | WHY
    assert administrator.post(change(clerk), form).status_code == 302
    let_proof_age(administrator, 60)
    assert administrator.post(change(clerk), form).status_code == 422


def test_reading_asks_nothing(boss: Client, clerk: User) -> None:
    assert boss.get(change(clerk)).status_code == 200


def test_a_page_that_asks_leads_to_the_question_and_back(boss: Client) -> None:
    away = boss.get(reverse("mfa_activate_totp"))
    assert away["Location"] == "/accounts/confirm/?next=%2Faccounts%2Fsecond-factor%2Fapp%2F"
    back = boss.post(
        "/accounts/confirm/", {"next": "/accounts/second-factor/app/", "confirm-password": "administrator"}
    )
    assert back["Location"] == "/accounts/second-factor/app/"
    assert boss.get(reverse("mfa_activate_totp")).status_code == 200


def test_a_file_that_asks_leads_back_to_where_its_link_stands(client: Client) -> None:
    client.force_login(person("auditor"))
    let_proof_age(client)
    away: Any = client.get(
        reverse("audit:export-csv"), headers={"Referer": "http://testserver/audit/?type=key.rotated"}
    )
    question = client.get(away["Location"])
    sent = dict(Forms(question.text).fields) | {"confirm-password": "auditor"}
    back = client.post("/accounts/confirm/", sent, follow=True)
    assert back.redirect_chain[0][0] == "http://testserver/audit/?type=key.rotated"
    assert "You can download files" in back.text
    assert client.get(reverse("audit:export-csv"))["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize("came_from", ["", "https://elsewhere.example/"])
def test_a_file_from_nowhere_leads_on_to_itself(client: Client, came_from: str) -> None:
    client.force_login(person("auditor"))
    let_proof_age(client)
    away: Any = client.get(reverse("audit:export-log"), headers={"Referer": came_from} if came_from else {})
    assert away["Location"] == "/accounts/confirm/?next=%2Faudit%2Flog.jsonl"


def test_a_file_for_a_script_is_refused_and_not_replaced_by_the_question(client: Client) -> None:
    client.force_login(person("auditor"))
    let_proof_age(client)
    refused = client.get(reverse("audit:export-csv"), headers={"Accept": "text/csv"})
    assert refused.status_code == 403
    assert "needs a sign-in from the last 5 minutes" in refused.json()["error"]


def test_nothing_of_a_file_leaves_before_the_answer(client: Client) -> None:
    client.force_login(person("auditor"))
    let_proof_age(client)
    client.get(reverse("audit:export-csv"))
    assert not AuditEvent.objects.filter(type="log.exported").exists()


def test_people_and_roles_are_not_deleted_by_the_dozen(client: Client, clerk: User) -> None:
    """That list action of Django admin would pass by the question."""
    client.force_login(User.objects.create_superuser("owner"))
    sent = {"action": "delete_selected", "_selected_action": [clerk.pk], "post": "yes"}
    client.post(reverse("admin:auth_user_changelist"), sent)
    client.post(reverse("admin:auth_group_changelist"), sent | {"_selected_action": [clerk.groups.get().pk]})
    clerk.refresh_from_db()
    assert clerk.groups.exists()


def test_the_question_leads_nowhere_else(boss: Client) -> None:
    answer = boss.post(
        "/accounts/confirm/", {"next": "https://elsewhere.example/", "confirm-password": "administrator"}
    )
    assert answer["Location"] == "/"


def test_a_part_of_a_page_gives_way_to_the_question(boss: Client, clerk: User) -> None:
    answer = boss.post(
        change(clerk), TYPED, headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/stores/"}
    )
    assert answer["HX-Retarget"] == "body"
    assert 'href="http://testserver/stores/"' in answer.text


def test_the_way_back_is_one_of_ours(boss: Client, clerk: User) -> None:
    answer = boss.post(change(clerk), TYPED, headers={"Referer": "https://elsewhere.example/"})
    assert "elsewhere" not in answer.text


def test_a_program_is_told_in_its_own_words(boss: Client, clerk: User) -> None:
    answer = boss.post(change(clerk), TYPED, headers={"Accept": "application/json"})
    assert answer.status_code == 403
    assert "error" in answer.json()


def test_without_the_decorator_an_old_proof_would_do(
    boss: Client, clerk: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reauth_views, "is_confirmed_recently", lambda request: True)
    assert boss.post(change(clerk), {"username": "support", "is_active": "on"} | WHY).status_code == 302


class TestWhatAsks:
    """Each of these is refused with an old proof, and not for another reason."""

    @pytest.fixture(autouse=True)
    def without_rehearsal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Forms here are empty."""
        monkeypatch.setattr(Rehearsal, "refusal_by", lambda *_: None)

    def asked(self, client: Client, address: str) -> bool:
        let_proof_age(client)
        answer = client.post(address, {})
        return answer.status_code == 422 and "Confirm it's you" in answer.text

    def test_people_and_their_roles(self, administrator: Client, clerk: User) -> None:
        assert self.asked(administrator, change(clerk))
        assert self.asked(administrator, reverse("admin:auth_user_add"))
        assert self.asked(administrator, reverse("admin:auth_user_password_change", args=[clerk.pk]))
        assert self.asked(administrator, reverse("admin:auth_user_reset_second_factor", args=[clerk.pk]))

    def test_raw_edits_and_stores(self, client: Client) -> None:
        helper = User.objects.create_superuser("owner")
        client.force_login(helper)
        store = SessionStore.objects.create(name="tried", kind="sqlalchemy")
        assert self.asked(client, reverse("admin:sessions_app_agentmessage_change", args=[1]))
        assert self.asked(client, reverse("admin:sessions_app_agentmessage_delete", args=[1]))
        no_record = "00000000-0000-0000-0000-000000000000"
        assert self.asked(client, reverse("admin:sessions_app_agentsession_delete", args=[no_record]))
        assert self.asked(client, reverse("admin:sessions_app_sessionstore_delete", args=[store.pk]))

    def test_grants(self, operator: Client, client: Client) -> None:
        nothing = "00000000-0000-0000-0000-000000000000"
        client.force_login(person("compliance"))
        assert self.asked(client, reverse("accounts:grant-approve", args=[nothing]))

    def test_second_factors(self, operator: Client) -> None:
        assert self.asked(operator, reverse("accounts:second-factor-remove", args=[1]))
        assert self.asked(operator, reverse("mfa_generate_recovery_codes"))

    def test_a_missing_role_is_said_first(self, operator: Client) -> None:
        nothing = "00000000-0000-0000-0000-000000000000"
        let_proof_age(operator)
        assert operator.post(reverse("accounts:grant-approve", args=[nothing])).status_code == 403
