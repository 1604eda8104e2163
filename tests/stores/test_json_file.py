"""Folders of JSON arrays and of JSON Lines, written by small classes like those that teams write."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from agents.memory import SessionABC
from django.contrib.auth.models import User
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from sessions_app import registry
from sessions_app.audit_events import RedactReason
from sessions_app.models import SessionRecord
from sessions_app.redaction.services import RedactionRequest, redact_about
from sessions_app.search.remembered import remember_search
from sessions_app.search.sessions import matching_sessions
from sessions_app.services.attaching import attach_store
from sessions_app.services.discovery import discover
from sessions_app.services.inspection import inspect_quiet_sessions
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import Backend, ItemChanged, SessionBusy, StoreUnavailable, UnknownItem
from sessions_app.stores.json_file import folder as json_folder
from sessions_app.stores.json_file.entries import BYTE_ORDER_MARK, Entries
from tests.agents import user
from tests.builders import make_subject
from tests.cases import for_each
from tests.runs.working import report_of, work_off
from tests.stores.contract import SECRET, Item, SdkAgent, StoreContract, Trouble, enumerated, in_agent, said
from tests.stores.sealed_contract import SealedContract


class ArraySession(SessionABC):
    """Keeps a session as one array, which it writes anew each time."""

    ending = ".json"

    def __init__(self, session_id: str, folder: Path) -> None:
        self.session_id = session_id
        self.file = folder / f"{self.name_of(session_id)}{self.ending}"

    @staticmethod
    def name_of(session_id: str) -> str:
        return session_id

    def items(self) -> list[Any]:
        return cast(list[Any], json.loads(self.file.read_text())) if self.file.exists() else []

    def write(self, items: list[Any]) -> None:
        self.file.write_text(json.dumps(items, indent=2, ensure_ascii=False))

    async def get_items(self, limit: int | None = None) -> Any:
        return self.items()[-(limit or 0) :]

    async def add_items(self, items: Any) -> None:
        self.write([*self.items(), *items])

    async def pop_item(self) -> Any:
        *rest, last = self.items()
        self.write(rest)
        return last

    async def clear_session(self) -> None:
        self.file.unlink(missing_ok=True)


class LinesSession(ArraySession):
    """Adds lines to the end."""

    ending = ".jsonl"

    @staticmethod
    def name_of(session_id: str) -> str:
        return quote(session_id, safe="")

    def items(self) -> list[Any]:
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def write(self, items: list[Any]) -> None:
        self.file.write_text("".join(json.dumps(item) + "\n" for item in items))

    async def add_items(self, items: Any) -> None:
        with self.file.open("a") as file:
            file.writelines(json.dumps(item) + "\n" for item in items)


class ArrayAgent(SdkAgent):
    session_class: type[ArraySession] = ArraySession
    names = "plain"
    brings_back = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        options = {"path": str(folder), "ending": self.session_class.ending, "names": self.names}
        self.store = declare_store(folder.name, kind="json_file", options=options)
        attach_store(self.store)

    def session(self, session_id: str) -> ArraySession:
        return self.session_class(session_id, self.folder)

    def in_session(self, session_id: str, name: str, *arguments: Any) -> Any:
        return in_agent(getattr(self.worn(self.session(session_id)), name)(*arguments))

    def stored(self, session_id: str) -> list[str]:
        return list(raw_elements(self.session(session_id).file.read_text()))

    def leftovers(self, words: str) -> list[str]:
        return [
            file.name
            for file in sorted(self.folder.iterdir())
            if words in file.name or words.encode() in file.read_bytes()
        ]

    def can_name(self, session_id: str) -> bool:
        name = self.session_class.name_of(session_id)
        return "/" not in name and len(name) < 200

    @contextmanager
    def replaced_by(self, put: Callable[[Path], object], sentence: str) -> Iterator[str]:
        aside = self.folder.with_name("aside")
        self.folder.rename(aside)
        put(self.folder)
        try:
            yield sentence
        finally:
            self.folder.unlink(missing_ok=True)
            aside.rename(self.folder)

    def troubles(self) -> dict[str, Trouble]:
        return {
            "folder is gone": lambda: self.replaced_by(lambda path: None, "There is no folder"),
            "folder is a file": lambda: self.replaced_by(lambda path: path.write_text("[]"), "is not a folder"),
        }


class LinesAgent(ArrayAgent):
    session_class = LinesSession
    names = "quoted"
    brings_back = False
    mixes_turns = True

    def stored(self, session_id: str) -> list[str]:
        return self.session(session_id).file.read_text().splitlines()


def raw_elements(text: str) -> Iterator[str]:
    """The elements of an array as they are written, found by the standard library's own decoder."""
    place = text.index("[") + 1
    while (place := place + len(text[place:]) - len(text[place:].lstrip(" \n,"))) < len(text.rstrip()) - 1:
        _, end = json.JSONDecoder().raw_decode(text, place)
        yield text[place:end]
        place = end


