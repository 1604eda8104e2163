"""The contracts of stores where something is wrong with one: each of their safety tests finds what it is for."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from cryptography.fernet import MultiFernet
from django.db import transaction

from sessions_app.encryption import SessionSeals
from sessions_app.encryption.envelope_text import DecryptedItem
from sessions_app.encryption.purging import Purge
from sessions_app.encryption.rotation import Rotation, with_token
from sessions_app.items import Position, StoredItem
from sessions_app.redaction import occurrences, sessions
from sessions_app.stores import backend_for, rewriting
from sessions_app.stores.base import Deleted
from sessions_app.stores.rewriting import Changes
from sessions_app.stores.sqlite import backend, statements
from sessions_app.stores.sqlite import file as sqlite_file
from sessions_app.stores.sqlite.backend import SqliteBackend
from sessions_app.timeline.decode import decode
from tests.stores.contract import StoreContract, in_agent
from tests.stores.sealed_contract import SealedContract
from tests.stores.sqlite_files import SqliteAgent
from tests.waiting import PATIENCE_SECONDS

Contract = Callable[[str, str], None]

ERASED = "test_what_an_agent_said_before_an_erasure_is_gone_and_what_it_says_after_it_is_whole"
IN_STEPS = "a_step_deletes_the_newest_items_and_reports_how_many_are_left"
CONTINUED = "an_erasure_that_ended_between_two_steps_is_continued"
BETWEEN = "an_agent_that_writes_between_two_steps_is_refused_or_erased_with_the_rest"
UNREAD = "a_step_does_not_read_the_texts"
REDACTED = "test_a_session_is_redacted_while_its_agent_goes_on_in_it_and_nothing_is_lost"
READ = "what_was_sealed_is_read_with_the_key_and_only_with_it"
STATES = "each_seal_is_told_as_what_it_is"
ANEW = "test_a_store_is_sealed_anew_and_nothing_of_the_old_seals_is_left"
ANEW_MEANWHILE = "test_what_an_agent_says_while_its_store_is_sealed_anew_stays"
PURGED = "test_what_agents_no_longer_read_is_removed_and_nothing_else"
REWORDED = "a_text_is_redacted_under_its_seal_and_the_agent_goes_on"
CLOSED = "what_no_key_opens_is_left_as_it_is_and_named"
COMPARED = "an_envelope_is_only_replaced_by_who_has_read_it"


class Contracts(StoreContract, SealedContract):
    """Both, to be asked for one test."""

    __test__ = False


@pytest.fixture
def agent(db: None, tmp_path: Path) -> Iterator[SqliteAgent]:
    agent = SqliteAgent(tmp_path)
    yield agent
    agent.close()


@pytest.fixture
def found(agent: SqliteAgent, settings: Any) -> Contract:
    """Takes the name of a test of the contracts, which has to fail, and what it has to say then."""

    def failing(name: str, complaint: str) -> None:
        contracts = Contracts()
        is_sealed = not hasattr(StoreContract, name)
        given = [contracts.sealing(agent, settings)] if is_sealed else [agent, backend_for(agent.store)]
        with pytest.raises((AssertionError, pytest.fail.Exception), match=complaint):
            getattr(contracts, name)(*given)

    return failing


class WritesTheSessionBack(rewriting.BackendRewriter):
    """As one would do it with the SDK alone: reads the items, clears the session and adds them again.

    The agent goes on in between, as long as it does.
    """

    agent: SqliteAgent

    def change_items(self, session_id: str, after: Position | None, **given: Any) -> Position | None:
        items = list(self.backend.every_item(session_id))
        changes: Changes = given["decide"](items)
        if not changes:
            return None
        given["before_writing"](changes)
        # In the one that is called so nobody goes on.
        until = monotonic() + (0 if session_id == "other" else PATIENCE_SECONDS)
        while monotonic() < until and len(self.agent.stored(session_id)) == len(items):
            sleep(0.01)
        self.agent.ask("DELETE FROM agent_messages WHERE session_id = ?", session_id)
        texts = [changes.texts.get(item.id, item.raw) for item in items]
        in_agent(self.agent.session(session_id).add_items([json.loads(text) for text in texts]))
        self.agent.ask("PRAGMA wal_checkpoint(TRUNCATE)")
        return None


class TestErasing:
    def test_a_turn_that_was_forgotten(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(statements, "COUNT", "SELECT 0")
        monkeypatch.setattr(
            SqliteBackend,
            "_delete_newest",
            lambda self, connection, wanted, present: self._change(
                connection,
                "DELETE FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) AND id >"
                " (SELECT min(id) + 2 FROM {messages} WHERE session_id = CAST(:session_id AS TEXT))",
                wanted,
            ),
        )
        found(ERASED, "said before the erasure is still there")

    def test_the_oldest_items_first(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(statements, "DELETE_NEWEST", statements.DELETE_NEWEST.replace("DESC", "ASC"))
        found(IN_STEPS, "an output lost its call")

    def test_more_items_than_asked_for(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(statements, "DELETE_NEWEST", statements.DELETE_NEWEST.replace(":limit", ":limit + 1"))
        found(IN_STEPS, "count=4, left=3")

    def test_a_session_that_is_not_marked_before_the_last_step(
        self, found: Contract, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(backend, "erasing", lambda store, session_id: transaction.atomic())
        found(IN_STEPS, "not marked")

    def test_a_session_that_another_process_cannot_continue(
        self, found: Contract, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The number of items is known to the process that began."""
        delete_some = SqliteBackend.delete_some
        known: set[int] = set()

        def once(self: SqliteBackend, session_id: str, *, at_most: int) -> Deleted:
            if known and id(self) not in known:
                return Deleted(0, 0)
            known.add(id(self))
            return delete_some(self, session_id, at_most=at_most)

        monkeypatch.setattr(SqliteBackend, "delete_some", once)
        found(CONTINUED, "assert 0 == 3")

    def test_a_last_step_that_leaves_what_was_written_between_two(
        self, found: Contract, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(statements, "COUNT", statements.COUNT.replace("{shown}", "AND id <= 5"))
        monkeypatch.setattr(
            statements, "DELETE_NEWEST", statements.DELETE_NEWEST.replace("ORDER BY", "AND id <= 5 ORDER BY")
        )
        found(BETWEEN, "agents.db")

    def test_texts_that_are_read_to_be_deleted(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        delete_newest = SqliteBackend._delete_newest

        def reading(self: SqliteBackend, connection: sqlite3.Connection, *arguments: Any) -> int:
            self._rows(connection, "SELECT message_data FROM {messages}")
            return delete_newest(self, connection, *arguments)

        monkeypatch.setattr(SqliteBackend, "_delete_newest", reading)
        found(UNREAD, "message_data")

    def test_one_that_goes_on_after_it_has_answered(
        self, agent: SqliteAgent, found: Contract, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        erase = SqliteBackend.erase_session

        def for_good(self: SqliteBackend, session_id: str) -> int:
            count = erase(self, session_id)
            agent.ask(
                "CREATE TRIGGER IF NOT EXISTS late AFTER INSERT ON agent_messages"
                " WHEN NEW.message_data LIKE '%call_id%' BEGIN DELETE FROM agent_messages WHERE id = NEW.id; END"
            )
            return count

        monkeypatch.setattr(SqliteBackend, "erase_session", for_good)
        found(ERASED, "was taken with it")

    def test_text_that_stays_in_the_log_of_the_file(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite_file, "empty_log", lambda connection, path: None)
        found(ERASED, "agents.db-wal")


class TestRewriting:
    @pytest.mark.parametrize("name", [REDACTED, ANEW_MEANWHILE])
    def test_a_session_that_is_written_back_as_it_was_read(
        self, name: str, agent: SqliteAgent, found: Contract, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(WritesTheSessionBack, "agent", agent, raising=False)
        monkeypatch.setattr(rewriting, "BackendRewriter", WritesTheSessionBack)
        found(name, "At index|Right contains")

    def test_a_change_that_compares_nothing(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SqliteBackend, "_expect", lambda self, connection, wanted, expected: None)
        found(COMPARED, "DID NOT RAISE")

    @pytest.mark.parametrize("name", [ANEW, PURGED, REWORDED])
    def test_seals_that_stay_in_the_log_of_the_file(
        self, name: str, found: Contract, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_file, "empty_log", lambda connection, path: None)
        found(name, "more item")


class TestSeals:
    def test_a_reader_that_opens_without_being_asked_to(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        examined = SessionSeals.examined

        def opening(self: SessionSeals, items: Sequence[StoredItem], **given: Any) -> list[StoredItem]:
            return examined(self, items, **{**given, "opens": True})

        monkeypatch.setattr(SessionSeals, "examined", opening)
        found(READ, "__enc__")

    def test_a_broken_seal_that_passes_for_a_wrong_key(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sessions_app.encryption.sealing.is_sound", lambda item: False)
        found(STATES, "WRONG_KEY.*TAMPERED")

    def test_a_new_seal_with_a_new_time(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        """Agents would read again what they read no more."""

        def resealed(self: Rotation, item: StoredItem) -> str:
            entry = decode(item)
            token = str(entry.fields["payload"]).encode()
            return with_token(item, entry, self.new.encrypt(MultiFernet([self.old]).decrypt(token)))

        monkeypatch.setattr(Rotation, "resealed", resealed)
        found(ANEW, "long ago")

    def test_a_purge_that_takes_all(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Purge, "_is_old", lambda self, turn: True)
        found(PURGED, r"== \(2, 2\)")

    def test_words_that_are_put_back_in_the_clear(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(DecryptedItem, "stored_with", lambda self, text: text)
        found(REWORDED, "My key is")

    def test_an_envelope_that_passes_for_a_text(self, found: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (occurrences, sessions):
            monkeypatch.setattr(module, "decrypt_for_rewrite", lambda item, seals: DecryptedItem(item, item.raw))
        found(CLOSED, "sealed")
