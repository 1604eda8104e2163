"""Sessions in which something was said, found with an index and without, and never in more than the time given."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now
from psycopg import sql

from memadmin.web.paging import BadCursor
from sessions_app.items import Position
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.search import in_session, sessions, slices
from sessions_app.search.in_session import Find
from sessions_app.search.remembered import remember_search
from sessions_app.search.sessions import MatchingSessions, is_rare
from sessions_app.search.slices import FIRST_SLICE_ITEMS
from sessions_app.search.snippets import snippet
from sessions_app.search_syntax import ParsedSearch
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreTooSlow
from sessions_app.stores.scan_search import ScanSearch
from sessions_app.stores.search_protocol import READ_CHARACTERS, SliceResult
from sessions_app.stores.sqlalchemy import search as search_by_sql
from sessions_app.stores.sqlalchemy.backend import SQLAlchemyBackend
from sessions_app.stores.sqlalchemy.postgres import fetch
from sessions_app.stores.sqlalchemy.search import SearchBySql
from sessions_app.stores.sqlalchemy.word_index import SqlWordIndex
from tests.agents import add_items, attached_store, in_sdk, question_in, run_sql, value_of
from tests.people import person

# For people who may see what is masked; the others are in test_masked_search.py.
matching_sessions = partial(sessions.matching_sessions, is_masked=False)
find_in_session = partial(in_session.find_in_session, is_masked=False)


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    """The main store without an index."""
    return kept_main_store


@pytest.fixture
def ways(store: SessionStore) -> Iterator[Iterator[str]]:
    """The ways in which a store is searched, each in force for the main store until the next is taken."""

    def each() -> Generator[str, None, None]:
        with pytest.MonkeyPatch.context() as patching:
            search_by_scan(patching)
            yield "another kind"
        yield "no index"
        SqlWordIndex(store).create()
        for words, rare in (("rare words", math.inf), ("common words", -1)):
            with pytest.MonkeyPatch.context() as patching:
                patching.setattr(sessions, "RARE", rare)
                yield words

    with closing(each()) as ways:
        yield ways


def search_by_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a kind of store that cannot look for words itself."""
    monkeypatch.setattr(SQLAlchemyBackend, "search", property(ScanSearch))
    monkeypatch.setattr(SQLAlchemyBackend, "word_index", None)


def look_for(text: str, **page: Any) -> MatchingSessions:
    searcher = User.objects.first() or person("support")
    return matching_sessions(remember_search(searcher, text), SessionRecord.objects.on_record(), **page)


def found(text: str, **page: Any) -> list[str]:
    return [match.record.session_id for match in look_for(text, **page).found]


def test_a_word_is_found_however_it_was_stored(ways: Iterator[str]) -> None:
    add_items("escaped", "Un café, s'il vous plaît")
    add_items("output", {"type": "function_call_output", "call_id": "c", "output": '{"drink": "caf\\u00e9"}'})
    run_sql(
        """INSERT INTO agent_messages (session_id, message_data)
           SELECT 'escaped', '{"role": "user", "content": "decaf"}' UNION ALL
           SELECT 'output', 'CAFÉ, and this is no JSON'"""
    )
    add_items("tea", "Un thé")

    for way in ways:
        assert found("café") == ["output", "escaped"], way
        assert found("CAFÉ") == ["output", "escaped"], way
        assert found("caf") == [], way


def test_the_syntax_of_web_searches(ways: Iterator[str]) -> None:
    add_items("a", "A refund, please. 東京")
    add_items("b", "No refund, card only. refund\ncard")
    add_items("c", "The card gets the refund of T-90420")
    expected = {
        "refund": ["c", "b", "a"],
        "refund card": ["c", "b"],
        '"refund card"': ["b"],
        "refund -card": ["a"],
        'refund -"refund card"': ["c", "a"],
        "T-90420 or nothing": ["c"],
        "90420": ["c"],
        "'; DROP TABLE agent_messages; -- %s %(x)s 100%": [],
        "東京": ["a"],
    }
    for way in ways:
        assert {typed: found(typed) for typed in expected} == expected, way


