"""Files of the SDK's AdvancedSQLiteSession."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agents.extensions.memory import AdvancedSQLiteSession

from sessions_app import registry
from sessions_app.models import SessionStore
from sessions_app.stores.base import Branch, TurnUsage, UnsupportedOperation
from sessions_app.stores.kinds import branching
from sessions_app.stores.sqlite import statements
from tests.agents import assistant, user
from tests.stores.contract import SECRET, in_agent
from tests.stores.sealed_contract import SealedContract
from tests.stores.sqlite_files import SqliteAgent, SqliteContract

pytestmark = pytest.mark.slow


class AdvancedAgent(SqliteAgent):
    kind = "advanced_sqlite"
    # The number that tells running agents to begin anew stays, under the session's id.
    id_stays_in = ("agents.db",)

    def session(self, session_id: str) -> AdvancedSQLiteSession:
        if session_id not in self.sessions:
            self.sessions[session_id] = AdvancedSQLiteSession(
                session_id=session_id, db_path=self.path, create_tables=True
            )
        session: AdvancedSQLiteSession = self.sessions[session_id]
        return session

    def branch(self, session_id: str, turn: int, name: str) -> None:
        in_agent(self.session(session_id).create_branch_from_turn(turn, name))

    def names(self, table: str, column: str) -> set[Any]:
        return {value for (value,) in self.ask(f"SELECT DISTINCT {column} FROM {table}")}


class TestAdvancedSqlite(SqliteContract, SealedContract):
    agent_class = AdvancedAgent


@pytest.fixture
def agent(db: None, tmp_path: Path) -> Iterator[AdvancedAgent]:
    """A session that went another way from its second turn on, and from there a third one."""
    agent = AdvancedAgent(tmp_path)
    agent.add("talk", user("one"), assistant("1"))
    agent.add("talk", user("two"), assistant("2"))
    agent.add("talk", user("three"), assistant("3"))
    agent.branch("talk", 2, "other way")
    agent.add("talk", user(f"two, but {SECRET}"), assistant("2b"))
    agent.branch("talk", 2, f"after {SECRET}")
    agent.add("talk", user("two, and last"))
    yield agent
    agent.close()


def branches(store: SessionStore) -> Sequence[Branch]:
    backend = branching(store)
    assert backend
    return backend.branches("talk")


class TestBranches:
    def test_each_branch_shows_what_the_sdk_reads_on_it(self, agent: AdvancedAgent) -> None:
        backend = branching(agent.store)
        assert backend
        assert [branch.name for branch in branches(agent.store)] == ["main", "other way", f"after {SECRET}"]
        for branch in branches(agent.store):
            in_agent(agent.session("talk").switch_to_branch(branch.name))
            on_it = backend.on_branch(branch)
            shown = list(on_it.every_item("talk"))
            texts = [item.raw for item in shown]
            assert texts == [item.raw for item in on_it.first_page("talk", 50).items]
            read = agent.read("talk")
            assert len(read) == len(shown) == branch.item_count == on_it.count("talk")
            assert [text.count("content") for text in texts] == [1] * len(read)
            assert [item["content"] for item in read] == contents_of(texts)

    def test_pages_of_a_branch_leave_out_the_items_of_others(self, agent: AdvancedAgent) -> None:
        backend = branching(agent.store)
        assert backend
        other = backend.on_branch(branches(agent.store)[1])
        first = other.first_page("talk", 3)
        assert contents_of([item.raw for item in first.items]) == ["one", "1", f"two, but {SECRET}"]
        assert first.has_later
        rest = other.page_after("talk", first.items[-1].position, 3)
        assert contents_of([item.raw for item in rest.items]) == ["2b"]
        assert (rest.has_earlier, rest.has_later) == (True, False)
        assert backend.count("talk") == 9, "an item that branches share is stored once"

    def test_a_session_without_branches_has_one(self, agent: AdvancedAgent) -> None:
        backend = branching(agent.store)
        assert backend
        agent.add("plain", user("one"))
        (main,) = backend.branches("plain")
        assert (main.name, main.item_count, main.turn_count) == ("main", 1, 1)
        assert backend.branches("nobody") == []

    def test_a_branch_itself_is_only_read(self, agent: AdvancedAgent) -> None:
        backend: Any = branching(agent.store)
        other = backend.on_branch(branches(agent.store)[1])
        item = other.first_page("talk", 1).items[0]
        changes: list[Callable[[], object]] = [
            lambda: other.erase_session("talk"),
            lambda: other.replace_item("talk", item.id, "{}", expected=item.raw),
            lambda: other.delete_items("talk", [item]),
        ]
        for change in changes:
            with pytest.raises(UnsupportedOperation):
                change()

    def test_usage_is_told_by_turn(self, agent: AdvancedAgent) -> None:
        backend = branching(agent.store)
        assert backend
        agent.ask(
            "INSERT INTO turn_usage (session_id, branch_id, user_turn_number, requests, input_tokens, output_tokens,"
            " total_tokens) VALUES ('talk', 'main', 1, 2, 300, 40, 340), ('talk', 'main', 2, 1, NULL, NULL, 10)"
        )
        main = branches(agent.store)[0]
        assert backend.usage("talk", main) == [TurnUsage(1, 2, 300, 40, 340), TurnUsage(2, 1, 0, 0, 10)]


class TestErasing:
    def test_nothing_of_any_branch_is_left_in_any_table(self, agent: AdvancedAgent) -> None:
        backend = branching(agent.store)
        assert backend
        assert agent.leftovers(SECRET)
        assert backend.erase_session("talk") == 9
        assert agent.leftovers(SECRET) == []
        for table in ("agent_messages", "agent_sessions", "message_structure", "turn_usage", "branch_reservations"):
            assert "talk" not in agent.names(table, "session_id"), table

    def test_an_agent_on_a_branch_goes_on_in_main(self, agent: AdvancedAgent) -> None:
        backend = branching(agent.store)
        assert backend
        backend.erase_session("talk")
        agent.add("talk", user("again"))
        assert agent.names("message_structure", "branch_id") == {"main"}
        assert agent.read("talk") == [user("again")]

    def test_without_the_new_generation_it_writes_into_a_branch_that_is_gone(
        self, agent: AdvancedAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(statements, "BEGIN_ANEW", "SELECT :session_id")
        backend = branching(agent.store)
        assert backend
        backend.erase_session("talk")
        agent.add("talk", user("again"))
        assert "main" not in agent.names("message_structure", "branch_id")

    def test_an_item_goes_from_every_branch_that_shares_it(self, agent: AdvancedAgent) -> None:
        backend = branching(agent.store)
        assert backend
        shared = backend.first_page("talk", 2).items
        assert backend.delete_items("talk", shared) == 2
        for branch in branches(agent.store):
            in_agent(agent.session("talk").switch_to_branch(branch.name))
            assert "one" not in [item["content"] for item in agent.read("talk")]
        assert agent.ask(
            "SELECT count(*) FROM message_structure WHERE message_id NOT IN (SELECT id FROM agent_messages)"
        ) == [(0,)]


class TestWrongKind:
    """tests/stores/test_layouts.py has files whose tables changed after they were attached."""

    def test_a_file_with_branches_is_not_connected_as_a_plain_one(self, agent: AdvancedAgent) -> None:
        SessionStore.objects.filter(pk=agent.store.pk).update(kind="sqlite", attached_at=None)
        (problem, *_) = registry.health(SessionStore.objects.get(pk=agent.store.pk)).problems
        assert problem.is_fatal
        assert "Connect it as advanced_sqlite" in problem.sentence

    def test_nor_the_other_way_round(self, db: None, tmp_path: Path) -> None:
        agent = SqliteAgent(tmp_path)
        SessionStore.objects.filter(pk=agent.store.pk).update(kind="advanced_sqlite", attached_at=None)
        (problem, *_) = registry.health(SessionStore.objects.get(pk=agent.store.pk)).problems
        assert problem.is_fatal
        assert "Connect it as sqlite" in problem.sentence
        agent.close()


def contents_of(texts: Sequence[str]) -> list[str]:
    return [json.loads(text)["content"] for text in texts]
