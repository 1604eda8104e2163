"""Building under difficulties: kills, a full disk, a store that is away, pause and cancellation, little memory."""

from __future__ import annotations

import base64
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as all_settings
from django.contrib.auth.models import User
from django.db import connection

from memadmin.erasure.access_copy import building, files, services, writing
from memadmin.erasure.access_copy.deleting import delete_copy
from memadmin.erasure.models import AccessCopy, RequestNote, SubjectRequest
from memadmin.erasure.services import WrongState, cancel_request
from memadmin.runs import engine
from memadmin.runs import services as runs
from memadmin.runs.kinds import kind_named
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.services.sessions import attach_sessions
from sessions_app.stores import sealed
from sessions_app.stores.base import SessionUnreadable, StoreUnavailable
from tests.agents import add_items, attach_main_store, run_sql
from tests.builders import make_session, make_store, make_subject
from tests.erasure import copy_builder
from tests.erasure.copies import all_text, files_in_folder, json_in, opened, started_copy
from tests.forks import PROCESSES

pytestmark = pytest.mark.usefixtures("copies_folder", "agent_tables")

MEGABYTES = 1024 * 1024


@pytest.fixture
def ada(officer: User) -> Subject:
    """A subject with three sessions of ten items each."""
    attach_main_store()
    subject = make_subject("ada-1")
    for name in ("a1", "a2", "a3"):
        add_items(name, *(f"item {number} of {name}" for number in range(10)))
    attach_sessions(SessionRecord.objects.filter(session_id__startswith="a"), subject, by=officer)
    return subject