def test_a_hit_leads_to_the_newest_item_that_says_so(ways: Iterator[str]) -> None:
    add_items("s", "first refund")
    add_items("s", "second refund", "something else")

    newest = str(value_of("SELECT id FROM agent_messages WHERE message_data LIKE '%second%'"))

    for way in ways:
        [match] = look_for("refund").found
        assert str(match.snippet) == "second refund", way
        assert match.item_id == newest, way


def test_pages_follow_each_other_without_gap_or_double(ways: Iterator[str]) -> None:
    for number in range(7):
        add_items(f"s{number}", "needle", *["hay"] * number)
    search = remember_search(person("support"), "needle")

    for way in ways:
        seen = []
        cursor = ""
        for _ in range(3):
            page = matching_sessions(search, SessionRecord.objects.on_record(), cursor=cursor, size=3)
            seen += [match.record.session_id for match in page.found]
            cursor = page.older

        assert seen == [f"s{number}" for number in reversed(range(7))], way
        assert not cursor, way


def test_what_was_said_long_ago_is_found_beneath_all_that_is_newer(ways: Iterator[str]) -> None:
    for number in range(3):
        add_items(f"old {number}", "needle")
    for number in range(40):
        add_items(f"new {number}", "hay")

    for way in ways:
        assert found("needle", size=2) == ["old 2", "old 1"], way
        assert found("needle") == ["old 2", "old 1", "old 0"], way


def test_of_a_long_item_the_beginning_is_searched_however_small_it_is_stored(
    store: SessionStore,
) -> None:
    add_items("long", "all fine here. " * 20_000 + "zebra crossing")
    add_items("short", "zebra crossing")
    assert found("zebra") == ["short"]
    assert found("fine") == ["long"]


def test_items_that_are_searched_in_part_are_reported(ways: Iterator[str]) -> None:
    add_items("long", "hay " * 40_000 + "needle")
    add_items("short", "hay")
    first_characters = "the first 131,072 characters"

    for way in ways:
        matches = look_for("needle")
        assert not matches.found, way
        assert first_characters in " ".join([matches.effort, *matches.notes]), way
        find = find_in_session(SessionStore.objects.get(), "long", ParsedSearch.parse("needle"))
        assert find.is_from_index or first_characters in find.note, way
        find = find_in_session(SessionStore.objects.get(), "short", ParsedSearch.parse("needle"))
        assert not find.note, way


def test_an_item_of_as_many_characters_as_are_searched_is_not_cut(store: SessionStore) -> None:
    for letter, length in (("é", READ_CHARACTERS), ("e", READ_CHARACTERS + 1)):
        run_sql(
            f"""INSERT INTO agent_sessions (session_id) VALUES ('{letter}');
                INSERT INTO agent_messages (session_id, message_data)
                VALUES ('{letter}', repeat('{letter}', {length}))"""
        )
    assert look_for("needle").notes == [
        "One item is too long to search completely: only the first 131,072 characters were searched."
    ]