WITH_LATE_WRITERS = {
    "test_a_session_is_redacted_while_its_agent_goes_on_in_it_and_nothing_is_lost",
    "test_agents_that_write_meanwhile_lose_nothing_and_never_fail",
    "test_what_an_agent_said_before_an_erasure_is_gone_and_what_it_says_after_it_is_whole",
    "test_what_an_agent_says_while_its_store_is_sealed_anew_stays",
}


@pytest.mark.slow
class TestJsonArrays(StoreContract, SealedContract):
    agent_class: type[ArrayAgent] = ArrayAgent

    @pytest.fixture
    def agent(self, db: None, folder_in_memory: Path) -> ArrayAgent:
        return self.agent_class(folder_in_memory / "sessions")

    @pytest.fixture(autouse=True)
    def one_look_at_what_nobody_writes(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """A change waits a tenth of a second for late writes, which only some tests have."""
        if request.function.__name__ not in WITH_LATE_WRITERS:
            monkeypatch.setattr(json_folder, "SETTLING_LOOKS", 1)


@pytest.mark.release
class TestJsonLines(TestJsonArrays):
    agent_class = LinesAgent


FEW_LETTERS = some.text(some.sampled_from('a"\\[]{},: \n😀'), max_size=4)
SOME_JSON = some.recursive(
    some.none() | some.integers() | FEW_LETTERS,
    lambda inner: some.lists(inner, max_size=2) | some.dictionaries(FEW_LETTERS, inner, max_size=2),
    max_leaves=4,
)
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class TestEntries:
    @for_each(
        ("content", "expected"),
        [
            (b"", []),
            (b" \n", []),
            (b"[]", []),
            (b"[ ]\n", []),
            (
                b'[{"a": "},]\\""} , [1, {"b": 2}],\n3, "x", null]',
                ['{"a": "},]\\""}', '[1, {"b": 2}]', "3", '"x"', "null"],
            ),
            (BYTE_ORDER_MARK + b'[{"a": 1}]', ['{"a": 1}']),
            (BYTE_ORDER_MARK + b'{"a": 1}\n', ['{"a": 1}']),
            (b'{"a": 1}\r\n\r\n {"b": 2} \n{"c', ['{"a": 1}', '{"b": 2}', '{"c']),
            (b"no JSON\nat all", ["no JSON", "at all"]),
            (b'[{"a": 1}, {"b": [2}', ['{"a": 1}', '{"b": [2}']),
            (b'[{"a": 1}, {"b": "two}, 3]', ['{"a": 1}', '{"b": "two}, 3]']),
            (b'[{"a": 1}] and more', ['{"a": 1}', "and more"]),
            (b'[{"a": 1},', ['{"a": 1}']),
            (b"[", []),
        ],
    )
    def test_nothing_vanishes_whatever_a_file_contains(self, content: bytes, expected: list[str]) -> None:
        entries = Entries(content)
        assert [entries.text(span) for span in entries.spans()] == expected
        assert entries.without([]) == content

    @for_each(
        ("content", "is_finished"),
        [
            (b"", False),
            (b"[]", True),
            (b"[1]\n", True),
            (b"[", False),
            (b'[{"a": [1]', False),
            (b'[{"a": 1}, ', False),
            (b'{"a": 1}', True),
            (b'{"a": 1}\n', True),
            (b'{"a": 1}\n{"b":', False),
        ],
    )
    def test_what_is_still_being_written_has_no_end(self, content: bytes, is_finished: bool) -> None:
        assert Entries(content).is_finished == is_finished

    @unhurried
    @given(items=some.lists(SOME_JSON, max_size=4), indent=some.sampled_from([None, 2]), data=some.data())
    def test_arrays_are_cut_where_json_cuts_them(self, items: list[Any], indent: int | None, data: Any) -> None:
        entries = Entries(json.dumps(items, indent=indent).encode())
        assert [json.loads(entries.text(span)) for span in entries.spans()] == items
        assert entries.is_finished
        gone = data.draw(some.sets(some.integers(0, max(len(items) - 1, 0)), max_size=len(items)))
        kept = [item for place, item in enumerate(items) if place not in gone]
        assert json.loads(entries.without(gone)) == kept
        for place in range(len(items)):
            span = entries.at(place)
            assert span
            assert json.loads(entries.with_replaced(span, b'"x"')) == [*items[:place], "x", *items[place + 1 :]]

    @unhurried
    @given(items=some.lists(some.dictionaries(FEW_LETTERS, FEW_LETTERS, max_size=2), max_size=4), data=some.data())
    def test_lines_go_with_their_ends(self, items: list[Any], data: Any) -> None:
        end = data.draw(some.sampled_from(["\n", "\r\n", "\n\n"]))
        entries = Entries("".join(json.dumps(item) + end for item in items).encode())
        assert [json.loads(entries.text(span)) for span in entries.spans()] == items
        gone = data.draw(some.sets(some.integers(0, max(len(items) - 1, 0)), max_size=len(items)))
        kept = Entries(entries.without(gone))
        expected = [item for place, item in enumerate(items) if place not in gone]
        assert [json.loads(kept.text(span)) for span in kept.spans()] == expected

    def test_a_text_of_several_lines_stays_one_line(self) -> None:
        entries = Entries(b'{"a": 1}\n{"b": 2}\n')
        span = entries.at(0)
        assert span
        assert entries.with_replaced(span, b'{\n  "a": 3\n}') == b'{   "a": 3 }\n{"b": 2}\n'

    def test_a_string_without_an_end_costs_no_more_than_one_with(self) -> None:
        """Nothing is asserted but that it comes back at all: each letter more would double it otherwise."""
        assert Entries(b'[{"a": "' + b"x\\n" * 50_000).count(10) == 1


@pytest.mark.slow
class TestFolder:
    @pytest.fixture
    def agent(self, db: None, tmp_path: Path) -> LinesAgent:
        return LinesAgent(tmp_path / "sessions")

    @pytest.fixture
    def backend(self, agent: LinesAgent) -> Backend:
        return backend_for(agent.store)

    @pytest.fixture
    def plain(self, db: None, tmp_path: Path) -> ArrayAgent:
        return ArrayAgent(tmp_path / "arrays")

    def file(self, agent: ArrayAgent, session_id: str = "talk") -> Path:
        return agent.session(session_id).file

    # --- names --------------------------------------------------------------------------------------------------------

    def test_links_pipes_and_folders_are_no_sessions(self, plain: ArrayAgent, tmp_path: Path) -> None:
        secret = tmp_path / "elsewhere.json"
        secret.write_text(json.dumps([user(SECRET)]))
        (plain.folder / "link.json").symlink_to(secret)
        (plain.folder / "folder.json").mkdir()
        os.mkfifo(plain.folder / "pipe.json")
        plain.add("talk", said(0))
        backend = backend_for(plain.store)
        assert [session.session_id for session in enumerated(backend)] == ["talk"]
        for name in ("link", "folder", "pipe", "../elsewhere", "/etc/hostname", "..", "talk\0", "x" * 300):
            assert backend.count(name) == 0
            with pytest.raises(UnknownItem):
                backend.replace_item(name, "0", "{}", expected="{}")
            assert backend.erase_session(name.replace("\0", "0")) == 0
        assert secret.read_text() == json.dumps([user(SECRET)])
        assert "links" in {problem.code for problem in registry.health(plain.store).problems}

    def test_names_that_are_no_session_ids_are_counted(self, agent: LinesAgent) -> None:
        agent.add("talk", said(0))
        for name in (b"no \xff text.jsonl", b"%zz.jsonl", b"a%2fb.jsonl", b".jsonl"):
            (agent.folder / os.fsdecode(name)).touch()
        assert [session.session_id for session in enumerated(backend_for(agent.store))] == ["talk"]
        (odd,) = registry.health(agent.store).problems
        assert odd.sentence.startswith("4 of its files have names that are not session ids")

    def test_copies_that_editors_left_are_told(self, agent: LinesAgent) -> None:
        agent.add("talk", said(0))
        for name in ("talk.jsonl~", "talk.jsonl.bak", ".talk.jsonl.swp", "notes.txt"):
            (agent.folder / name).touch()
        (copies,) = registry.health(agent.store).problems
        assert copies.sentence.startswith("3 of its files look like copies")

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"path": "sessions"}, "not an absolute path"),
            ({"path": "/x", "ending": "/../x"}, "file name extension"),
            ({"path": "/x", "names": "odd"}, "names: "),
        ],
    )
    def test_a_store_that_makes_no_sense_is_refused(self, db: None, options: dict[str, str], sentence: str) -> None:
        with pytest.raises(registry.AttachRefused, match=sentence):
            declare_store("files", kind="json_file", options=options)

    # --- what cannot be read ------------------------------------------------------------------------------------------

    def test_a_file_that_is_too_large_keeps_no_page_and_no_job_from_the_others(
        self, plain: ArrayAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plain.add("large", user(f"{SECRET} and more{' and more' * 100}"))
        plain.add("talk", user(SECRET))
        discover(plain.store)
        SessionRecord.objects.update(subject=make_subject("customer_1"))
        monkeypatch.setattr(json_folder, "LARGEST_FILE_BYTES", 500)
        previews = backend_for(plain.store).previews(["large", "talk"])
        assert (previews["large"].is_readable, previews["talk"].first_user_text) == (False, SECRET)
        search = remember_search(User.objects.create_user("reader"), SECRET)
        matches = matching_sessions(search, SessionRecord.objects.on_record(), is_masked=False)
        assert [match.record.session_id for match in matches.found] == ["talk"]
        assert matches.notes == ["One session could not be read or searched."]
        at_once = timedelta(0)
        assert (inspect_quiet_sessions(quiet=at_once), inspect_quiet_sessions(quiet=at_once)) == (2, 0)
        large = SessionRecord.objects.get(session_id="large")
        assert large.subject
        asked = redact_about(large.subject, RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, by=None))
        work_off()
        report = report_of(asked)
        assert (report["items"], report["reasons"]) == (1, [["unreadable", f"/sessions/{large.pk}/", 1]])
        assert SECRET not in self.file(plain).read_text()

    # --- what stays ---------------------------------------------------------------------------------------------------

    def test_rights_owner_and_time_of_a_changed_file_stay(self, agent: LinesAgent, backend: Backend) -> None:
        agent.add("talk", user(SECRET), said(1))
        file = self.file(agent)
        file.chmod(0o640)
        if os.getuid() == 0:
            os.chown(file, 4711, 4712)
        os.utime(file, ns=(10**18, 10**18 + 7))
        before = file.stat()
        (item, _) = backend.first_page("talk", 2).items
        (mark,) = [session.mark for session in enumerated(backend)]
        backend.replace_item("talk", item.id, "{}", expected=item.raw)
        after = file.stat()
        for fact in ("st_mode", "st_uid", "st_gid", "st_mtime_ns"):
            assert getattr(after, fact) == getattr(before, fact), fact
        assert [mark] != [session.mark for session in enumerated(backend)]
        assert agent.leftovers(SECRET) == []

    def test_what_is_around_the_items_stays_as_it_is(self, plain: ArrayAgent) -> None:
        file = self.file(plain)
        file.write_bytes(BYTE_ORDER_MARK + b'[ {"a": 1},\t{"b": 2} ,\n\n{"c": 3} ]\n')
        backend = backend_for(plain.store)
        items = list(backend.every_item("talk"))
        backend.replace_item("talk", "1", '{"b": "two"}', expected=items[1].raw)
        assert file.read_bytes() == BYTE_ORDER_MARK + b'[ {"a": 1},\t{"b": "two"} ,\n\n{"c": 3} ]\n'
        backend.delete_items("talk", [items[0]])
        assert file.read_bytes() == BYTE_ORDER_MARK + b'[ {"b": "two"} ,\n\n{"c": 3} ]\n'

    def test_a_file_with_a_second_name_is_left_alone(self, agent: LinesAgent, backend: Backend, tmp_path: Path) -> None:
        agent.add("talk", user(SECRET))
        os.link(self.file(agent), tmp_path / "second name")
        (item,) = backend.first_page("talk", 1).items
        with pytest.raises(StoreUnavailable, match="hard link"):
            backend.erase_session("talk")
        with pytest.raises(StoreUnavailable, match=r"hard link.*Nothing was changed"):
            backend.replace_item("talk", "0", "{}", expected=item.raw)
        assert agent.read("talk") == [user(SECRET)]
        assert not SessionRecord.objects.exclude(erased_at=None)

    def test_what_a_process_that_died_left_is_swept_away(
        self, agent: LinesAgent, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent.add("talk", user(SECRET))
        (item,) = backend.first_page("talk", 1).items
        with monkeypatch.context() as killed:
            killed.setattr(os, "rename", lambda *names, **folders: (_ for _ in ()).throw(KeyboardInterrupt))
            killed.setattr(os, "unlink", lambda *names, **folders: None)
            with pytest.raises(KeyboardInterrupt):
                backend.replace_item("talk", "0", json.dumps(user(f"{SECRET} again")), expected=item.raw)
        assert len(agent.leftovers(SECRET)) == 2
        assert [session.session_id for session in enumerated(backend)] == ["talk"]
        monkeypatch.setattr(json_folder, "LEFT_BEHIND_SECONDS", -1)
        backend.erase_session("talk")
        assert agent.leftovers(SECRET) == []

    def test_one_file_that_cannot_be_read_hides_no_other(
        self, agent: LinesAgent, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent.add("small", said(0))
        agent.add("large", *(said(number) for number in range(50)))
        monkeypatch.setattr(json_folder, "LARGEST_FILE_BYTES", 100)
        previews = backend.previews(["small", "large"])
        assert (previews["small"].item_count, previews["large"].item_count) == (1, 0)
        with pytest.raises(StoreUnavailable, match="more than"):
            backend.first_page("large", 5)

    # --- while an agent writes ----------------------------------------------------------------------------------------

    def test_a_line_that_is_being_written_is_shown_and_waited_for(
        self, agent: LinesAgent, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent.add("talk", user(SECRET))
        with self.file(agent).open("a") as writing:
            writing.write('{"content": "half of a')
            writing.flush()
            items = backend.first_page("talk", 5).items
            assert items[1].raw == '{"content": "half of a'

            def finish(seconds: float) -> None:
                if not waited:
                    writing.write(' line", "role": "user"}\n')
                    writing.flush()
                waited.append(seconds)

            waited: list[float] = []
            monkeypatch.setattr(json_folder, "sleep", finish)
            backend.replace_item("talk", "0", "{}", expected=items[0].raw)
        assert agent.read("talk") == [{}, user("half of a line")]

    def test_a_line_that_was_broken_off_stays_as_it_is(
        self, agent: LinesAgent, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(json_folder, "PATIENCE_SECONDS", 0.1)
        agent.add("talk", user(SECRET), said(1))
        with self.file(agent).open("a") as writing:
            writing.write('{"content": "half')
        items = backend.first_page("talk", 5).items
        backend.delete_items("talk", items[:1])
        assert self.file(agent).read_text() == json.dumps(said(1)) + '\n{"content": "half'

    def test_it_gives_way_to_an_agent_that_never_stops(
        self, agent: LinesAgent, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A second goes by between two looks at the clock, however long a try takes.
        monkeypatch.setattr(json_folder, "monotonic", count().__next__)
        agent.add("talk", user(SECRET))
        (item,) = backend.first_page("talk", 5).items
        write_beside = json_folder.Folder._write_beside

        def interrupted(folder: Any, *arguments: Any, **options: Any) -> str:
            agent.add("talk", said(1))
            return write_beside(folder, *arguments, **options)

        monkeypatch.setattr(json_folder.Folder, "_write_beside", interrupted)
        with pytest.raises(SessionBusy, match="nothing was changed"):
            backend.replace_item("talk", "0", "{}", expected=item.raw)
        talk = agent.read("talk")
        assert len(talk) > 2
        assert talk == [user(SECRET), *[said(1)] * (len(talk) - 1)]

    @pytest.mark.parametrize("kind", ["array", "lines"])
    def test_an_agent_that_writes_before_the_change_is_in_place_loses_nothing(
        self, agent: LinesAgent, plain: ArrayAgent, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.written_meanwhile(agent if kind == "lines" else plain, monkeypatch) == [{}, said(1)]

    def test_without_the_comparison_it_would_lose_what_it_wrote(
        self, agent: LinesAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(json_folder.Version, "of", classmethod(lambda cls, status: cls(0, 0, 0)))
        monkeypatch.setattr(json_folder, "SETTLING_LOOKS", 0)
        assert self.written_meanwhile(agent, monkeypatch) == [{}]

    def written_meanwhile(self, agent: ArrayAgent, monkeypatch: pytest.MonkeyPatch) -> list[Item]:
        """An agent adds an item after the file was read, and before the new one takes its place."""
        agent.add("talk", user(SECRET))
        (item,) = backend_for(agent.store).first_page("talk", 5).items
        write_beside = json_folder.Folder._write_beside
        was_written: list[bool] = []

        def interrupted(folder: Any, *arguments: Any, **options: Any) -> str:
            if not was_written:
                was_written.append(True)
                agent.add("talk", said(1))
            return write_beside(folder, *arguments, **options)

        monkeypatch.setattr(json_folder.Folder, "_write_beside", interrupted)
        backend_for(agent.store).replace_item("talk", "0", "{}", expected=item.raw)
        assert agent.leftovers(SECRET) == []
        return agent.read("talk")

    @pytest.mark.parametrize("kind", ["array", "lines"])
    def test_an_agent_that_had_opened_the_file_before_loses_nothing(
        self, agent: LinesAgent, plain: ArrayAgent, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.written_late(agent if kind == "lines" else plain, monkeypatch) == [{}, said(1)]

    def test_without_watching_the_old_file_its_words_would_be_lost(
        self, agent: LinesAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(json_folder, "SETTLING_LOOKS", 0)
        assert self.written_late(agent, monkeypatch) == [{}]

    def written_late(self, agent: ArrayAgent, monkeypatch: pytest.MonkeyPatch) -> list[Item]:
        """An agent that opened the old file writes to it when the new one is in its place."""
        agent.add("talk", user(SECRET))
        (item,) = backend_for(agent.store).first_page("talk", 5).items
        opened = self.file(agent).open("r+")
        rename = os.rename

        def renamed(*names: Any, **folders: Any) -> None:
            rename(*names, **folders)
            with opened:
                if isinstance(agent, LinesAgent):
                    opened.seek(0, os.SEEK_END)
                    opened.write(json.dumps(said(1)) + "\n")
                else:
                    opened.truncate()
                    opened.write(json.dumps([user(SECRET), said(1)], indent=2))
            monkeypatch.setattr(os, "rename", rename)

        monkeypatch.setattr(os, "rename", renamed)
        backend_for(agent.store).replace_item("talk", "0", "{}", expected=item.raw)
        assert agent.leftovers(SECRET) == []
        return agent.read("talk")

    def test_a_machine_that_stood_still_meanwhile_ends_no_watch(
        self, agent: LinesAgent, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The agent did not get on either; here a second goes by between two looks at the clock."""
        agent.add("talk", user(SECRET))
        (item,) = backend.first_page("talk", 5).items
        pauses: list[float] = []
        with self.file(agent).open("a") as opened:

            def pause(seconds: float) -> None:
                pauses.append(seconds)
                if len(pauses) == 3:
                    opened.write(json.dumps(said(1)) + "\n")
                    opened.flush()

            monkeypatch.setattr(json_folder, "sleep", pause)
            monkeypatch.setattr(json_folder, "monotonic", count().__next__)
            backend.replace_item("talk", "0", "{}", expected=item.raw)
        assert agent.read("talk") == [{}, said(1)]

    def test_redacting_a_session_that_an_agent_is_adding_to_loses_no_line(
        self, agent: LinesAgent, backend: Backend
    ) -> None:
        agent.add("talk", *(user(f"{SECRET} {number}") for number in range(12)))
        stop, written = threading.Event(), [0]

        def go_on() -> None:
            while not stop.is_set():
                written[0] += 1
                with self.file(agent).open("a") as file:
                    file.write(json.dumps(said(written[0])) + "\n")
                time.sleep(0.002)

        writer = threading.Thread(target=go_on)
        writer.start()
        try:
            for place in range(0, 12, 2):
                while True:
                    item = backend.item("talk", str(place))
                    with suppress(SessionBusy, ItemChanged):
                        backend.replace_item("talk", item.id, json.dumps(user("[redacted]")), expected=item.raw)
                        break
        finally:
            stop.set()
            writer.join()
        talk = agent.read("talk")
        assert talk[:12:2] == [user("[redacted]")] * 6
        assert sorted(item["content"] for item in talk[12:]) == sorted(
            f"item {number}" for number in range(1, written[0] + 1)
        )
