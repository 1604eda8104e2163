"""Raw edits say why: nothing is changed by Django admin without a reason that the log keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse

from memadmin.accounts import raw_edits
from memadmin.accounts.admin_site import RawEditsSite
from memadmin.audit.models import AuditEvent
from sessions_app.models import SessionRecord, SessionStore, Subject, SubjectAlias, SubjectKind
from tests.accounts.test_confirming import kept
from tests.builders import make_session, make_store, make_subject
from tests.people import person, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.browser.trial_admin")]

WORDS = "Ticket T-9: the <b>wrong</b> person"
WHY = {"why-reason": "incident", "why-explanation": WORDS}
SENTENCE = "Nothing has been changed yet. A raw edit needs a reason."


@pytest.fixture
def owner(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("owner"))
    return client


def address(model: str, verb: str, *row: Any, site: str = "trial") -> str:
    return reverse(f"{site}:{model}_{verb}", args=[each.pk for each in row])


def told(event_type: str = "raw_edit.made") -> AuditEvent:
    """The one event of this type, with the reason in it and the words beside it alone."""
    event = AuditEvent.objects.get(type=event_type)
    assert event.reason_code == "incident"
    assert json.loads(event.detail.details) == {"explanation": WORDS}
    return event


def changes_without_reason() -> QuerySet[AuditEvent]:
    """What was changed by somebody, and no event says why."""
    reasons = AuditEvent.objects.exclude(reason_code="").values("id")
    rows = AuditEvent.objects.filter(type__contains=".row_", actor_kind="person")
    return rows.exclude(cause__in=reasons)


def alias_rows(subject: Subject, **changed: str) -> dict[str, str]:
    alias = subject.aliases.get()
    row = {"id": str(alias.pk), "subject": str(subject.pk), "kind": "user", "key": alias.key, "is_primary": "on"}
    return {
        "aliases-TOTAL_FORMS": "1",
        "aliases-INITIAL_FORMS": "1",
        **{f"aliases-0-{name}": value for name, value in (row | changed).items()},
    }


class TestForms:
    def test_a_form_without_one_comes_back_with_what_was_typed(self, owner: Client) -> None:
        clerk = person("support")
        form = {"username": "support", "last_name": "Typed <b>", "why-explanation": WORDS}
        page = owner.post(address("auth_user", "change", clerk, site="admin"), form)
        assert page.status_code == 422
        assert SENTENCE in page.text
        assert "Choose a reason." in page.text
        assert 'value="Typed &lt;b&gt;"' in page.text
        assert "T-9: the &lt;b&gt;wrong&lt;/b&gt; person</textarea>" in page.text
        clerk.refresh_from_db()
        assert clerk.last_name == ""
        assert not AuditEvent.objects.filter(type="raw_edit.made").exists()

    def test_what_is_no_reason_is_none(self, owner: Client) -> None:
        form = {"username": "support", "why-reason": "because"}
        page = owner.post(address("auth_user", "change", person("support"), site="admin"), form)
        assert "This reason does not exist. Choose one from the list." in page.text

    def test_a_form_that_is_wrong_otherwise_keeps_the_reason(self, owner: Client) -> None:
        page = owner.post(address("auth_user", "change", person("support"), site="admin"), {"username": "", **WHY})
        assert '<option value="incident" selected>' in page.text
        assert "</b> person" not in page.text
        assert "T-9: the" in page.text

    def test_the_reason_stands_with_the_change(self, owner: Client) -> None:
        clerk, role = person("support"), Group.objects.get(name="auditor")
        form = {"username": "support", "is_active": "on", "groups": [role.pk], **WHY}
        assert owner.post(address("auth_user", "change", clerk, site="admin"), form).status_code == 302
        event = told()
        assert (event.object_kind, event.counters) == ("auth.user", {"rows": 1})
        parts = set(AuditEvent.objects.filter(cause=event.id).values_list("type", flat=True))
        assert {"user_role.row_inserted", "user_role.row_deleted"} <= parts
        assert not changes_without_reason()

    def test_the_page_of_the_event_shows_it_and_the_log_can_lose_its_words(self, owner: Client) -> None:
        role = Group.objects.create(name="new")
        owner.post(address("auth_group", "change", role, site="admin"), {"name": "newer", **WHY})
        event = told()
        reader = signed_in(person("compliance"))
        page = reader.get(reverse("audit:event", args=[event.id]))
        assert "incident" in page.text
        assert "Ticket T-9: the &lt;b&gt;wrong&lt;/b&gt; person" in page.text
        assert "matches" in page.text

    def test_somebody_added(self, owner: Client) -> None:
        form = {"username": "newcomer", "password1": "f7Hq2pLw9x", "password2": "f7Hq2pLw9x", "usable_password": "true"}
        place = address("auth_user", "add", site="admin")
        assert SENTENCE in owner.post(place, form).text
        assert not User.objects.filter(username="newcomer").exists()
        assert owner.post(place, form | WHY).status_code == 302
        assert told().object_kind == "auth.user"
        assert not changes_without_reason()

    def test_saving_nothing_new_is_no_event(self, owner: Client) -> None:
        role = Group.objects.create(name="new")
        assert owner.post(address("auth_group", "change", role), {"name": "new", **WHY}).status_code == 302
        assert not AuditEvent.objects.filter(type="raw_edit.made").exists()

    def test_a_password_set_for_somebody(self, owner: Client) -> None:
        clerk = person("support")
        form = {"password1": "f7Hq2pLw9x", "password2": "f7Hq2pLw9x", "usable_password": "true"}
        place = address("auth_user", "password_change", clerk, site="admin")
        assert 'name="why-reason"' in owner.get(place).text
        assert owner.post(place, form).status_code == 422
        clerk.refresh_from_db()
        assert clerk.check_password("support")
        assert owner.post(place, form | {"password2": "other"} | WHY).status_code == 422
        assert not AuditEvent.objects.filter(type="raw_edit.made").exists()
        assert owner.post(place, form | WHY).status_code == 302
        assert told().object_kind == "auth.user"
        assert not changes_without_reason()

    def test_a_second_factor_reset(self, owner: Client) -> None:
        place = address("auth_user", "reset_second_factor", person("support"), site="admin")
        assert 'name="why-reason"' in owner.get(place).text
        assert owner.post(place).status_code == 422
        assert owner.post(place, WHY).status_code == 302
        told("second_factor.reset")

    def test_a_session_on_record(self, owner: Client) -> None:
        record, subject = make_session("s"), make_subject()
        form = {"subject": str(subject.pk), "ticket": "T-1", "agent": "", "labels": ""}
        place = address("sessions_app_sessionrecord", "change", record, site="admin")
        assert SENTENCE in owner.post(place, form).text
        assert owner.post(place, form | WHY).status_code == 302
        told("session.edited")
        told("session.attached")
        assert not changes_without_reason()

    def test_a_row_of_an_inline(self, owner: Client) -> None:
        subject = make_subject("customer_1")
        place = address("sessions_app_subject", "change", subject)
        form = alias_rows(subject, key="customer_2")
        page = owner.post(place, form)
        assert SENTENCE in page.text
        assert 'value="customer_2"' in page.text
        assert owner.post(place, form | WHY).status_code == 302
        assert subject.aliases.get().key == "customer_2"
        assert told().object_ref == subject.pk
        assert not changes_without_reason()


class TestDeleting:
    def test_asks_on_the_page_that_asks_whether(self, owner: Client) -> None:
        role = Group.objects.create(name="new")
        place = address("auth_group", "delete", role, site="admin")
        question = owner.get(place).text
        assert "Delete the role “new”?" in question
        assert 'name="why-reason"' in question
        page = owner.post(place, {"post": "yes", "why-explanation": WORDS})
        assert page.status_code == 422
        assert SENTENCE in page.text
        assert kept(page.text)["post"] == ["yes"]
        assert Group.objects.filter(name="new").exists()
        assert owner.post(place, {"post": "yes", **WHY}).status_code == 302
        assert told().object_kind == "auth.group"
        assert not changes_without_reason()

    def test_a_store(self, owner: Client) -> None:
        place = address("sessions_app_sessionstore", "delete", make_store(), site="admin")
        assert owner.post(place, {"post": "yes"}).status_code == 422
        assert SessionStore.objects.exists()
        assert owner.post(place, {"post": "yes", **WHY}).status_code == 302
        told("store.deleted")

    @pytest.mark.urls("memadmin.urls")
    def test_who_may_not_delete_is_told_that_first(self, administrator: Client) -> None:
        place = address("sessions_app_sessionstore", "delete", make_store(), site="admin")
        assert administrator.post(place, {"post": "yes"}).status_code == 403


class TestLists:
    def test_several_are_deleted_at_once(self, owner: Client) -> None:
        stores = [make_store("second"), make_store("third")]
        place = address("sessions_app_sessionstore", "changelist")
        chosen = {"action": "delete_selected", "_selected_action": [store.pk for store in stores]}
        question = owner.post(place, chosen)
        assert question.status_code == 200
        assert 'name="why-reason"' in question.text
        page = owner.post(place, chosen | {"post": "yes"})
        assert page.status_code == 422
        assert kept(page.text)["_selected_action"] == [str(store.pk) for store in stores]
        assert SessionStore.objects.count() == 2
        assert owner.post(place, chosen | {"post": "yes"} | WHY).status_code == 302
        assert not SessionStore.objects.exists()
        event = told()
        assert (len(event.shown), event.counters) == (2, {"rows": 2})
        assert not changes_without_reason()

    def test_an_action_without_a_page_gets_one_that_asks(self, owner: Client) -> None:
        alias = make_subject("customer_1", SubjectKind.TENANT).aliases.get()
        place = address("sessions_app_subjectalias", "changelist")
        page = owner.post(place, {"action": "call_users", "_selected_action": [alias.pk]})
        assert page.status_code == 422
        assert SubjectAlias.objects.get().kind == SubjectKind.TENANT
        assert owner.post(place, kept(page.text) | WHY).status_code == 302
        assert SubjectAlias.objects.get().kind == SubjectKind.USER
        told()
        assert not changes_without_reason()

    def test_choosing_nothing_asks_nothing(self, owner: Client) -> None:
        place = address("sessions_app_subjectalias", "changelist")
        assert owner.post(place, {"action": "call_users", "index": "0"}).status_code == 302

    def test_a_row_changed_in_a_list(self, owner: Client) -> None:
        alias = make_subject("customer_1").aliases.get()
        place = address("sessions_app_subjectalias", "changelist")
        row = {"form-0-id": alias.pk, "form-0-key": "customer_2", "_save": "Save"}
        page = owner.post(place, {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, **row})
        assert page.status_code == 422
        assert owner.post(place, kept(page.text) | WHY).status_code == 302
        assert SubjectAlias.objects.get().key == "customer_2"
        assert told().object_kind == "sessions_app.subjectalias"
        assert not changes_without_reason()


def test_every_governed_model_asks() -> None:
    assert isinstance(admin.site, RawEditsSite)
    assert admin.site.check(None) == []


def test_a_governed_model_that_does_not_ask_is_found() -> None:
    site = RawEditsSite(name="careless")
    site.register(SessionRecord, admin.ModelAdmin)
    (problem,) = [each for each in site.check(None) if each.id == "memadmin.E004"]
    assert "without a reason" in problem.msg


def test_without_the_question_a_change_would_have_no_reason(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken variant: Django's own class, which the check above does not let start."""
    monkeypatch.setattr(raw_edits.ReasonedEdits, "get_form", admin.ModelAdmin.get_form)
    monkeypatch.setattr(raw_edits.ReasonedEdits, "save_model", admin.ModelAdmin.save_model)
    role = Group.objects.create(name="new")
    assert owner.post(address("auth_group", "change", role), {"name": "newer"}).status_code == 302
    assert changes_without_reason().exists()