def test_a_store_whose_statistics_take_long_is_read(ways: Iterator[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def takes_long(*asked: Any, **named: Any) -> None:
        raise StoreTooSlow("It did not answer in time.")

    add_items("s", "needle")
    monkeypatch.setattr(SqlWordIndex, "frequency", takes_long)
    for way in ways:
        page = look_for("needle")
        assert [match.record.session_id for match in page.found] == ["s"], way
        assert not page.notes, way


def test_a_cursor_belongs_to_its_search(ways: Iterator[str]) -> None:
    for number in range(2):
        add_items(f"s{number}", "needle")
    for way in ways:
        cursor = look_for("needle", size=1).older
        for stranger in (cursor, cursor[:-1], "x", "\0"):
            try:
                look_for("needle", cursor=stranger)
            except BadCursor:
                continue
            raise AssertionError(f"{way} takes {stranger!r}")


def test_filters_of_the_list_apply(ways: Iterator[str]) -> None:
    add_items("customer_1:ticket_1", "needle")
    add_items("customer_2:ticket_2", "needle")
    SessionRecord.objects.filter(session_id="customer_2:ticket_2").update(ticket="T-2")

    search = remember_search(person("support"), "needle")
    for way in ways:
        matches = matching_sessions(search, SessionRecord.objects.on_record().filter(ticket="T-2"))
        assert [match.record.session_id for match in matches.found] == ["customer_2:ticket_2"], way


def test_an_erased_session_is_not_found(ways: Iterator[str]) -> None:
    add_items("s", "needle")
    SessionRecord.objects.update(erased_at="2026-11-21T00:00Z")
    for way in ways:
        assert found("needle") == [], way


def test_encrypted_sessions_are_named_as_not_searched(ways: Iterator[str]) -> None:
    from agents.extensions.memory import EncryptedSession

    async def write(tables: Any) -> None:
        plain = tables.session("sealed")
        await EncryptedSession("sealed", plain, Fernet.generate_key().decode()).add_items(
            [{"role": "user", "content": "needle"}]
        )

    in_sdk(write)
    note = "Encrypted items are searched only if you have a grant for their session."
    for way in ways:
        SessionRecord.objects.update(is_encrypted=False)
        assert found("needle") == [], way
        assert found("payload or hkdf or v1") == [], way
        SessionRecord.objects.update(is_encrypted=True)
        assert look_for("needle").notes == [note], way


def test_what_stands_beside_an_envelope_is_not_searched(ways: Iterator[str]) -> None:
    add_items("s", "hay")
    run_sql("""UPDATE agent_messages SET message_data = '{"__enc__": 1, "note": "one needle more"}'""")
    for way in ways:
        assert found("needle") == [], way


def test_a_store_that_is_away_is_named_and_the_others_are_searched(store: SessionStore, ways: Iterator[str]) -> None:
    add_items("s", "needle")
    away = SessionStore.objects.create(name="away", messages_table="nowhere")
    SessionRecord.objects.create(store=away, session_id="gone")

    for way in ways:
        matches = look_for("needle")
        assert [match.record.session_id for match in matches.found] == ["s"], way
        assert "away could not be searched" in matches.notes[0], way


def test_a_store_that_is_not_part_of_a_search_is_not_named(ways: Iterator[str]) -> None:
    add_items("s", "needle")
    away = SessionStore.objects.create(name="away", messages_table="nowhere")
    SessionRecord.objects.create(store=away, session_id="gone", ticket="T-1")
    search = remember_search(person("support"), "needle")

    for way in ways:
        main = SessionStore.objects.get(name="main")
        matches = matching_sessions(search, SessionRecord.objects.on_record().filter(store=main), store=main)
        assert [match.record.session_id for match in matches.found] == ["s"], way
        assert not matches.notes, way
        matches = matching_sessions(search, SessionRecord.objects.on_record().filter(ticket=""))
        assert [match.record.session_id for match in matches.found] == ["s"], way
        assert not matches.notes, way


def test_a_store_that_fails_while_it_is_read_does_not_end_the_search(store: SessionStore) -> None:
    """Its table responds, and has none of the columns that are searched."""
    run_sql("CREATE TABLE agent_letters (id bigint)")
    broken = SessionStore.objects.create(name="broken", messages_table="agent_letters")
    try:
        add_items("s", "needle")
        SessionRecord.objects.create(store=broken, session_id="one")
        SessionRecord.objects.create(store=broken, session_id="two")
        # No index is asked first for somebody who reads masked text.
        matches = look_for("needle", is_masked=True)
    finally:
        run_sql("DROP TABLE agent_letters")

    assert [match.record.session_id for match in matches.found] == ["s"]
    [note] = matches.notes
    assert note.startswith("broken could not be searched. The tables")
    assert not matches.is_stopped


def test_a_search_leads_on_beyond_a_store_that_is_away(store: SessionStore, no_time: None) -> None:
    add_items("s", "needle")
    away = SessionStore.objects.create(name="away", messages_table="nowhere")
    SessionRecord.objects.bulk_create(SessionRecord(store=away, session_id=f"gone {n}") for n in range(100))
    search = remember_search(person("support"), "needle")

    steps = [matching_sessions(search, SessionRecord.objects.on_record())]
    while steps[-1].older:
        assert len(steps) < 100
        steps.append(matching_sessions(search, SessionRecord.objects.on_record(), cursor=steps[-1].older))

    assert "away could not be searched" in steps[0].notes[0]
    assert [match.record.session_id for step in steps for match in step.found] == ["s"]


def test_hand_made_tables_with_jsonb_and_time_zones(agent_tables: None) -> None:
    run_sql(
        """
        CREATE SCHEMA "Agents";
        CREATE TABLE "Agents"."50% sessions" (session_id text PRIMARY KEY,
            created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now());
        CREATE TABLE "Agents"."50% items" (id bigserial PRIMARY KEY,
            session_id text NOT NULL REFERENCES "Agents"."50% sessions" ON DELETE CASCADE,
            message_data jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
        CREATE INDEX ON "Agents"."50% items" (session_id, created_at);
        """
    )
    other = attached_store("other", sessions_table="Agents.50% sessions", messages_table="Agents.50% items")
    run_sql(
        """INSERT INTO "Agents"."50% sessions" VALUES ('s');
           INSERT INTO "Agents"."50% items" (session_id, message_data)
           SELECT 's', jsonb_build_object('role', 'user', 'content', word)
           FROM unnest('{café,"café %s",tea}'::text[]) AS word"""
    )
    for _ in ("without an index", "with one"):
        [match] = look_for("café").found
        assert (match.record.store, str(match.snippet)) == (other, "café %s")
        first = find_in_session(other, "s", ParsedSearch.parse("café"))
        assert first.found
        second = find_in_session(other, "s", ParsedSearch.parse("café"), after=first.found.position)
        assert second.found
        assert second.item_id == match.item_id
        assert not find_in_session(other, "s", ParsedSearch.parse("café"), after=second.found.position).found
        SqlWordIndex(other).create()


@pytest.fixture
def other_store(kept_main_store: SessionStore) -> Iterator[SessionStore]:
    run_sql(
        """
        CREATE TABLE other_sessions (session_id text PRIMARY KEY,
            created_at timestamp NOT NULL DEFAULT now(), updated_at timestamp NOT NULL DEFAULT now());
        CREATE TABLE other_items (id bigserial PRIMARY KEY,
            session_id text NOT NULL REFERENCES other_sessions ON DELETE CASCADE,
            message_data text NOT NULL, created_at timestamp NOT NULL DEFAULT now());
        CREATE INDEX ON other_items (session_id, created_at);
        """
    )
    yield attached_store("other", sessions_table="other_sessions", messages_table="other_items")
    run_sql("DROP TABLE other_items, other_sessions")


def test_the_newest_of_several_stores_come_first(
    other_store: SessionStore, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "RARE", math.inf)
    for each in (store, other_store):
        SqlWordIndex(each).create()
    for number in range(3):
        add_items(f"main {number}", "needle")
        run_sql(
            f"""
            INSERT INTO other_sessions (session_id) VALUES ('other {number}');
            INSERT INTO other_items (session_id, message_data) VALUES ('other {number}', '{{"content": "needle"}}')
            """
        )
    for age, session_id in enumerate(["other 2", "main 0", "main 2", "other 0", "other 1", "main 1"]):
        SessionRecord.objects.filter(session_id=session_id).update(last_activity_at=now() - timedelta(hours=age))

    page = look_for("needle", size=4)

    assert [match.record.session_id for match in page.found] == ["other 2", "main 0", "main 2", "other 0"]
    assert page.found[0].record.store == other_store
    assert page.is_from_index
    assert page.older


@pytest.mark.parametrize("slow", ["main", "other"])
def test_one_slow_store_does_not_end_the_search_of_others(
    other_store: SessionStore, store: SessionStore, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Its newest session is the newest of all; the stores are asked in any order."""
    stores = {"main": store, "other": other_store}
    add_items("main", "needle")
    run_sql(
        """
        INSERT INTO other_sessions (session_id) VALUES ('other');
        INSERT INTO other_items (session_id, message_data) VALUES ('other', '{"content": "needle"}')
        """
    )
    SessionRecord.objects.exclude(session_id=slow).update(last_activity_at=now() - timedelta(hours=1))
    quick = "other" if slow == "main" else "main"
    look = SearchBySql.look

    def slowly(self: SearchBySql, *arguments: Any, **named: Any) -> dict[str, SliceResult]:
        if self.store == stores[slow]:
            raise StoreTooSlow
        return look(self, *arguments, **named)

    monkeypatch.setattr(SearchBySql, "look", slowly)
    search, on_record = remember_search(person("support"), "needle"), SessionRecord.objects.on_record()
    page = matching_sessions(search, on_record)
    assert page.is_stopped
    assert page.notes == ["One item was skipped because searching it takes too long."]
    page = matching_sessions(search, on_record, cursor=page.older)
    assert [match.record.session_id for match in page.found] == [quick]


def test_a_search_that_read_nothing_in_time_says_so(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    add_items("s", "needle")
    monkeypatch.setattr(sessions, "_looks", lambda reading, some, resume: iter([(some[0], None)]))
    page = look_for("needle")
    assert page.is_stopped
    assert page.effort.endswith("older sessions were not searched.")


def test_a_session_taken_away_meanwhile_is_passed_over(store: SessionStore, ways: Iterator[str]) -> None:
    add_items("s", "needle")
    SessionRecord.objects.create(store=store, session_id="only in the registry")
    for way in ways:
        assert found("needle") == ["s"], way


def test_a_search_without_an_index_says_how_much_it_read(store: SessionStore) -> None:
    add_items("a", "needle", "hay", "hay")
    add_items("b", "hay", "hay")

    matches = look_for("needle")

    # Of the first session its newest three, up to the hit.
    assert re.match(r"Searched 5 items of 2 sessions in \d+\.\d s", matches.effort)
    assert not matches.is_stopped


def test_a_search_that_an_index_answers_has_read_nothing(kept_main_store: SessionStore) -> None:
    SqlWordIndex(kept_main_store).create()
    add_items("a", "needle")
    matches = look_for("needle")
    assert matches.sessions_read == 0
    assert matches.effort.startswith("Answered by the search index")


@pytest.fixture
def no_time(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a second look; the first, which is given some all the same, is cancelled on no machine."""
    settings.SEARCH_SCAN_SECONDS = 0
    monkeypatch.setattr(slices, "LEAST_SECONDS", 60.0)


def test_search_stops_at_its_time_and_goes_on_from_there(store: SessionStore, no_time: None) -> None:
    """With no time at all each step reads one batch or one slice, and still all is found in the end."""
    run_sql(
        """INSERT INTO agent_sessions (session_id) SELECT 's' || n FROM generate_series(1, 60) AS n;
           INSERT INTO agent_messages (session_id, message_data)
           SELECT 's' || n, '{"content": "hay"}' FROM generate_series(1, 60) AS n, generate_series(1, 3);
           INSERT INTO agent_messages (session_id, message_data)
           SELECT 's9', '{"content": "hay"}' FROM generate_series(1, 1500);
           UPDATE agent_messages SET message_data = '{"content": "needle"}'
           WHERE id = (SELECT min(id) FROM agent_messages WHERE session_id = 's9')"""
    )
    search = remember_search(person("support"), "needle")
    steps = []
    cursor = ""
    while True:
        steps.append(matching_sessions(search, SessionRecord.objects.on_record(), cursor=cursor))
        cursor = steps[-1].older
        if not cursor:
            break
        assert len(steps) < 100

    assert [match.record.session_id for step in steps for match in step.found] == ["s9"]
    assert steps[0].is_stopped
    assert "older sessions were not searched" in steps[0].effort
    assert sum(step.items_read for step in steps) == 60 * 3 + 1500
    assert sum(step.sessions_read for step in steps) == 60


@pytest.fixture
def cancelled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many items each look was to read that PostgreSQL cancelled.

    An item takes as many seconds to search as it says: "needless 0.01".
    """
    seconds = "pg_sleep((regexp_match(message_data::text, 'needless ([0-9.]+)'))[1]::float)"
    slow = f"(SELECT to_tsvector('simple', message_data::text) FROM coalesce({seconds}::text, '') AS slept)"
    monkeypatch.setattr(search_by_sql, "WORDS", sql.SQL(slow))
    limits: list[int] = []
    look = SearchBySql.look

    def watched(*arguments: Any, **named: Any) -> dict[str, SliceResult]:
        try:
            return look(*arguments, **named)
        except StoreTooSlow:
            limits.append(named["limit"])
            raise

    monkeypatch.setattr(SearchBySql, "look", watched)
    return limits


class TestLargeItems:
    """The time is over in the middle of a statement, and PostgreSQL ends that."""

    @pytest.fixture(autouse=True)
    def a_moment(self, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Much less than the items of a look take together, and much more than each alone."""
        settings.SEARCH_SCAN_SECONDS = 0
        monkeypatch.setattr(slices, "LEAST_SECONDS", 0.6)

    def test_a_slice_that_takes_too_long_is_cancelled_and_read_in_smaller_ones(
        self, store: SessionStore, cancelled: list[int]
    ) -> None:
        add_items("s", *["needless 0.1"] * 8, "needle")
        place, steps = None, 0
        while not (find := find_in_session(store, "s", ParsedSearch.parse("needle"), after=place)).found:
            assert find.searched_to
            assert not find.note
            place, steps = find.searched_to, steps + 1

        assert cancelled[0] == FIRST_SLICE_ITEMS
        assert steps > 1
        assert find.item_id == str(value_of("SELECT max(id) FROM agent_messages"))

    def test_an_item_that_takes_too_long_alone_is_passed_over_and_named(
        self, store: SessionStore, cancelled: list[int]
    ) -> None:
        add_items("s", "needless 60", "needle")

        find = find_in_session(store, "s", ParsedSearch.parse("needle"))

        assert cancelled == [FIRST_SLICE_ITEMS, 1]
        assert find.note == "One item was skipped because searching it takes too long."
        assert find.searched_to
        assert find_in_session(store, "s", ParsedSearch.parse("needle"), after=find.searched_to).found

    def test_a_search_in_all_sessions_comes_past_large_items_too(
        self, store: SessionStore, cancelled: list[int]
    ) -> None:
        add_items("oldest", "needle")
        add_items("endless", "needle", "needless 60")
        for number in range(3):
            add_items(f"large {number}", *["needless 0.05"] * 2)
        search = remember_search(person("support"), "needle")

        steps = [matching_sessions(search, SessionRecord.objects.on_record())]
        while steps[-1].older:
            assert len(steps) < 100
            steps.append(matching_sessions(search, SessionRecord.objects.on_record(), cursor=steps[-1].older))

        assert cancelled[0] == sessions.QUICK_LOOK_ITEMS
        assert steps[0].is_stopped
        assert [match.record.session_id for step in steps for match in step.found] == ["endless", "oldest"]
        assert [note for step in steps for note in step.notes] == [
            "One item was skipped because searching it takes too long."
        ]

    def test_a_rare_word_whose_items_take_too_long_is_looked_for_item_by_item(
        self, store: SessionStore, cancelled: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(in_session, "is_rare", lambda store, parsed, *, seconds: True)
        add_items("s", *["needless 0.1"] * 10, "needle")
        find = find_in_session(store, "s", ParsedSearch.parse("needle"))
        assert find.searched_to

    def test_what_was_limited_for_a_search_is_not_limited_afterwards(self, store: SessionStore) -> None:
        before = value_of("SHOW statement_timeout")
        add_items("s", "needle")
        with transaction.atomic():
            assert found("needle") == ["s"]
            assert value_of("SHOW statement_timeout") == before


def test_rare_and_common_are_told_apart_by_the_statistics(kept_main_store: SessionStore) -> None:
    store = kept_main_store
    run_sql(
        """INSERT INTO agent_sessions VALUES ('s');
           INSERT INTO agent_messages (session_id, message_data)
           SELECT 's', '{"content": "the word_' || n % 400 || '"}' FROM generate_series(1, 2000) AS n"""
    )
    assert not is_rare(store, ParsedSearch.parse("the"), seconds=3), "without an index nothing is"
    SqlWordIndex(store).create()

    assert is_rare(store, ParsedSearch.parse("399"), seconds=3)
    assert is_rare(store, ParsedSearch.parse("xyzzy"), seconds=3)
    assert not is_rare(store, ParsedSearch.parse("the"), seconds=3)
    # What is left out does not make the rest rarer for the index.
    assert not is_rare(store, ParsedSearch.parse("the -399"), seconds=3)


def test_the_index_is_used_for_words_in_order_too(kept_main_store: SessionStore) -> None:
    store = kept_main_store
    SqlWordIndex(store).create()
    add_items("a", "refund of a card")
    with CaptureQueriesContext(connection) as queries:
        assert SqlWordIndex(store).newest_matches(
            ParsedSearch.parse('"of a card" -tea'), SessionRecord.objects.on_record(), limit=3, seconds=3
        )
    [asked] = [question_in(query["sql"]) for query in queries if "WITH named" in query["sql"]]

    run_sql("SET enable_seqscan = off; SET enable_indexscan = off")
    try:
        plan = fetch(f"EXPLAIN {asked}")
    finally:
        run_sql("RESET enable_seqscan; RESET enable_indexscan")

    [condition] = [line for (line,) in plan if "Index Cond" in line and "@@" in line]
    assert "'card'" in condition
    assert "<->" not in condition, "asked for the order, an index has every hit read again"


class TestWithinASession:
    def steps(self, store: SessionStore, typed: str, **start: Position | None) -> list[str]:
        """What was said at each step through the session, in one direction."""
        parsed = ParsedSearch.parse(typed)
        [direction] = start
        said: list[str] = []
        place = start[direction]
        while True:
            find = (
                find_in_session(store, "s", parsed, after=place)
                if direction == "after"
                else find_in_session(store, "s", parsed, before=place)
            )
            if find.found is None:
                assert find.searched_to is None
                return said
            texts = backend_for(store).search.beginnings([("s", find.item_id)])
            said += [str(snippet(text, parsed.visible_pattern())) for text in texts.values()]
            place = find.found.position

    def test_next_and_previous_lead_through_every_match(self, store: SessionStore, ways: Iterator[str]) -> None:
        add_items("other", "needle of another session")
        add_items("s", "needle 1", "hay", "needle 2")
        add_items("s", "hay", "needle 3")

        for way in ways:
            forward = self.steps(store, "needle", after=None)
            assert forward == ["needle 1", "needle 2", "needle 3"], way
            last = find_in_session(store, "s", ParsedSearch.parse("needle"), before=Position(("infinity", 0)))
            assert last.found, way
            assert self.steps(store, "needle", before=last.found.position) == ["needle 2", "needle 1"], way

    def test_nothing_is_found_and_it_says_so(self, store: SessionStore, ways: Iterator[str]) -> None:
        add_items("s", "hay")
        for way in ways:
            for session_id in ("s", "unknown"):
                find = find_in_session(store, session_id, ParsedSearch.parse("needle"))
                assert replace(find, is_from_index=False) == Find(), way

    def test_a_long_session_is_read_in_steps_of_the_time_given(self, store: SessionStore, no_time: None) -> None:
        run_sql(
            """INSERT INTO agent_sessions VALUES ('s');
               INSERT INTO agent_messages (session_id, message_data)
               SELECT 's', '{"content": "hay"}' FROM generate_series(1, 1200);
               INSERT INTO agent_messages (session_id, message_data) VALUES ('s', '{"content": "needle"}')"""
        )
        place, steps = None, 0
        while True:
            find = find_in_session(store, "s", ParsedSearch.parse("needle"), after=place)
            if find.found:
                break
            place, steps = find.searched_to, steps + 1
            assert place

        assert steps == 1200 // FIRST_SLICE_ITEMS
        assert find.item_id == str(value_of("SELECT max(id) FROM agent_messages"))