def in_process(copy: AccessCopy, place: str = "", limit: int = 0) -> int | None:
    """Exit code of a worker; afterwards its lease has expired."""
    args = (connection.settings_dict["NAME"], server(), all_settings.ACCESS_COPY_FOLDER, copy.run_id, place, limit)
    worker = PROCESSES.Process(target=copy_builder.main, args=args)
    worker.start()
    worker.join()
    run_sql("UPDATE runs_run SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
    return worker.exitcode


def server() -> Path:
    return Path(connection.settings_dict["DATA_DIR"])


def let_it_retry() -> None:
    run_sql("UPDATE runs_run SET retry_at = NULL")


@pytest.mark.parametrize(
    "place",
    [pytest.param("in the second session", marks=pytest.mark.release), "in the file", "in place, not committed"],
)
def test_a_killed_build_goes_on_and_there_is_one_file(ada: Subject, officer: User, place: str) -> None:
    copy = started_copy(ada, by=officer)
    assert in_process(copy, place) == -signal.SIGKILL
    copy.refresh_from_db()
    assert copy.state == AccessCopy.State.BUILDING
    done = Run.objects.get(pk=copy.run_id).done
    assert done == (10 if place == "in the second session" else 30)
    run = engine.carry_on(copy.run)
    copy.refresh_from_db()
    assert (run.state, run.done) == (Run.State.COMPLETE, 30)
    assert files_in_folder() == [files.file_of(copy)]
    assert len(json_in(opened(copy), "data.json")["sessions"]) == 3
    assert RequestNote.objects.filter(code="copy_built").count() == 1


def test_killed_after_the_commit_it_is_built_and_the_parts_go(ada: Subject, officer: User) -> None:
    copy = started_copy(ada, by=officer)
    assert in_process(copy, "committed") == -signal.SIGKILL
    copy.refresh_from_db()
    assert copy.state == AccessCopy.State.READY
    run = engine.carry_on(copy.run)
    assert run.state == Run.State.COMPLETE
    assert files_in_folder() == [files.file_of(copy)]
    assert RequestNote.objects.filter(code="copy_built").count() == 1


def test_a_full_disk_leaves_no_file_and_a_sentence(ada: Subject, officer: User) -> None:
    add_items("a1", *("x" * 3000 for _ in range(100)))
    copy = started_copy(ada, by=officer)
    assert in_process(copy, limit=100_000) == 0
    run = Run.objects.get(pk=copy.run_id)
    assert (run.state, run.reason) == (Run.State.WAITING, building.DISK_FULL)
    assert run.retry_at is not None
    assert files_in_folder() == []
    let_it_retry()
    assert engine.carry_on(run).state == Run.State.COMPLETE
    copy.refresh_from_db()
    assert len(json_in(opened(copy), "sessions/1.json")["items"]) == 110


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of this size; the test is skipped where none can be mounted."""
    folder.mkdir(mode=0o700)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)]
    if os.getuid() or not shutil.which("mount") or subprocess.run(mounting, capture_output=True).returncode:
        pytest.skip("needs to mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("size", ["64k", "320k"], ids=["full with the sessions", "full with the file"])
def test_a_disk_that_is_full_keeps_nothing_of_it(
    ada: Subject, officer: User, copies_folder: Path, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Hardly compressible, so that the file needs nearly as much again as the parts.
    noise = random.Random(14)
    add_items("a1", *(base64.b64encode(noise.randbytes(600)).decode() for _ in range(100)))
    begun = []
    put_together = building.put_together

    def noted(*args: Any) -> None:
        begun.append(args)
        put_together(*args)

    monkeypatch.setattr(building, "put_together", noted)
    copy = started_copy(ada, by=officer)
    with small_disk(copies_folder, size):
        run = work_once(copy)
        assert (run.state, run.reason) == (Run.State.WAITING, building.DISK_FULL)
        assert bool(begun) == (size == "320k")
        assert files_in_folder() == []
        assert shutil.disk_usage(copies_folder).used == 0
    let_it_retry()
    assert work_once(copy).state == Run.State.COMPLETE
    copy.refresh_from_db()
    assert len(json_in(opened(copy), "sessions/1.json")["items"]) == 110


class Away:
    """A store that does not respond for some sessions."""

    def __init__(self, problem: type[StoreUnavailable], *session_ids: str) -> None:
        self.problem, self.session_ids = problem, session_ids

    def __call__(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def every_item(backend: Any, session_id: str) -> Any:
            for number, item in enumerate(real(backend, session_id)):
                if session_id in self.session_ids and number == 5:
                    raise self.problem("It does not respond.")
                yield item

        return every_item


def work_once(copy: AccessCopy) -> Run:
    lease = engine.take(copy.run_id)
    assert lease is not None
    engine.work(kind_named("access_copy"), lease)
    return Run.objects.get(pk=copy.run_id)


def test_a_store_that_is_away_is_waited_for(ada: Subject, officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = started_copy(ada, by=officer)
    with monkeypatch.context() as patching:
        away = Away(StoreUnavailable, "a1", "a2", "a3")
        patching.setattr(sealed.SealedBackend, "every_item", away(sealed.SealedBackend.every_item))
        run = work_once(copy)
    assert (run.state, run.done) == (Run.State.WAITING, 0)
    assert "main does not respond" in run.reason
    copy.refresh_from_db()
    assert copy.waits_for == ["main"]
    assert not [path for path in files_in_folder() if path.is_file()]
    let_it_retry()
    assert engine.carry_on(run).state == Run.State.COMPLETE
    copy.refresh_from_db()
    assert (copy.waits_for, copy.left_out) == ([], [])


def test_a_person_leaves_a_store_out_and_the_copy_says_so(
    ada: Subject, officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_session("c1", store=make_store("elsewhere", kind="redis", options={"url": "x"}), subject=ada)
    copy = started_copy(ada, by=officer)
    with pytest.raises(WrongState):
        services.leave_out_stores(copy.request, note="it is gone", by=officer)
    real = sealed.sealed_backend_for

    def away(store: SessionStore, **kwargs: Any) -> Any:
        if store.name == "elsewhere":
            raise StoreUnavailable("It does not respond.")
        return real(store, **kwargs)

    monkeypatch.setattr(building, "sealed_backend_for", away)
    run = work_once(copy)
    assert (run.state, run.done) == (Run.State.WAITING, 30)
    services.leave_out_stores(copy.request, note="it is gone", by=officer)
    run = work_once(copy)
    copy.refresh_from_db()
    assert run.state == Run.State.COMPLETE_WITH_EXCEPTIONS
    assert copy.left_out == ["elsewhere"]
    archive = opened(copy)
    assert json_in(archive, "about.json")["not_included"][0]["place"] == "elsewhere"
    assert "elsewhere" in archive.read("index.html").decode()
    assert [row["file"] for row in json_in(archive, "data.json")["sessions"]].count(None) == 1


def test_a_damaged_session_is_named_and_does_not_stop_the_others(
    ada: Subject, officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(SessionUnreadable, "a2")
    monkeypatch.setattr(sealed.SealedBackend, "every_item", away(sealed.SealedBackend.every_item))
    copy = started_copy(ada, by=officer)
    run = work_once(copy)
    copy.refresh_from_db()
    assert (run.state, run.done) == (Run.State.COMPLETE_WITH_EXCEPTIONS, 20)
    text = all_text(opened(copy))
    assert "item 1 of a1" in text
    assert "item 1 of a2" not in text
    assert "damaged" in text


def test_cancelling_leaves_no_file_and_a_case_that_can_build_again(ada: Subject, officer: User) -> None:
    copy = started_copy(ada, by=officer)
    assert in_process(copy, "in the second session") == -signal.SIGKILL
    runs.cancel_run(Run.objects.get(pk=copy.run_id), by=officer)
    copy.refresh_from_db()
    copy.request.refresh_from_db()
    assert (copy.state, bytes(copy.key)) == (AccessCopy.State.DELETED, b"")
    assert copy.request.state == SubjectRequest.State.CHECKED
    assert files_in_folder() == []
    again = services.build_access_copy(copy.request, by=officer)
    assert work_once(again).state == Run.State.COMPLETE


def test_cancelling_the_request_deletes_what_was_built(ada: Subject, officer: User) -> None:
    copy = started_copy(ada, by=officer)
    assert in_process(copy, "in the second session") == -signal.SIGKILL
    request = cancel_request(copy.request, note="withdrawn", by=officer)
    assert request.state == SubjectRequest.State.CANCELLED
    assert files_in_folder() == []


def test_a_builder_whose_copy_was_deleted_meanwhile_leaves_nothing(
    ada: Subject, officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = started_copy(ada, by=officer)
    real = files.new_sealed_file

    def deleted_meanwhile(path: Path, of: AccessCopy) -> Any:
        if path.name == "copy":
            run = Run.objects.get(pk=copy.run_id)
            runs.cancel_run(run)
            files.make_parts_folder(copy)
        return real(path, of)

    monkeypatch.setattr(files, "new_sealed_file", deleted_meanwhile)
    run = work_once(copy)
    assert run.state == Run.State.CANCELLED
    assert files_in_folder() == []
    assert delete_copy(copy, reason="expired") is False


def peak_of(copy: AccessCopy, most: int) -> int:
    here, there = PROCESSES.Pipe()
    args = (connection.settings_dict["NAME"], server(), all_settings.ACCESS_COPY_FOLDER, copy.run_id, most, there)
    worker = PROCESSES.Process(target=copy_builder.memory_of_a_build, args=args)
    worker.start()
    state, peak = here.recv()
    worker.join()
    assert state == Run.State.COMPLETE
    return int(peak)


@pytest.mark.parametrize(
    ("most", "size"),
    [(100, 300), (writing.MOST_ITEMS_OF_A_RUN, 60)],
    ids=["short runs", "long runs"],
)
@pytest.mark.release
def test_memory_does_not_grow_with_the_session(officer: User, most: int, size: int) -> None:
    """Runs are divided after `most` items: of sessions with one run and a half, and with ten."""
    attach_main_store()
    few, many = make_subject("few"), make_subject("many")
    for name, count in (("f", most + most // 2), ("m", 10 * most)):
        add_items(name, "first")
        run_sql(
            f"INSERT INTO agent_messages (session_id, message_data) SELECT '{name}',"
            f""" '{{"role": "user", "content": "' || repeat(md5(n::text), {size}) || '"}}'"""
            f" FROM generate_series(1, {count}) AS n"
        )
    attach_sessions(SessionRecord.objects.filter(session_id="f"), few, by=officer)
    attach_sessions(SessionRecord.objects.filter(session_id="m"), many, by=officer)
    of_few = peak_of(started_copy(few, by=officer), most)
    copy = started_copy(many, by=officer)
    of_many = peak_of(copy, most)
    copy.refresh_from_db()
    assert len(json_in(opened(copy), "sessions/1.json")["items"]) == 10 * most + 1
    # Ten megabytes of text at least: what was kept would show.
    assert of_many < of_few + 5 * MEGABYTES, (of_few, of_many)
