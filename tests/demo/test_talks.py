"""The demo bots that keep their sessions outside the main store leave real ones behind, in each place its own kind."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from memadmin.demo import preparing, sealing, talks
from sessions_app import registry
from sessions_app.encryption import keyring
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.services.discovery import discover_sessions
from sessions_app.services.inspection import inspect_quiet_sessions
from sessions_app.services.patterns import apply_patterns
from sessions_app.stores import backend_for
from sessions_app.stores.kinds import branching
from tests.people import person


@pytest.fixture
def stores(db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[SessionStore]:
    settings.DATA_DIR = tmp_path
    settings.SESSION_KEYS = {}
    monkeypatch.setenv("MEMADMIN_KEYRING", "")
    monkeypatch.setenv("MEMADMIN_SESSION_KEY_DEMO_FILE", "")
    return talks.connect()


@pytest.fixture
def told(stores: list[SessionStore]) -> int:
    return talks.tell()


def test_each_talk_is_had_once_and_every_store_is_healthy(told: int) -> None:
    assert told == len(talks.TALKS)
    assert talks.tell() == 0
    assert [store.kind for store in talks.connect()] == ["sqlite", "advanced_sqlite", "sqlite", "json_file"]
    for place in talks.PLACES:
        assert registry.health(registry.known_store(place.name)).state == "ok"


def test_what_was_said_is_found_with_times_of_some_days_ago(told: int) -> None:
    discover_sessions()
    record = SessionRecord.objects.get(session_id="counter:cust_48213")
    assert now() - timedelta(days=4) < record.last_activity_at < now() - timedelta(days=1)
    preview = backend_for(record.store).previews([record.session_id])[record.session_id]
    assert preview.first_user_text.startswith("I am in the shop right now.")
    assert SessionRecord.objects.count() == len(talks.TALKS)


def test_the_planner_went_another_way_and_noted_what_each_turn_took(told: int) -> None:
    store = registry.known_store(talks.PLANNER.name)
    backend = branching(store)
    assert backend
    main, other = backend.branches("planner:cust_48213")
    assert (main.name, main.item_count, other.name, other.item_count) == ("main", 6, "35 euros at most", 6)
    assert [turn.total_tokens for turn in backend.usage("planner:cust_48213", main)] == [252, 362, 431]
    assert len(backend.usage("planner:cust_48213", other)) >= 2


def test_what_the_complaints_desk_hears_is_sealed_with_the_key_that_the_console_has(
    told: int, stores: list[SessionStore]
) -> None:
    assert b"my hip is new" not in talks.COMPLAINTS.path.read_bytes()
    person("administrator")
    preparing.hand_over_key([stores[2]])
    key = keyring().get(preparing.KEY_NAME)
    assert key
    assert sealing.session_key_path().exists()
    stores[2].refresh_from_db()
    assert stores[2].encryption_key == preparing.KEY_NAME
    discover_sessions()
    inspect_quiet_sessions()
    assert SessionRecord.objects.get(session_id="complaints:cust_48213").is_encrypted


def test_the_hotline_keeps_what_was_said_and_nothing_else(told: int) -> None:
    backend = backend_for(registry.known_store(talks.HOTLINE.name))
    assert backend.count("hotline:cust_48213") == 4
    (first, *_) = backend.every_item("hotline:cust_48213")
    said = {"role": "user", "content": "Is the shop open on Whit Monday? I would come for the Assam."}
    assert json.loads(first.raw) == said


def test_one_customer_is_followed_across_all_places_on_one_page(
    told: int, stores: list[SessionStore], operator: Client
) -> None:
    person("administrator")
    for store in stores:
        preparing.add_patterns(store)
    discover_sessions()
    for store in stores:
        apply_patterns(store)
    subject = Subject.objects.get(aliases__key="cust_48213")
    page = operator.get(subject.get_absolute_url()).text
    records = SessionRecord.objects.filter(session_id__endswith=":cust_48213")
    assert {record.store.name for record in records} == {place.name for place in talks.PLACES}
    for record in records:
        assert reverse("sessions:timeline", args=[record.pk]) in page


def test_what_was_erased_is_not_said_again(told: int) -> None:
    store = registry.known_store(talks.COUNTER.name)
    backend_for(store).erase_session("counter:cust_50977")
    assert talks.tell() == 0
    assert backend_for(store).count("counter:cust_50977") == 0
