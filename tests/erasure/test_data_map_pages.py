"""The pages of the data map: list, filters, exports, record of processing, and the form of its head."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.test import Client

from memadmin.audit.models import AuditEvent
from memadmin.erasure.data_map.exporting import record_heads
from memadmin.erasure.data_map.places import count_columns, places
from memadmin.erasure.data_map.services import RecordChanged, change_record
from memadmin.erasure.models import ProcessingRecord
from tests.agents import run_sql
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

HEAD = {
    "controller": "Example Ltd, 1 High Street",
    "contact": "data-protection@example.com",
    "purpose": "customer support by AI agents",
    "subjects": "customers, staff",
    "recipients": "model provider",
    "third_countries": "none",
    "security": "roles, purpose at each read, signed audit log",
}


@pytest.fixture
def officer() -> Client:
    return signed_in(person("compliance"))


@pytest.fixture
def auditor() -> Client:
    return signed_in(person("auditor"))


def downloaded(client: Client, address: str) -> str:
    return client.get(address).getvalue().decode()


def test_list_shows_counters_places_and_the_way_to_fill_in_the_head(officer: Client) -> None:
    page = officer.get("/data-map/")
    assert page.status_code == 200
    assert page.context["totals"].classified == count_columns(places())
    assert "message_data" in page.text
    assert "Fill in" in page.text
    assert "Not classified" not in page.text


def test_auditors_see_it_and_change_nothing(auditor: Client) -> None:
    assert "Fill in" not in auditor.get("/data-map/").text
    assert auditor.get("/data-map/record/").status_code == 200
    assert auditor.get("/data-map/record/change/").status_code == 403
    assert auditor.post("/data-map/record/change/", HEAD).status_code == 403


@pytest.mark.parametrize("address", ["", "export.csv", "export.json", "record/", "record/change/"])
def test_others_see_none_of_it(address: str) -> None:
    assert signed_in(person("support")).get(f"/data-map/{address}").status_code == 403


def test_every_place_is_on_exactly_one_page(officer: Client) -> None:
    found, cursor = [], ""
    while True:
        page = officer.get("/data-map/", {"cursor": cursor}).context["page"]
        found += [place for group in page.groups for place in group.rows]
        if not page.older:
            break
        cursor = page.older
    assert found == list(places())
    back = officer.get("/data-map/", {"cursor": page.newer}).context["page"]
    assert back.older == cursor


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"name": "SUBJECTALIAS"}, {"sessions_app_subjectalias"}),
        (
            {"name": "message_data", "place": "agents"},
            {"agent_messages", "index on agent_messages", "MongoDB: messages collection"},
        ),
        ({"kind": "any", "name": "audit_"}, {"audit_detail", "audit_actor"}),
        ({"kind": "secret", "name": "mfa"}, {"mfa_authenticator"}),
        ({"kind": "none", "place": "jobs", "name": "work_on_run"}, {"memadmin.runs.jobs.work_on_run"}),
        ({"erased_by": "admin_log"}, {"django_admin_log"}),
        ({"erased_by": "erasure", "name": "outbox"}, {"sessions_app_fenceoutbox"}),
        ({"name": "no such table"}, set()),
    ],
)
def test_filters(officer: Client, query: dict[str, str], wanted: set[str]) -> None:
    page = officer.get("/data-map/", query).context["page"]
    assert {place.name for group in page.groups for place in group.rows} == wanted


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"kind": "tea"}, "This is no kind of data."),
        ({"place": "attic"}, "There is no such place."),
        ({"erased_by": "magic"}, "This erases nothing here."),
        ({"name": "x" * 101}, "A name has up to 100 characters."),
    ],
)
def test_bad_filter_is_answered_with_a_sentence_and_no_rows(
    officer: Client, query: dict[str, str], sentence: str
) -> None:
    page = officer.get("/data-map/", query)
    assert page.status_code == 400
    assert sentence in page.text
    assert "data-row" not in page.text


@pytest.mark.parametrize("cursor", ["-1", "0", "x", "99999", "1e3", "9" * 5_000])
def test_bad_cursor_is_answered_with_a_way_back(officer: Client, cursor: str) -> None:
    page = officer.get("/data-map/", {"cursor": cursor})
    assert page.status_code == 400
    assert "Go to the first page" in page.text


def test_typed_name_is_shown_as_text(officer: Client) -> None:
    assert "<b>x" not in officer.get("/data-map/", {"name": "<b>x"}).text


def test_column_that_nobody_classified_is_told_on_the_page(officer: Client) -> None:
    run_sql("ALTER TABLE sessions_app_subject ADD COLUMN nickname text")
    assert "sessions_app_subject (nickname)" in officer.get("/data-map/").text


def test_csv_has_a_line_for_each_column(auditor: Client) -> None:
    header, *rows = csv.reader(io.StringIO(downloaded(auditor, "/data-map/export.csv")))
    assert header[:4] == ["place", "name", "column", "class"]
    assert [(row[1], row[2]) for row in rows] == [
        (place.name, column) for place in places() for column in place.columns
    ]


def test_json_has_every_column_and_the_head(auditor: Client) -> None:
    change_record(HEAD, by=person("compliance"), seen=None)
    document = json.loads(downloaded(auditor, "/data-map/export.json"))
    assert len(document["places"]) == count_columns(places())
    assert document["record"].items() >= HEAD.items()
    wanted = {"name": "sessions_app_subjectalias", "column": "key", "kinds": ["identity"], "erased_by": ["identity"]}
    assert any(each.items() >= wanted.items() for each in document["places"])


def test_record_has_every_head_of_article_30(auditor: Client) -> None:
    change_record(HEAD, by=person("compliance"), seen=None)
    page = auditor.get("/data-map/record/")
    heads = record_heads(ProcessingRecord.objects.get(), places())
    assert {head.letter for head in heads} == set("abcdefg")
    assert all(head.text for head in heads)
    for head in heads:
        assert f"({head.letter}) {head.title}" in page.text
    for text in HEAD.values():
        assert text in page.text
    assert "not filled in" not in page.text
    for place in places():
        assert not place.is_personal or place.columns[0] in page.text


def test_record_without_a_head_says_that_it_is_incomplete(auditor: Client) -> None:
    page = auditor.get("/data-map/record/").text
    assert "the record is incomplete" in page
    assert page.count("not filled in") >= 7


def test_change_of_the_head_is_recorded(officer: Client) -> None:
    assert officer.post("/data-map/record/change/", HEAD).status_code == 302
    record = ProcessingRecord.objects.get()
    assert record.changed_by is not None
    assert {name: getattr(record, name) for name in HEAD} == HEAD
    event = AuditEvent.objects.get(type="processing_record.changed")
    follows = AuditEvent.objects.filter(cause=event.id)
    assert {each.type for each in follows} == {"processing_record.row_inserted", "processing_record.row_updated"}
    kept = "".join(each.detail.details for each in follows)
    assert "customer support by AI agents" in kept
    assert "data-protection@example.com" not in kept
    assert "data-protection@example.com" in officer.get("/data-map/").text


def test_form_keeps_what_was_typed_where_a_field_is_empty(officer: Client) -> None:
    page = officer.post("/data-map/record/change/", {**HEAD, "purpose": " "})
    assert page.status_code == 422
    assert HEAD["controller"] in page.text
    assert not ProcessingRecord.objects.exists()


def test_text_that_is_too_long_is_refused(officer: Client) -> None:
    assert officer.post("/data-map/record/change/", {**HEAD, "purpose": "x" * 2_001}).status_code == 422


def test_changed_meanwhile_is_a_conflict_and_changes_nothing(officer: Client) -> None:
    other = person("compliance", "reviewer")
    first = change_record(HEAD, by=other, seen=None)
    form = officer.get("/data-map/record/change/").context["form"]
    change_record({**HEAD, "purpose": "second"}, by=other, seen=first.changed_at)
    events = AuditEvent.objects.count()
    page = officer.post("/data-map/record/change/", {**HEAD, "purpose": "third", "seen": form["seen"].value()})
    assert page.status_code == 409
    assert "Another person has changed the record" in page.text
    assert ProcessingRecord.objects.get().purpose == "second"
    assert AuditEvent.objects.count() == events


def test_second_first_version_is_a_conflict() -> None:
    change_record(HEAD, by=person("compliance"), seen=None)
    with pytest.raises(RecordChanged):
        change_record(HEAD, by=person("compliance", "reviewer"), seen=None)


def test_form_brings_back_the_version_that_it_shows(officer: Client) -> None:
    change_record(HEAD, by=person("compliance", "reviewer"), seen=None)
    form = officer.get("/data-map/record/change/").context["form"]
    values = {name: form[name].value() for name in (*HEAD, "seen")}
    assert officer.post("/data-map/record/change/", {**values, "purpose": "second"}).status_code == 302
    assert ProcessingRecord.objects.get().purpose == "second"
