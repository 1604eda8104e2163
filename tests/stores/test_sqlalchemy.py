"""The main store, on tables as the SDK creates them and on tables that somebody made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from psycopg import sql

from memadmin.counting import COUNT_CAP
from sessions_app import registry
from sessions_app.items import Position
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.deletion_guards import DeletionRefused
from sessions_app.stores import backend_for
from sessions_app.stores.base import (
    ITEM_HEAD_BYTES,
    ITEM_TAIL_BYTES,
    WHOLE_ITEM_BYTES,
    Backend,
    Deleted,
    SessionBusy,
    StoreUnavailable,
    UnknownItem,
)
from sessions_app.stores.sqlalchemy.backend import SQLAlchemyBackend
from tests.agents import (
    add_items,
    assistant,
    attach_main_store,
    attached_store,
    in_sdk,
    make_agent_tables,
    question_in,
    run_sql,
    second_connection,
    user,
    value_of,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

MADE_BY_HAND = """
CREATE SCHEMA "Agents";
CREATE TABLE "Agents"."Sessions of 100%" (
    session_id varchar(12000) COLLATE "C" PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE "Agents"."Messages" (
    id bigint GENERATED ALWAYS AS IDENTITY (START WITH 5000000000) PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL REFERENCES "Agents"."Sessions of 100%" ON DELETE CASCADE,
    message_data json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    tenant text
)
"""


@pytest.fixture(params=["made by the SDK", "made by hand"])
def store(request: pytest.FixtureRequest, agent_tables: None) -> SessionStore:
    if request.param == "made by the SDK":
        return attach_main_store()
    run_sql(MADE_BY_HAND)
    return attached_store("hand", sessions_table="Agents.Sessions of 100%", messages_table="Agents.Messages")


@pytest.fixture
def backend(store: SessionStore) -> Backend:
    return backend_for(store)


def quoted(name: str) -> str:
    return ".".join(f'"{part}"' for part in name.split("."))


def write(store: SessionStore, session_id: str, texts: Sequence[str], *, at: datetime = NOON, apart: int = 1) -> None:
    """Rows as an agent leaves them, `apart` seconds from each other; 0 makes them one turn."""
    write_each(store, {session_id: texts}, at=at, apart=apart)


def write_each(store: SessionStore, texts: Mapping[str, Sequence[str]], *, at: datetime = NOON, apart: int = 1) -> None:
    """The same for several sessions, by their ids."""
    # The tables' names may hold a percent sign, so nothing here is a parameter of the driver's.
    sessions, messages = quoted(store.sessions_table), quoted(store.messages_table)
    statements = ["SET TIME ZONE 'UTC'"]
    for session_id, of_session in texts.items():
        statements.append(f"INSERT INTO {sessions} (session_id) VALUES ($${session_id}$$) ON CONFLICT DO NOTHING")
        for number, text in enumerate(of_session):
            instant = (at + timedelta(seconds=number * apart)).strftime("%Y-%m-%d %H:%M:%S.%f")
            statements.append(
                f"INSERT INTO {messages} (session_id, message_data, created_at)"
                f" VALUES ($${session_id}$$, $item${text}$item$, '{instant}')"
            )
    with second_connection() as agent:
        agent.execute("; ".join(statements))
        agent.commit()


def said(number: int) -> str:
    return json.dumps(user(f"item {number}"))


def texts_of(items: Sequence[Any]) -> list[str]:
    return [json.loads(item.raw)["content"] for item in items]


class TestPages:
    def test_pages(self, store: SessionStore, backend: Backend) -> None:
        """Each check has sessions of its own."""
        self.a_long_session_is_read_page_by_page_in_both_directions(store, backend)
        self.a_page_can_begin_at_a_position_or_have_an_item_in_its_middle(store, backend)
        self.a_page_at_an_item_that_the_agent_took_back_begins_with_the_next(store, backend)
        self.a_page_can_begin_at_an_instant(store, backend)
        self.items_of_one_turn_have_one_time_and_keep_their_order(store, backend)
        self.the_order_is_the_agents_even_where_a_later_row_has_an_earlier_time(store, backend)
        self.an_unknown_session_has_an_empty_page(store, backend)
        self.a_position_survives_its_trip_through_a_cursor(store, backend)
        self.a_page_is_one_query_whatever_is_on_it(store, backend)

    def a_long_session_is_read_page_by_page_in_both_directions(self, store: SessionStore, backend: Backend) -> None:
        write(store, "long 1", [said(number) for number in range(10)])

        first = backend.first_page("long 1", 4)
        assert texts_of(first.items) == ["item 0", "item 1", "item 2", "item 3"]
        assert (first.has_earlier, first.has_later) == (False, True)

        second = backend.page_after("long 1", first.items[-1].position, 4)
        assert texts_of(second.items) == ["item 4", "item 5", "item 6", "item 7"]
        assert (second.has_earlier, second.has_later) == (True, True)

        last = backend.last_page("long 1", 4)
        assert texts_of(last.items) == ["item 6", "item 7", "item 8", "item 9"]
        assert (last.has_earlier, last.has_later) == (True, False)

        back = backend.page_before("long 1", second.items[0].position, 4)
        assert back == first

    def a_page_can_begin_at_a_position_or_have_an_item_in_its_middle(
        self, store: SessionStore, backend: Backend
    ) -> None:
        write(store, "long 2", [said(number) for number in range(10)])
        items = backend.first_page("long 2", 10).items

        assert backend.page_at("long 2", items[3].position, 2).items == items[3:5]
        around = backend.page_around("long 2", items[5].id, 4)
        assert around.items == items[3:7]
        assert (around.has_earlier, around.has_later) == (True, True)
        assert backend.page_around("long 2", items[0].id, 4).items == items[0:2]

    def a_page_at_an_item_that_the_agent_took_back_begins_with_the_next(
        self, store: SessionStore, backend: Backend
    ) -> None:
        write(store, "long 3", [said(number) for number in range(4)])
        items = backend.first_page("long 3", 4).items
        run_sql(f"DELETE FROM {quoted(store.messages_table)} WHERE id = {items[1].id}")

        assert backend.page_at("long 3", items[1].position, 4).items == items[2:]

    def a_page_can_begin_at_an_instant(self, store: SessionStore, backend: Backend) -> None:
        write(store, "long 4", [said(number) for number in range(10)], apart=60)

        page = backend.page_from("long 4", NOON + timedelta(minutes=7, seconds=30), 10)
        assert texts_of(page.items) == ["item 8", "item 9"]
        assert page.has_earlier
        assert texts_of(backend.page_from("long 4", NOON + timedelta(minutes=8), 10).items) == ["item 8", "item 9"]
        assert texts_of(backend.page_from("long 4", datetime(1, 1, 1, tzinfo=UTC), 2).items) == ["item 0", "item 1"]

        beyond = backend.page_from("long 4", datetime(9999, 12, 31, 23, tzinfo=UTC), 2)
        assert texts_of(beyond.items) == ["item 8", "item 9"]

    def items_of_one_turn_have_one_time_and_keep_their_order(self, store: SessionStore, backend: Backend) -> None:
        write(store, "turn 5", [said(number) for number in range(6)], apart=0)

        whole = backend.first_page("turn 5", 6).items
        assert {item.written_at for item in whole} == {NOON}
        halves = [backend.first_page("turn 5", 3), backend.page_after("turn 5", whole[2].position, 3)]
        assert [*halves[0].items, *halves[1].items] == whole
        assert sorted(whole, key=lambda item: item.position) == whole

    def the_order_is_the_agents_even_where_a_later_row_has_an_earlier_time(
        self, store: SessionStore, backend: Backend
    ) -> None:
        write(store, "mixed 6", [said(1)], at=NOON)
        write(store, "mixed 6", [said(0)], at=NOON - timedelta(hours=9))

        assert texts_of(backend.first_page("mixed 6", 5).items) == ["item 0", "item 1"]
        assert texts_of(backend.last_page("mixed 6", 1).items) == ["item 1"]

    def an_unknown_session_has_an_empty_page(self, store: SessionStore, backend: Backend) -> None:
        page = backend.first_page("nobody", 10)
        assert (page.items, page.has_earlier, page.has_later) == ([], False, False)
        assert backend.page_from("nobody", NOON, 10).items == []
        assert list(backend.every_item("nobody")) == []

    def a_position_survives_its_trip_through_a_cursor(self, store: SessionStore, backend: Backend) -> None:
        write(store, "long 8", [said(number) for number in range(3)])
        position = backend.first_page("long 8", 1).items[0].position
        assert Position.parse(str(position)) == position

    def a_page_is_one_query_whatever_is_on_it(self, store: SessionStore, backend: Backend) -> None:
        write(store, "short", [said(0)])
        write(store, "long 9", [said(number) for number in range(200)])
        for session_id in ("short", "long 9"):
            position = backend.first_page(session_id, 1).items[0].position
            with CaptureQueriesContext(
                connection,
            ) as queries:
                backend.first_page(session_id, 100)
                backend.last_page(session_id, 100)
                backend.page_after(session_id, position, 100)
            assert len(queries) == 3


class TestItems:
    def test_items(self, store: SessionStore, backend: Backend) -> None:
        """Each check has sessions of its own."""
        self.a_giant_item_is_read_at_both_ends_on_a_page_and_whole_by_itself(store, backend)
        self.an_item_at_the_limit_is_whole(store, backend)
        self.what_is_no_item_id_is_an_unknown_item(store, backend)
        self.an_item_of_another_session_is_unknown(store, backend)
        self.every_item_reads_on_while_the_agent_takes_items_back(store, backend)
        self.counts_stop_at_the_cap(store, backend)

    def a_giant_item_is_read_at_both_ends_on_a_page_and_whole_by_itself(
        self, store: SessionStore, backend: Backend
    ) -> None:
        raw = json.dumps(user("ü" * WHOLE_ITEM_BYTES), ensure_ascii=False)
        write(store, "giant 10", [raw, said(1)])

        giant, ordinary = backend.first_page("giant 10", 2).items
        assert giant.byte_count == len(raw.encode())
        assert (giant.raw, giant.raw_tail) == (raw[:ITEM_HEAD_BYTES], raw[-ITEM_TAIL_BYTES:])
        assert not giant.is_whole
        assert ordinary.is_whole

        whole = backend.item("giant 10", giant.id)
        assert whole.raw == raw
        assert whole.is_whole
        assert [item.raw for item in backend.every_item("giant 10")] == [raw, said(1)]

    def an_item_at_the_limit_is_whole(self, store: SessionStore, backend: Backend) -> None:
        raw = json.dumps(user(""))
        raw = json.dumps(user("x" * (WHOLE_ITEM_BYTES - len(raw))))
        write(store, "limit 11", [raw])
        assert backend.first_page("limit 11", 1).items[0].raw == raw

    def what_is_no_item_id_is_an_unknown_item(self, store: SessionStore, backend: Backend) -> None:
        for item_id in ("", "x", "01", " 1", "1_0", "-1", "9" * 30, "1; DROP TABLE agent_messages", "٣", "1\0"):
            with pytest.raises(UnknownItem):
                backend.item("nobody", item_id)
            with pytest.raises(UnknownItem):
                backend.page_around("nobody", item_id, 10)

    def an_item_of_another_session_is_unknown(self, store: SessionStore, backend: Backend) -> None:
        write(store, "mine", [said(0)])
        write(store, "theirs", [said(1)])
        (foreign,) = backend.first_page("theirs", 1).items
        with pytest.raises(UnknownItem):
            backend.item("mine", foreign.id)

    def every_item_reads_on_while_the_agent_takes_items_back(self, store: SessionStore, backend: Backend) -> None:
        write(store, "long 13", [said(number) for number in range(250)])
        items = backend.every_item("long 13")
        head = [next(items) for _ in range(100)]
        run_sql(
            f"DELETE FROM {quoted(store.messages_table)} WHERE id > {head[-1].id} AND id <= {int(head[-1].id) + 20}"
        )
        assert texts_of([*head, *items]) == [f"item {number}" for number in range(250) if not 100 <= number < 120]

    def counts_stop_at_the_cap(self, store: SessionStore, backend: Backend) -> None:
        write(store, "long 14", [said(number) for number in range(7)])
        assert backend.count("long 14") == 7
        assert backend.count("long 14", cap=7) == 7
        assert backend.count("long 14", cap=3) == 4
        assert backend.count("nobody") == 0

    def test_any_session_id_is_one_session(self, store: SessionStore, backend: Backend) -> None:
        ids = ("a/b", "100%", "'; --", "%s", "😀", "Case", "case", " ", "", "x" * 10_000)
        write_each(store, {session_id: [said(0)] for session_id in ids})
        write_each(store, {session_id + "!": [said(1)] for session_id in ids})
        assert SessionRecord.objects.filter(store=store).count() == 2 * len(ids)
        for session_id in ids:
            assert texts_of(backend.first_page(session_id, 5).items) == ["item 0"], session_id
            assert backend.previews([session_id])[session_id].item_count == 1, session_id
            assert backend.erase_session(session_id) == 1, session_id
            assert texts_of(backend.first_page(session_id + "!", 5).items) == ["item 1"], session_id


class TestPreviews:
    def test_previews(self, store: SessionStore, backend: Backend) -> None:
        """Each check has sessions of its own."""
        self.fifty_sessions_take_one_query(store, backend)
        self.a_session_that_is_not_there_says_so_and_an_empty_one_has_no_items(store, backend)
        self.counts_of_long_sessions_are_capped(store, backend)
        self.escapes_that_are_no_text_do_no_harm(store, backend)

    def fifty_sessions_take_one_query(self, store: SessionStore, backend: Backend) -> None:
        hello = json.dumps(assistant("Hello"))
        write_each(store, {f"session {number}": [hello, said(number)] for number in range(50)})
        with CaptureQueriesContext(connection) as queries:
            previews = backend.previews([f"session {number}" for number in range(50)])
        assert len(queries) == 1
        assert {name: preview.first_user_text for name, preview in previews.items()} == {
            f"session {number}": f"item {number}" for number in range(50)
        }
        assert {preview.item_count for preview in previews.values()} == {2}

    def a_session_that_is_not_there_says_so_and_an_empty_one_has_no_items(
        self, store: SessionStore, backend: Backend
    ) -> None:
        write(store, "empty", [])
        previews = backend.previews(["empty", "nobody"])
        assert previews["empty"].item_count == 0
        assert previews["nobody"].item_count is None
        assert backend.previews([]) == {}

    def counts_of_long_sessions_are_capped(self, store: SessionStore, backend: Backend) -> None:
        write(store, "long 17", [])
        messages = quoted(store.messages_table)
        run_sql(
            f"INSERT INTO {messages} (session_id, message_data)"
            f" SELECT 'long 17', '{said(0)}' FROM generate_series(1, {COUNT_CAP + 500})"
        )
        assert backend.previews(["long 17"])["long 17"].item_count == COUNT_CAP + 1

    def escapes_that_are_no_text_do_no_harm(self, store: SessionStore, backend: Backend) -> None:
        write(store, "nul", ['{"content":"a\\u0000b","role":"user"}'])
        write(store, "half", ['{"content":"a\\ud800b","role":"user"}'])
        previews = backend.previews(["nul", "half"])
        for preview in previews.values():
            assert preview.first_user_text[0] + preview.first_user_text[-1] == "ab"
            preview.first_user_text.encode()
            assert "\0" not in preview.first_user_text


class TestErasing:
    def test_an_erased_session_leaves_nothing_but_its_registry_row(self, store: SessionStore, backend: Backend) -> None:
        write(store, "gone", [said(0), said(1)])
        write(store, "kept", [said(2)])

        assert backend.erase_session("gone") == 2

        assert backend.previews(["gone"])["gone"].item_count is None
        assert SessionRecord.objects.get(store=store, session_id="gone").erased_at is not None
        assert SessionRecord.objects.get(store=store, session_id="kept").erased_at is None
        assert backend.count("kept") == 1

    def test_a_session_nobody_ever_saw_can_be_erased_in_advance(self, store: SessionStore, backend: Backend) -> None:
        assert backend.erase_session("unborn") == 0
        assert SessionRecord.objects.get(store=store, session_id="unborn").erased_at is not None

    def test_erasing_twice_keeps_the_first_instant(self, store: SessionStore, backend: Backend) -> None:
        backend.erase_session("gone")
        first = SessionRecord.objects.get(session_id="gone").erased_at
        assert backend.erase_session("gone") == 0
        assert SessionRecord.objects.get(session_id="gone").erased_at == first

    def test_each_step_is_a_transaction_of_its_own(self, store: SessionStore, backend: Backend) -> None:
        write(store, "gone", [said(number) for number in range(5)])
        assert backend.delete_some("gone", at_most=2) == Deleted(2, 3)
        with second_connection() as elsewhere:
            query = f"SELECT count(*) FROM {quoted(store.messages_table)} WHERE session_id = 'gone'"
            assert elsewhere.execute(query).fetchone() == (3,)
            # No lock is left either.
            elsewhere.execute(
                f"SELECT 1 FROM {quoted(store.sessions_table)} WHERE session_id = 'gone' FOR UPDATE NOWAIT"
            )
            elsewhere.rollback()
        assert SessionRecord.objects.get(session_id="gone").erased_at

    def test_whole_sessions_go_in_their_order_as_long_as_they_are_few_enough(
        self, store: SessionStore, backend: Backend
    ) -> None:
        for session_id, size in (("one", 2), ("two", 3), ("three", 9), ("four", 1)):
            write(store, session_id, [said(number) for number in range(size)])
        everything = ["one", "nobody", "two", "three", "four"]
        assert backend.delete_whole(everything, at_most=5) == {"one": 2, "nobody": 0, "two": 3}
        assert backend.count_each(everything) == {"one": 0, "nobody": 0, "two": 0, "three": 9, "four": 1}
        assert backend.delete_whole(["three", "four"], at_most=5) == {}
        marked = SessionRecord.objects.filter(session_id__in=everything, erased_at__isnull=False)
        assert set(marked.values_list("session_id", flat=True)) == {"one", "nobody", "two"}

    def test_whole_sessions_stay_if_their_registry_rows_must(self, store: SessionStore, backend: Backend) -> None:
        for session_id in ("one", "two"):
            write(store, session_id, [said(0)])
        records = SessionRecord.objects.filter(store=store)

        def refuse(session_ids: Sequence[str]) -> None:
            records.filter(session_id__in=session_ids).delete()
            raise DeletionRefused

        with pytest.raises(DeletionRefused):
            backend.delete_whole(["one", "two"], at_most=5, close=refuse)
        assert backend.count_each(["one", "two"]) == {"one": 1, "two": 1}
        assert records.filter(erased_at=None).count() == 2

    def test_whole_sessions_stay_while_an_agent_holds_one(self, store: SessionStore, backend: Backend) -> None:
        for session_id in ("free", "in use"):
            write(store, session_id, [said(0)])
        with second_connection() as writer:
            writer.execute(f"SELECT FROM {quoted(store.sessions_table)} WHERE session_id = 'in use' FOR UPDATE")
            assert backend.delete_whole(["free", "in use"], at_most=5) == {}
            assert backend.count_each(["free", "in use"]) == {"free": 1, "in use": 1}
            assert not SessionRecord.objects.filter(session_id="free", erased_at__isnull=False).exists()
        assert backend.delete_whole(["free", "in use"], at_most=5) == {"free": 1, "in use": 1}

    def test_in_a_transaction_of_the_caller_all_goes_or_nothing(
        self, store: SessionStore, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(store, "gone", [said(number) for number in range(5)])
        monkeypatch.setattr(SQLAlchemyBackend, "erased_at_once", 2)
        with transaction.atomic():
            assert backend.erase_session("gone") == 5
            transaction.set_rollback(True)
        assert backend.count("gone") == 5
        assert not SessionRecord.objects.filter(session_id="gone", erased_at__isnull=False).exists()

    @pytest.mark.parametrize("place", ["DELETE_NEWEST", "COUNT", "DELETE_SESSION"])
    def test_a_step_that_fails_changes_nothing(
        self, store: SessionStore, backend: Backend, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        write(store, "gone", [said(0)])
        with monkeypatch.context() as broken:
            broken.setattr(f"sessions_app.stores.sqlalchemy.backend.{place}", sql.SQL("SELECT 1 FROM not_there"))
            with pytest.raises(StoreUnavailable):
                backend.delete_some("gone", at_most=1)
        assert backend.count("gone") == 1
        assert not SessionRecord.objects.filter(session_id="gone", erased_at__isnull=False).exists()
        assert backend.delete_some("gone", at_most=1) == Deleted(1, 0)

    def test_an_agent_that_holds_the_session_for_long_makes_it_busy(
        self, store: SessionStore, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sessions_app.stores.sqlalchemy.backend.ERASE_PATIENCE", timedelta(0))
        write(store, "busy", [said(0)])
        with second_connection() as agent:
            agent.execute(f"SELECT 1 FROM {quoted(store.sessions_table)} WHERE session_id = 'busy' FOR UPDATE")
            with pytest.raises(SessionBusy, match="Agents are using this session"):
                backend.erase_session("busy")
            agent.rollback()
        assert SessionRecord.objects.get(session_id="busy").erased_at is None
        assert backend.erase_session("busy") == 1


class TestUnavailable:
    def test_missing_tables_are_said_in_a_sentence(self, transactional_db: None) -> None:
        lost = SessionStore(name="lost", sessions_table="lost.sessions", messages_table="lost.messages")
        backend = backend_for(lost)
        with pytest.raises(StoreUnavailable, match=r"The tables lost\.sessions and lost\.messages are not in"):
            backend.first_page("x", 1)
        with pytest.raises(StoreUnavailable):
            backend.previews(["x"])
        assert registry.health(lost).state == "down"

    def test_a_right_that_is_missing_is_named(self, kept_main_store: SessionStore) -> None:
        backend = backend_for(kept_main_store)
        run_sql("CREATE ROLE console_of_others; GRANT SELECT ON agent_sessions TO console_of_others")
        run_sql("SET ROLE console_of_others")
        try:
            with pytest.raises(StoreUnavailable, match="permission denied for table agent_messages"):
                backend.last_page("x", 1)
        finally:
            run_sql("RESET ROLE")
            run_sql("DROP OWNED BY console_of_others; DROP ROLE console_of_others")

    def test_a_database_that_is_away_is_said_in_a_sentence(
        self, kept_main_store: SessionStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = kept_main_store
        backend = backend_for(store)
        connection.close()
        with monkeypatch.context() as away:
            away.setattr(connection, "get_connection_params", lambda: {"host": "/nowhere", "dbname": "none"})
            with pytest.raises(StoreUnavailable, match="is not responding"):
                backend.last_page("x", 1)
            health = registry.health(store)
        assert health.state == "down"
        assert [problem.sentence for problem in health.problems] == [
            "The database of the store main is not responding."
        ]


class TestTimes:
    def test_times_of_a_writer_in_tokyo_are_shown_in_utc(self, agent_tables: None) -> None:
        make_agent_tables()
        before = datetime.now(UTC)
        add_items("tokyo", "早上好", timezone="Asia/Tokyo")
        store = SessionStore.objects.create(name="main", writer_timezone="Asia/Tokyo")

        (item,) = backend_for(store).first_page("tokyo", 1).items
        assert item.written_at is not None
        assert before <= item.written_at <= datetime.now(UTC)
        assert backend_for(store).page_from("tokyo", before, 5).items == [item]
        assert not backend_for(store).page_from("tokyo", before, 5).has_earlier

    def test_an_instant_that_python_cannot_hold_is_left_out(self, kept_main_store: SessionStore) -> None:
        store = kept_main_store
        write(store, "odd", [said(0), said(1), said(2)])
        run_sql("UPDATE agent_messages SET created_at = 'infinity' WHERE message_data LIKE '%item 0%'")
        run_sql("UPDATE agent_messages SET created_at = '-infinity' WHERE message_data LIKE '%item 2%'")

        page = backend_for(store).first_page("odd", 5)
        assert texts_of(page.items) == ["item 2", "item 1", "item 0"]
        assert [item.written_at for item in page.items] == [None, NOON + timedelta(seconds=1), None]
        assert texts_of(backend_for(store).page_after("odd", page.items[0].position, 5).items) == ["item 1", "item 0"]
        assert texts_of(backend_for(store).page_before("odd", page.items[2].position, 5).items) == ["item 2", "item 1"]


def test_what_the_sdk_reads_is_what_a_page_shows(kept_main_store: SessionStore) -> None:
    """Items of several turns, with an undone one, through the SDK's own class."""
    store = kept_main_store
    add_items("talk", "one", assistant("two"))
    add_items("talk", "three")
    add_items("talk", "four é 😀")
    in_sdk(lambda tables: tables.session("talk").pop_item())
    add_items("talk", "five")

    shown = [json.loads(item.raw) for item in backend_for(store).first_page("talk", 10).items]
    assert shown == in_sdk(lambda tables: tables.session("talk").get_items())
    assert len({item.written_at for item in backend_for(store).first_page("talk", 10).items}) == 3


def test_pages_of_a_long_session_run_along_the_sdks_own_index(kept_main_store: SessionStore) -> None:
    """Whatever place is asked for, a page reads the same few blocks of the database."""
    store = kept_main_store
    run_sql("INSERT INTO agent_sessions (session_id) VALUES ('long'), ('other')")
    run_sql(
        """
        INSERT INTO agent_messages (session_id, message_data, created_at)
        SELECT CASE WHEN n % 10 = 0 THEN 'other' ELSE 'long' END, json_build_object('role', 'user', 'content', n),
               timestamp '2026-01-01' + (n / 4) * interval '1 second'
        FROM generate_series(1, 30000) AS n
        """
    )
    run_sql("ANALYZE agent_messages")
    backend = backend_for(store)
    middle = backend.page_from("long", datetime(2026, 1, 1, 1, tzinfo=UTC), 1).items[0].position

    blocks = {
        "head": blocks_of(lambda: backend.first_page("long", 100)),
        "middle": blocks_of(lambda: backend.page_after("long", middle, 100)),
        "before the middle": blocks_of(lambda: backend.page_before("long", middle, 100)),
        "tail": blocks_of(lambda: backend.last_page("long", 100)),
    }
    assert max(blocks.values()) < 60, blocks
    assert max(blocks.values()) - min(blocks.values()) < 20, blocks


def blocks_of(ask: Any) -> int:
    """How many blocks the one query reads that `ask` sends; every scan of it must be on the SDK's index."""
    with CaptureQueriesContext(connection) as queries:
        ask()
    (query,) = queries.captured_queries
    plan = value_of(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {question_in(query['sql'])}")[0]["Plan"]
    scans = list(scans_in(plan))
    assert {scan.get("Index Name") for scan in scans} == {"idx_agent_messages_session_time"}, scans
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def scans_in(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "Scan" in node["Node Type"] and node["Node Type"] != "Subquery Scan":
        yield node
    for inner in node.get("Plans", []):
        yield from scans_in(inner)
