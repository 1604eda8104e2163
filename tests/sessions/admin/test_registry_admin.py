"""Subjects, sessions on record and stores in the raw edits."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.admin.registry import SessionRecordAdmin
from sessions_app.models import SessionRecord, SessionStore, Subject, SubjectKind, SubjectSource
from sessions_app.services.patterns import add_pattern
from sessions_app.services.store_config import StoreStillNeeded, delete_store
from tests.agents import add_items, run_sql
from tests.builders import make_session, make_store, make_subject
from tests.people import signed_in
from tests.raw_edits import WHY

pytestmark = pytest.mark.django_db


def address(model: str, verb: str, *row: Any, **query: str) -> str:
    return reverse(f"admin:sessions_app_{model}_{verb}", args=[each.pk for each in row], query=query or None)


def sent(page: Any, **changed: Any) -> dict[str, Any]:
    """What a browser would send back from the form of a page, with these changes."""
    forms = [page.context["adminform"].form]
    for formset in page.context["inline_admin_formsets"]:
        forms += [formset.formset.management_form, *formset.formset.forms]
    fields = {field.html_name: field.value() for form in forms for field in form}
    return {name: "" if value is None else value for name, value in (WHY | fields | changed).items()}


def test_administrator_corrects_a_session_by_hand(administrator: Client) -> None:
    subject = make_subject("cust_1")
    record = make_session("s")
    place = address("sessionrecord", "change", record)

    page = administrator.get(place)
    assert 'name="session_id"' not in page.text
    answer = administrator.post(place, sent(page, subject=str(subject.pk), ticket="T-1", labels="vip,late"))

    assert answer.status_code == 302
    record.refresh_from_db()
    assert (record.subject, record.subject_source) == (subject, SubjectSource.OPERATOR)
    assert (record.ticket, record.labels) == ("T-1", ["vip", "late"])


def test_saving_leaves_alone_what_an_agent_wrote_meanwhile(administrator: Client) -> None:
    record = make_session("s")
    place = address("sessionrecord", "change", record)
    page = administrator.get(place)
    run_sql("UPDATE sessions_app_sessionrecord SET activity_count = 77")
    administrator.post(place, sent(page, ticket="T-1"))

    record.refresh_from_db()
    assert (record.ticket, record.activity_count) == ("T-1", 77)


def test_taking_the_subject_away_is_a_decision(administrator: Client) -> None:
    record = make_session("s", subject=make_subject("cust_1"))
    place = address("sessionrecord", "change", record)
    administrator.post(place, sent(administrator.get(place), subject=""))
    record.refresh_from_db()
    assert (record.subject, record.subject_source) == (None, SubjectSource.OPERATOR)


@pytest.mark.parametrize("verb", ["add", "delete"])
def test_nobody_adds_or_deletes_a_registry_row(verb: str) -> None:
    root = signed_in(User.objects.create_superuser("root"))
    place = address("sessionrecord", verb, *([make_session("s")] if verb == "delete" else []))
    assert root.get(place).status_code == 403


def test_a_session_erased_meanwhile_is_not_touched(administrator: Client) -> None:
    record = make_session("s", ticket="T-1")
    place = address("sessionrecord", "change", record)
    fields = sent(administrator.get(place), ticket="T-2")
    run_sql("UPDATE sessions_app_sessionrecord SET erased_at = now()")
    assert administrator.post(place, fields).status_code == 403
    record.refresh_from_db()
    assert record.ticket == "T-1"


def test_a_session_erased_while_it_is_saved_is_not_touched(
    administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = make_session("s", ticket="T-1")
    place = address("sessionrecord", "change", record)
    fields = sent(administrator.get(place), ticket="T-2")
    save = SessionRecordAdmin.save_model

    def erased_first(*arguments: Any) -> None:
        run_sql("UPDATE sessions_app_sessionrecord SET erased_at = now()")
        save(*arguments)

    monkeypatch.setattr(SessionRecordAdmin, "save_model", erased_first)

    assert "was erased since you opened it" in administrator.post(place, fields, follow=True).text


def test_saving_asks_for_the_session_by_its_store_and_id(administrator: Client) -> None:
    """Not by the random id alone, which a distributed table would have to look for everywhere."""
    place = address("sessionrecord", "change", make_session("s"))
    fields = sent(administrator.get(place), ticket="T-1", subject=str(make_subject().pk))
    with CaptureQueriesContext(connection) as asked:
        administrator.post(place, fields)
    written = [query["sql"] for query in asked if query["sql"].startswith('UPDATE "sessions_app_sessionrecord"')]
    assert len(written) == 2
    for query in written:
        condition = query.split(" WHERE ")[1]
        assert '"session_id" = ' in condition
        assert '"store_id" = ' in condition


def test_no_content_in_the_registry(kept_main_store: SessionStore, administrator: Client) -> None:
    add_items("s", "zebra finch")
    record = SessionRecord.objects.get()
    for place in (address("sessionrecord", "changelist"), address("sessionrecord", "change", record)):
        assert "zebra" not in administrator.get(place).text


def test_a_subject_is_shown_with_a_way_to_its_own_page(administrator: Client) -> None:
    subject = make_subject("cust_48213")
    page = administrator.get(address("subject", "change", subject))
    assert "cust_48213" in page.text
    assert subject.get_absolute_url() in page.text


def test_the_only_id_of_a_subject_is_not_deleted_past_its_verb() -> None:
    root = signed_in(User.objects.create_superuser("root"))
    subject = make_subject("cust_1")
    alias = subject.aliases.get()
    row = {"id": str(alias.pk), "subject": str(subject.pk), "kind": "user", "key": "cust_1", "DELETE": "on"}
    fields = {"aliases-TOTAL_FORMS": "1", "aliases-INITIAL_FORMS": "1"} | {
        f"aliases-0-{name}": value for name, value in row.items()
    }
    assert root.post(address("subject", "change", subject), fields).status_code == 403
    assert subject.aliases.get() == alias
    assert root.get(address("subject", "add")).status_code == 403


def test_a_subject_is_not_deleted_here() -> None:
    root = signed_in(User.objects.create_superuser("root"))
    assert root.get(address("subject", "delete", make_subject())).status_code == 403
    assert Subject.objects.exists()


def test_a_store_and_its_patterns_are_not_changed_past_their_verbs(kept_main_store: SessionStore) -> None:
    root = signed_in(User.objects.create_superuser("root"))
    store = kept_main_store
    pattern = add_pattern(
        store, name="tickets", text="customer_{subject}", subject_kind=SubjectKind.USER, by=User.objects.get()
    )
    store.refresh_from_db()
    place = address("sessionstore", "change", store)

    page = root.get(place)
    assert "customer_{subject}" in page.text
    assert reverse("sessions:store", args=["main"]) in page.text
    answer = root.post(
        place,
        {
            "name": "renamed",
            "sessions_table": "elsewhere",
            "patterns-TOTAL_FORMS": "1",
            "patterns-INITIAL_FORMS": "1",
            "patterns-0-id": str(pattern.pk),
            "patterns-0-store": str(store.pk),
            "patterns-0-DELETE": "on",
        },
    )

    assert answer.status_code == 403
    assert SessionStore.objects.values().get() == {
        field.attname: getattr(store, field.attname) for field in SessionStore._meta.concrete_fields
    }
    assert store.patterns.get() == pattern
    assert root.get(address("sessionstore", "add")).status_code == 403


def test_an_attached_store_is_not_deleted(kept_main_store: SessionStore) -> None:
    root = signed_in(User.objects.create_superuser("root"))
    store = kept_main_store
    page = root.post(address("sessionstore", "delete", store), {"post": "yes"}, follow=True)
    assert "Run attach_store main --remove first." in page.text
    assert SessionStore.objects.exists()


def test_a_store_with_sessions_is_not_deleted() -> None:
    root = signed_in(User.objects.create_superuser("root"))
    store = make_store()
    place = address("sessionstore", "delete", store)
    make_session("s", store=store, erased_at="2026-11-21T00:00Z")
    for page in (root.get(place, follow=True), root.post(place, {"post": "yes"}, follow=True)):
        assert "still has session records" in page.text
    assert SessionStore.objects.exists()

    SessionRecord.objects.all().delete()
    assert root.get(place).status_code == 200
    root.post(place, {"post": "yes"} | WHY)
    assert not SessionStore.objects.exists()


def test_the_verb_asks_again() -> None:
    store = make_store()
    make_session("s", store=store)
    with pytest.raises(StoreStillNeeded):
        delete_store(store)
    assert SessionStore.objects.exists()


def test_an_administrator_deletes_no_store(administrator: Client) -> None:
    assert administrator.post(address("sessionstore", "delete", make_store()), {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("model", ["subject", "sessionrecord", "sessionstore"])
def test_support_staff_do_not_see_raw_edits(operator: Client, outsider: Client, model: str) -> None:
    for client in (operator, outsider):
        assert client.get(address(model, "changelist")).status_code == 403


def test_searches_of_people_are_not_on_show() -> None:
    root = signed_in(User.objects.create_superuser("root"))
    assert "search" not in root.get(reverse("admin:index")).text.lower()
