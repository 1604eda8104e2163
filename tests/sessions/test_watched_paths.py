"""A path with `*`: its files and folders become stores by themselves, and what cannot is named and tried again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import SQLiteSession
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.models import AuditActor, AuditEvent
from sessions_app import jobs, registry
from sessions_app.models import SessionRecord, SessionStore, WatchedPath
from sessions_app.services import connecting, path_watch
from sessions_app.services.path_watch import TRIED_AGAIN_AFTER, connect_new_places, look_for_new_stores, watch_path
from sessions_app.services.store_config import declare_store
from tests.stores.contract import in_agent

pytestmark = pytest.mark.django_db


def make_file(path: Path, session_id: str = "cust_1") -> Path:
    """A file of the SDK's own class, with one session."""
    path.parent.mkdir(parents=True, exist_ok=True)

    async def write() -> None:
        session = SQLiteSession(session_id, path)
        await session.add_items([{"role": "user", "content": "Hello"}])
        session.close()

    in_agent(write())
    return path


def make_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "cust_1.json").write_text(json.dumps([{"role": "user", "content": "Hello"}]))
    return path


def names() -> set[str]:
    return set(SessionStore.objects.values_list("name", flat=True))


def attach_store(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("attach_store", *arguments)
    return str(capsys.readouterr().out)


def attach_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(attach_store(capsys, *arguments, "--json"))
    return told


@pytest.fixture
def watched(tmp_path: Path) -> WatchedPath:
    return watch_path("bots", "sqlite", options={"path": f"{tmp_path}/*.db"})


class TestLooking:
    def test_a_file_that_comes_later_becomes_a_store_by_the_job(self, watched: WatchedPath, tmp_path: Path) -> None:
        make_file(tmp_path / "support.db")
        look_for_new_stores()
        assert names() == {"bots-support"}
        make_file(tmp_path / "sales.db")
        with audit.acting(audit.Actor("job", "look_for_new_stores")):
            jobs.look_for_new_stores(int(now().timestamp()))
        assert names() == {"bots-support", "bots-sales"}
        assert SessionRecord.objects.filter(store__name="bots-sales").count() == 1
        for event_type in ("store.declared", "store.attached"):
            event = AuditEvent.objects.filter(type=event_type).latest("number")
            assert AuditActor.objects.get(ref=event.actor_ref).label == "look_for_new_stores"

    def test_folders_of_json_are_watched_and_files_beside_them_are_not(self, tmp_path: Path) -> None:
        make_folder(tmp_path / "chats-1.5")
        (tmp_path / "readme.txt").write_text("no folder")
        look = connect_new_places(watch_path("chats", "json_file", options={"path": f"{tmp_path}/*"}))
        assert (names(), look.places, look.refused) == ({"chats-chats-15"}, 1, {})
        assert SessionRecord.objects.get().session_id == "cust_1"

    def test_looking_again_changes_nothing_and_notes_nothing(self, watched: WatchedPath, tmp_path: Path) -> None:
        make_file(tmp_path / "support.db")
        (tmp_path / "other.db").write_text("this is no database, however long one reads on in it")
        connect_new_places(watched)
        events = AuditEvent.objects.count()
        for _ in range(3):
            assert not connect_new_places(watched, tries_again=True).connected
        assert AuditEvent.objects.count() == events

    def test_what_cannot_be_connected_is_named_and_tried_again_later(
        self, watched: WatchedPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wrong = tmp_path / "wrong.db"
        wrong.write_text("this is no database, however long one reads on in it")
        make_file(tmp_path / "right.db")
        connect_new_places(watched)
        assert names() == {"bots-right"}
        assert set(watched.refused) == {str(wrong)}

        wrong.unlink()
        make_file(wrong)
        assert not connect_new_places(watched).connected  # Not yet: a wrong file is not asked twice a minute.
        assert set(watched.refused) == {str(wrong)}
        monkeypatch.setattr(path_watch, "now", lambda: now() + 2 * TRIED_AGAIN_AFTER)
        assert [store.name for store in connect_new_places(watched).connected] == ["bots-wrong"]
        watched.refresh_from_db()
        assert watched.refused == {}

    def test_a_file_of_another_store_and_kind_is_named(self, watched: WatchedPath, tmp_path: Path) -> None:
        file = make_file(tmp_path / "shop.db")
        declare_store("shop", kind="advanced_sqlite", options={"path": str(file)})
        SessionStore.objects.update(attached_at=now())
        assert connect_new_places(watched).refused == {str(file): "The store shop already uses this location."}
        assert names() == {"shop"}

    def test_a_file_that_somebody_connected_or_detached_is_left_alone(
        self, watched: WatchedPath, tmp_path: Path
    ) -> None:
        declare_store("shop", kind="sqlite", options={"path": str(make_file(tmp_path / "shop.db"))})
        look = connect_new_places(watched)
        assert (look.places, look.connected, look.refused) == (1, [], {})

    def test_a_file_that_vanished_stays_a_store_that_is_down(self, watched: WatchedPath, tmp_path: Path) -> None:
        file = make_file(tmp_path / "support.db")
        connect_new_places(watched)
        file.unlink()
        connect_new_places(watched)
        assert registry.health(SessionStore.objects.get()).state == "down"
        assert SessionRecord.objects.count() == 1

    def test_files_of_one_name_are_told_by_their_folders(self, tmp_path: Path) -> None:
        for folder in ("a/sales", "a/support", "b/sales", "c/sales"):
            make_file(tmp_path / folder / "memory.db")
        connect_new_places(watch_path("bots", "sqlite", options={"path": f"{tmp_path}/**/*.db"}))
        assert names() == {"bots-memory", "bots-support-memory", "bots-sales-memory", "bots-memory-2"}

    def test_names_that_are_no_words_and_what_sqlite_keeps_beside_a_file(self, tmp_path: Path) -> None:
        shop = tmp_path / "shop"
        make_file(shop / "☕.db")
        (shop / "☕.db-wal").touch()
        (shop / "☕.db-shm").touch()
        (shop / "broken\udcff").write_text("no database")
        look = connect_new_places(watch_path("bots", "sqlite", options={"path": f"{shop}/*"}))
        assert names() == {"bots-shop"}
        assert list(look.refused) == [f"{shop}/broken�"]

    def test_it_makes_so_many_stores_and_says_what_it_left_out(
        self, watched: WatchedPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(path_watch, "MOST_STORES", 3)
        for number in range(5):
            make_file(tmp_path / f"{number}.db")
        first = connect_new_places(watched, most=2)
        assert (len(first.connected), first.waiting, first.left_out) == (2, 1, 2)
        second = connect_new_places(watched, most=2)
        assert (len(second.connected), second.waiting, second.left_out) == (1, 0, 2)
        assert len(connect_new_places(watched, most=2).connected) == 0
        assert "2 left out, because one path can have 3 stores at most" in path_watch.about(watched)

    def test_a_path_that_is_not_watched_any_more_does_not_come_back(
        self, watched: WatchedPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_file(tmp_path / "support.db")

        def removed_meanwhile(watched: WatchedPath, look: path_watch.PathWatchResult) -> list[str]:
            path_watch.stop_watching(WatchedPath.objects.get())
            return []

        monkeypatch.setattr(path_watch, "_unconnected", removed_meanwhile)
        connect_new_places(watched)
        assert not WatchedPath.objects.exists()


class TestCommand:
    def test_it_attaches_what_is_there_and_watches_from_then_on(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        make_file(tmp_path / "support.db")
        (tmp_path / "wrong.db").write_text("this is no database, however long one reads on in it")
        path = f"{tmp_path}/*.db"
        told = attach_store(capsys, "bots", "--kind", "sqlite", "--path", path)
        assert "bots-support is attached, with 1 registered session." in told
        assert f"{path} is now watched for new stores: 1 new store, 2 files, 1 not connected." in told
        assert f"{tmp_path}/wrong.db is not connected: " in told
        assert WatchedPath.objects.get().path == path

        call_command("check_stores")
        told = capsys.readouterr().out
        assert f"bots watches {path}: 2 files, 1 not connected." in told
        assert f"  - {tmp_path}/wrong.db is not connected: " in told
        call_command("check_stores", as_json=True)
        (about,) = json.loads(capsys.readouterr().out)["watched_paths"]
        assert (about["name"], about["path"], about["places"]) == ("bots", path, 2)
        assert set(about["refused"]) == {f"{tmp_path}/wrong.db"}

    def test_it_is_safe_to_repeat_and_answers_scripts(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ("bots", "--kind", "sqlite", "--path", f"{tmp_path}/*.db")
        assert attach_json(capsys, *arguments)["stores"] == []  # Nothing is there yet, and what comes is watched for.
        make_file(tmp_path / "support.db")
        told = attach_json(capsys, *arguments)
        assert [(store["store"], store["sessions"]) for store in told["stores"]] == [("bots-support", 1)]
        assert attach_json(capsys, *arguments)["stores"] == []
        assert AuditEvent.objects.filter(type="watched_path.added").count() == 1

    def test_a_dry_run_changes_nothing(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        make_file(tmp_path / "support.db")
        arguments = ("bots", "--kind", "sqlite", "--path", f"{tmp_path}/*.db", "--dry-run")
        told = attach_store(capsys, *arguments)
        assert "-- Record that the store is attached" in told
        assert all(line.startswith("--") for line in told.splitlines() if "watched" in line)
        (store,) = attach_json(capsys, *arguments)["stores"]
        assert (store["store"], store["is_dry_run"]) == ("bots-support", True)
        assert not WatchedPath.objects.exists()
        assert not SessionStore.objects.exists()

    def test_removing_it_keeps_its_stores(
        self, watched: WatchedPath, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        make_file(tmp_path / "support.db")
        connect_new_places(watched)
        assert "would" not in attach_store(capsys, "bots", "--remove", "--dry-run")
        assert WatchedPath.objects.exists()
        assert "is no longer watched" in attach_store(capsys, "bots", "--remove")
        assert not WatchedPath.objects.exists()
        assert SessionStore.objects.get().attached_at

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["--path", "here/*.db"], "here/*.db is not an absolute path; begin it with /."),
            (["--path", "/x/*.db", "--mode", "drop"], "cannot have triggers"),
            (["--path", "/x/*.db", "--timezone", "Riga"], "'Riga' is not a time zone"),
            (["--path", "/x/*.db", "--ending", ".json"], "has no setting ending"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, arguments: list[str], sentence: str) -> None:
        with pytest.raises(CommandError, match=sentence.replace("*", r"\*").replace(".", r"\.")):
            call_command("attach_store", "bots", "--kind", "sqlite", *arguments)
        assert not WatchedPath.objects.exists()

    def test_a_name_means_one_path_and_no_store(self, watched: WatchedPath) -> None:
        declare_store("till", kind="sqlite", options={"path": "/none/till.db"})
        for name, sentence in (
            ("bots", "There is already a watched path bots"),
            ("till", "There is already a store till"),
        ):
            with pytest.raises(CommandError, match=sentence):
                call_command("attach_store", name, "--kind", "sqlite", "--path", "/other/*.db")
        with pytest.raises(CommandError, match="at most 40 characters"):
            call_command("attach_store", "b" * 41, "--kind", "sqlite", "--path", "/other/*.db")
        with pytest.raises(CommandError, match="is not a file or folder"):
            call_command("attach_store", "red", "--kind", "redis", "--path", "/other/*.db")


class TestPages:
    def test_a_path_with_a_star_is_watched_from_the_connect_page(self, administrator: Client, tmp_path: Path) -> None:
        make_folder(tmp_path / "support")
        form = reverse("sessions:connect-kind", args=["json_file"])
        assert "A path with <code>*</code> connects each matching file" in administrator.get(form).text
        page = administrator.post(form, {"name": "chats", "path": f"{tmp_path}/*"}, follow=True)
        assert page.redirect_chain == [(reverse("sessions:stores"), 302)]
        assert "The path is now watched. Current matches: 1; 1 new store." in page.text
        assert names() == {"chats-support"}
        added = AuditEvent.objects.get(type="watched_path.added")
        assert AuditActor.objects.get(ref=added.actor_ref).label == "administrator"

        page = administrator.post(form, {"name": "chats", "path": f"{tmp_path}/other-*"})
        assert page.status_code == 422
        assert "There is already a watched path chats" in page.text

    def test_the_page_of_stores_names_what_is_watched_and_what_is_wrong(
        self, administrator: Client, operator: Client, watched: WatchedPath, tmp_path: Path
    ) -> None:
        (tmp_path / "<b>wrong.db").write_text("this is no database, however long one reads on in it")
        make_file(tmp_path / "support.db")
        page = administrator.post(reverse("sessions:watched-look"), follow=True)
        assert "Checked for new files: 1 new store." in page.text
        assert "&lt;b&gt;wrong.db is not connected: " in page.text
        assert "2 files, 1 not connected." in page.text
        assert AuditEvent.objects.filter(type="watched_path.asked").count() == 1

        remove = reverse("sessions:watched-remove", args=[watched.pk])
        assert remove in page.text
        assert remove not in operator.get(reverse("sessions:stores")).text
        page = administrator.post(remove, follow=True)
        assert "“bots” is no longer watched. Its stores are kept." in page.text
        assert names() == {"bots-support"}

    def test_ten_wrong_files_are_named_and_the_others_counted(
        self, administrator: Client, watched: WatchedPath
    ) -> None:
        refused: dict[str, str] = {f"/none/{number}.db": "No." for number in range(12)}
        WatchedPath.objects.update(
            looked_at=now(), found={"places": 12, "waiting": 0, "left_out": 0, "refused": refused}
        )
        page = administrator.get(reverse("sessions:stores"))
        assert page.text.count("is not connected: No.") == 10
        assert "and 2 more" in page.text


def test_broken_variant_without_a_memory_of_what_was_refused_a_wrong_file_is_asked_each_time(
    watched: WatchedPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong.db").write_text("this is no database, however long one reads on in it")
    asked: list[str] = []

    def connect(name: str, *arguments: Any, **settings: Any) -> SessionStore:
        asked.append(name)
        return connecting.connect_store(name, *arguments, **settings)

    monkeypatch.setattr(path_watch, "connect_store", connect)
    connect_new_places(watched), connect_new_places(watched)
    assert asked == ["bots-wrong"]
    WatchedPath.objects.update(found={}, tried_at=None)
    connect_new_places(WatchedPath.objects.get())
    assert asked == ["bots-wrong"] * 2
