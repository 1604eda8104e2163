"""A store that is a file: every page that shows a session of the main store shows one of it as well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.search.remembered import remember_search
from sessions_app.services.discovery import discover_sessions
from sessions_app.services.inspection import inspect_quiet_sessions
from sessions_app.services.transcripts import import_transcripts
from sessions_app.stores import backend_for
from sessions_app.stores.base import SessionPage, StoreUnavailable
from sessions_app.stores.sqlite.backend import SqliteBackend
from tests.agents import assistant, user
from tests.builders import make_subject
from tests.stores.sqlite_files import SqliteAgent

OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "sent"}


@pytest.fixture
def agent(db: None, tmp_path: Path) -> Iterator[SqliteAgent]:
    agent = SqliteAgent(tmp_path)
    agent.add("customer_7", user("Where is my blue teapot?"), assistant("On its way."))
    discover_sessions()
    yield agent
    agent.close()


@pytest.fixture
def record(agent: SqliteAgent) -> SessionRecord:
    return SessionRecord.objects.get(session_id="customer_7")


def said(client: Client, words: str) -> Any:
    search = remember_search(User.objects.get_or_create(username="somebody")[0], words)
    return client.get(reverse("sessions:search-messages", args=[search.pk]))


class TestPages:
    def test_the_list_shows_its_first_words_its_kind_and_what_it_cannot_do(
        self, record: SessionRecord, operator: Client
    ) -> None:
        page = operator.get(reverse("sessions:list"))
        assert "Where is my blue teapot?" in page.text
        assert "icons.svg#file-database" in page.text
        assert "SQLite file. It has no fence: an agent that is still running" in page.text

    def test_the_timeline_an_item_and_the_downloads_show_what_is_stored(
        self, agent: SqliteAgent, record: SessionRecord, operator: Client
    ) -> None:
        page = operator.get(record.get_absolute_url())
        assert page.status_code == 200
        assert "Where is my blue teapot?" in page.text
        item = backend_for(record.store).first_page("customer_7", 1).items[0]
        assert "blue teapot" in operator.get(reverse("sessions:item", args=[record.pk, item.id])).text
        lines = b"".join(operator.get(reverse("sessions:export-jsonl", args=[record.pk])).streaming_content)  # type: ignore[attr-defined]
        assert lines.decode().splitlines() == agent.stored("customer_7")
        assert operator.get(reverse("sessions:export-markdown", args=[record.pk])).status_code == 200

    def test_an_open_timeline_sees_new_items(self, agent: SqliteAgent, record: SessionRecord, operator: Client) -> None:
        live = operator.get(record.get_absolute_url()).context["live_url"]
        assert operator.get(live).status_code == 204
        agent.add("customer_7", user("And the lid?"))
        assert "And the lid?" in operator.get(live).text

    def test_a_search_finds_it_and_a_step_leads_there(self, record: SessionRecord, operator: Client) -> None:
        page = said(operator, "teapot")
        assert f"{record.get_absolute_url()}?item=" in page.text
        answer = operator.post(reverse("sessions:find", args=[record.pk]), {"q": "way"})
        assert answer.status_code == 302

    def test_the_page_of_its_subject_lists_it(self, record: SessionRecord, operator: Client) -> None:
        subject = make_subject("7")
        SessionRecord.objects.filter(pk=record.pk).update(subject=subject)
        assert "Where is my blue teapot?" in operator.get(subject.get_absolute_url()).text

    def test_the_store_has_a_page_with_its_file(self, agent: SqliteAgent, administrator: Client) -> None:
        for name in ("stores", "store"):
            page = administrator.get(reverse(f"sessions:{name}", args=["files"] if name == "store" else []))
            assert "healthy" in page.text
            assert "SQLite file" in page.text
        assert str(agent.path) in page.text
        assert "It has no fence" in page.text


class TestDiscovery:
    def test_an_administrator_has_it_looked_through_at_once(self, agent: SqliteAgent, administrator: Client) -> None:
        agent.add("new", user("Hello"))
        page = administrator.post(reverse("sessions:store-discover", args=["files"]), follow=True)
        assert "Checked 2 sessions: 1 new session." in page.text
        assert SessionRecord.objects.filter(session_id="new").exists()
        assert AuditEvent.objects.filter(type="store.discovered", counters={"sessions": 1}).exists()

    def test_nothing_new_is_no_event_and_changes_no_row(self, agent: SqliteAgent) -> None:
        before = AuditEvent.objects.count(), list(SessionRecord.objects.values())
        discover_sessions()
        assert (AuditEvent.objects.count(), list(SessionRecord.objects.values())) == before

    def test_a_file_that_nobody_wrote_to_is_not_looked_through_again(
        self, agent: SqliteAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        walks: list[str] = []
        walk = SqliteBackend.enumerate_sessions

        def counted(backend: SqliteBackend, cursor: str = "", *, limit: int) -> SessionPage:
            walks.append(cursor)
            return walk(backend, cursor, limit=limit)

        monkeypatch.setattr(SqliteBackend, "enumerate_sessions", counted)
        discover_sessions()
        discover_sessions()
        assert len(walks) == 0
        agent.add("customer_7", user("Hello?"))
        discover_sessions()
        discover_sessions()
        assert len(walks) == 1
        SessionStore.objects.update(discovered_at=now() - timedelta(hours=2))
        discover_sessions()
        assert len(walks) == 2

    def test_what_was_written_is_inspected_and_what_was_not_is_not(self, agent: SqliteAgent) -> None:
        assert inspect_quiet_sessions(quiet=timedelta(days=-1)) == 1
        agent.add("customer_7", OUTPUT)
        discover_sessions()
        assert inspect_quiet_sessions(quiet=timedelta(days=-1)) == 1
        assert SessionRecord.objects.get(session_id="customer_7").finding_count == 1
        assert inspect_quiet_sessions(quiet=timedelta(days=-1)) == 0

    def test_a_session_that_vanished_is_shown_as_gone(
        self, agent: SqliteAgent, operator: Client, administrator: Client
    ) -> None:
        agent.forget("customer_7")
        discover_sessions()
        page = operator.get(reverse("sessions:list"))
        assert "Gone: no longer in files" in page.text
        store_page = administrator.get(reverse("sessions:store", args=["files"]))
        assert "1 registered session is no longer in the store" in " ".join(store_page.text.split())

    def test_an_erased_session_that_came_back_is_erased_again_and_reported(
        self, agent: SqliteAgent, administrator: Client
    ) -> None:
        backend_for(agent.store).erase_session("customer_7")
        agent.add("customer_7", user("Still here"))
        discover_sessions()
        page = administrator.get(reverse("sessions:store", args=["files"])).text
        assert "1 time an agent wrote to an erased session, which was erased again." in page
        assert "Still here" not in page
        assert agent.read("customer_7") == []

    def test_a_store_with_triggers_or_without_a_connection_is_not_looked_through(
        self, agent: SqliteAgent, administrator: Client
    ) -> None:
        call_command("attach_store", "files", remove=True, verbosity=0)
        agent.add("new", user("Hello"))
        answer = administrator.post(reverse("sessions:store-discover", args=["files"]))
        assert answer.status_code == 409
        discover_sessions()
        assert not SessionRecord.objects.filter(session_id="new").exists()


class TestAway:
    @pytest.fixture(autouse=True)
    def deleted(self, agent: SqliteAgent, record: SessionRecord) -> None:
        agent.close()
        for file in agent.path.parent.glob("agents.db*"):
            file.unlink()

    def test_no_page_breaks(self, record: SessionRecord, operator: Client) -> None:
        page = operator.get(reverse("sessions:list"))
        assert page.status_code == 200
        assert "files is not responding" in page.text
        timeline = operator.get(record.get_absolute_url())
        assert timeline.status_code == 503
        assert "There is no file" in timeline.text
        for name in ("export-jsonl", "export-markdown"):
            assert operator.get(reverse(f"sessions:{name}", args=[record.pk])).status_code == 503
        assert "files could not be searched. There is no file" in said(operator, "teapot").text

    def test_its_own_pages_and_the_command_say_what_is_wrong(
        self, administrator: Client, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = administrator.post(reverse("sessions:store-check", args=["files"]), follow=True)
        assert "files is unreachable. There is no file" in page.text
        assert "There is no file" in administrator.get(reverse("sessions:stores")).text
        page = administrator.post(reverse("sessions:store-discover", args=["files"]), follow=True)
        assert "There is no file" in page.text
        call_command("check_stores", as_json=True)
        (files,) = (each for each in json.loads(capsys.readouterr().out)["stores"] if each["name"] == "files")
        assert (files["kind"], files["state"], files["fence"]) == ("sqlite", "down", "unsupported")
        assert discover_sessions() == 0
        assert SessionRecord.objects.get(session_id="customer_7").missing_since is None


class TestAttaching:
    def test_a_path_with_a_star_attaches_a_store_per_file(
        self, db: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name in ("sales", "support"):
            (tmp_path / name).mkdir()
            agent = SqliteAgent.__new__(SqliteAgent)
            agent.path, agent.sessions = tmp_path / name / f"{name}.db", {}
            agent.add("same", user(name))
            agent.close()
        path = str(tmp_path / "*" / "*.db")
        call_command("attach_store", "bots", "--kind", "sqlite", "--path", path, "--json")
        told = json.loads(capsys.readouterr().out)
        assert [(each["store"], each["sessions"]) for each in told["stores"]] == [
            ("bots-sales", 1),
            ("bots-support", 1),
        ]
        assert SessionRecord.objects.filter(session_id="same").count() == 2
        call_command("attach_store", "bots", "--kind", "sqlite", "--path", path, "--json")
        assert SessionStore.objects.count() == 2

    def test_what_makes_no_sense_is_refused_in_a_sentence(self, db: None, tmp_path: Path) -> None:
        for number, (arguments, sentence) in enumerate(
            [
                (["--kind", "sqlite"], "path: This field is required"),
                (["--kind", "sqlite", "--path", "x.db"], "not an absolute path"),
                (["--kind", "sqlite", "--path", "*.db"], "not an absolute path"),
                (["--kind", "sqlite", "--path", str(tmp_path / "none.db")], "There is no file"),
                (["--path", "/x.db"], "has no setting path; it has none"),
            ]
        ):
            with pytest.raises(CommandError, match=sentence):
                call_command("attach_store", f"files-{number}", *arguments)
        assert not SessionStore.objects.filter(attached_at__isnull=False).exists()

    def test_the_dry_run_changes_nothing_and_removing_keeps_the_records(
        self, agent: SqliteAgent, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call_command("attach_store", "files", remove=True)
        assert registry.known_store("files").attached_at is None
        call_command("attach_store", "files", dry_run=True)
        assert "Record that the store is attached" in capsys.readouterr().out
        assert registry.known_store("files").attached_at is None
        call_command("attach_store", "files")
        assert "files is attached, with 1 registered session" in capsys.readouterr().out

    def test_transcripts_are_not_imported_into_it(self, agent: SqliteAgent, tmp_path: Path) -> None:
        (tmp_path / "chats.jsonl").write_text("")
        with (tmp_path / "chats.jsonl").open("rb") as file, pytest.raises(StoreUnavailable, match="of the kind sqlite"):
            import_transcripts(file, agent.store)
