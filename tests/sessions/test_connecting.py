"""Connecting a store in the browser, and saying with which key its agents seal what they say."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest
from agents import SQLiteSession
from cryptography.fernet import Fernet
from django.db import transaction
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.environment import NamedSecret
from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.connecting import kinds_to_connect
from sessions_app.services.discovery import discover_sessions
from sessions_app.services.store_config import declare_store
from sessions_app.stores.base import StoreHealth, StoreUnavailable
from sessions_app.stores.json_file.backend import JsonFileBackend
from tests.builders import make_store
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.stores.contract import in_agent

pytestmark = pytest.mark.django_db


def form_of(kind: str) -> str:
    return reverse("sessions:connect-kind", args=[kind])


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    (tmp_path / "cust_1.json").write_text(json.dumps([{"role": "user", "content": "Hello"}]))
    return tmp_path


class TestConnecting:
    def test_every_kind_but_the_one_with_triggers_has_a_form(self, administrator: Client) -> None:
        page = administrator.get(reverse("sessions:connect"))
        assert [kind.name for kind in kinds_to_connect()][:2] == ["remote_sql", "sqlite"]
        for kind in kinds_to_connect():
            assert form_of(kind.name) in page.text
            shown = administrator.get(form_of(kind.name))
            for setting in ("name", *kind.setting_names):
                assert f'name="{setting}"' in shown.text
        assert administrator.get(form_of("sqlalchemy")).status_code == 404

    def test_a_folder_is_connected_and_its_sessions_are_on_record(self, administrator: Client, chats: Path) -> None:
        page = administrator.post(form_of("json_file"), {"name": "hotline", "path": str(chats)}, follow=True)
        assert page.redirect_chain == [(reverse("sessions:store", args=["hotline"]), 302)]
        assert "Connected, with 1 session." in page.text
        assert SessionRecord.objects.get().session_id == "cust_1"
        declared = AuditEvent.objects.get(type="store.declared")
        assert AuditActor.objects.get(ref=declared.actor_ref).label == "administrator"

    def test_one_that_cannot_be_reached_gives_the_form_back_and_nothing_is_kept(
        self, administrator: Client, tmp_path: Path
    ) -> None:
        away = tmp_path / "away.db"
        page = administrator.post(
            form_of("sqlite"),
            {"name": "till", "path": str(away), "sessions_table": "mine", "messages_table": "yours", "timezone": "UTC"},
        )
        assert page.status_code == 422
        assert f"There is no file {away}" in page.text
        assert "Nothing was connected." in page.text
        for typed in ("till", str(away), "mine", "yours"):
            assert f'value="{typed}"' in page.text
        assert not SessionStore.objects.exists()
        assert not AuditEvent.objects.filter(type="store.declared").exists()

    @pytest.mark.parametrize(
        ("changed", "sentence"),
        [
            ({"name": ""}, "This field is required."),
            ({"name": "two words"}, "Enter a valid “slug”"),
            ({"path": "here"}, "here is not an absolute path; begin it with /."),
            ({"ending": "a/b"}, "Enter a file name extension"),
        ],
    )
    def test_what_makes_no_sense_is_said_at_its_field(
        self, administrator: Client, chats: Path, changed: dict[str, str], sentence: str
    ) -> None:
        page = administrator.post(form_of("json_file"), {"name": "hotline", "path": str(chats), **changed})
        assert page.status_code == 422
        assert sentence in page.text
        assert not SessionStore.objects.exists()

    def test_a_name_or_a_place_that_another_store_has_is_refused(self, administrator: Client, chats: Path) -> None:
        administrator.post(form_of("json_file"), {"name": "hotline", "path": str(chats)})
        for name, sentence in (
            ("hotline", "There is already a store hotline."),
            ("other", "already uses this location"),
        ):
            page = administrator.post(form_of("json_file"), {"name": name, "path": str(chats)})
            assert page.status_code == 422
            assert sentence in page.text
        assert SessionStore.objects.count() == 1

    def test_one_that_stops_answering_meanwhile_is_connected_and_looked_through_later(
        self, administrator: Client, chats: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*args: object, **kwargs: object) -> NoReturn:
            raise StoreUnavailable("It is away.")

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(JsonFileBackend, "enumerate_sessions", away)
            page = administrator.post(form_of("json_file"), {"name": "hotline", "path": str(chats)}, follow=True)
        assert page.redirect_chain == [(reverse("sessions:store", args=["hotline"]), 302)]
        assert "Connected. The store is not responding now; its sessions are found once it responds." in page.text
        assert not SessionRecord.objects.exists()
        assert discover_sessions() == 1
        assert SessionRecord.objects.get().session_id == "cust_1"

    def test_one_that_stops_answering_before_it_is_attached_is_not_kept(
        self, administrator: Client, chats: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        healthy, asked = JsonFileBackend.health, []

        def away_the_second_time(backend: Any, *, thorough: bool = False) -> StoreHealth:
            asked.append(backend)
            if len(asked) > 1:
                raise StoreUnavailable("It is away.")
            return healthy(backend, thorough=thorough)

        monkeypatch.setattr(JsonFileBackend, "health", away_the_second_time)
        page = administrator.post(form_of("json_file"), {"name": "hotline", "path": str(chats)})
        assert page.status_code == 422
        assert "It is away. Nothing was connected." in page.text
        assert not SessionStore.objects.exists()

    @pytest.mark.django_db(transaction=True)
    def test_of_two_at_once_the_first_keeps_the_name(
        self, administrator: Client, chats: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        with somebody_else() as start:
            with transaction.atomic():
                declare_store("hotline", kind="json_file", options={"path": str(chats)})
                second = start(
                    lambda: administrator.post(form_of("json_file"), {"name": "hotline", "path": str(elsewhere)})
                )
                wait_until_blocked(second)
            page = second.result()
        assert page.status_code == 422
        assert "There is already a store hotline. Nothing was connected." in page.text
        assert SessionStore.objects.get().options["path"] == str(chats)

    def test_a_store_of_this_name_that_is_not_attached_stays_as_it_is(
        self, administrator: Client, chats: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        declare_store("hotline", kind="json_file", options={"path": str(chats)})
        elsewhere = {"path": str(tmp_path_factory.mktemp("elsewhere"))}
        with pytest.raises(registry.AttachRefused, match="There is already a store hotline"):
            declare_store("hotline", kind="json_file", options=elsewhere, must_be_new=True)
        assert SessionStore.objects.get().options["path"] == str(chats)

    def test_a_file_of_the_sdk_is_connected_with_its_own_tables(self, administrator: Client, tmp_path: Path) -> None:
        path = tmp_path / "till.db"
        with closing(SQLiteSession("cust_1", path)) as session:
            in_agent(session.add_items([{"role": "user", "content": "Hello"}]))
        tables = {"sessions_table": "agent_sessions", "messages_table": "agent_messages", "timezone": "UTC"}
        page = administrator.post(form_of("sqlite"), {"name": "till", "path": str(path), **tables}, follow=True)
        assert "healthy" in page.text
        assert SessionRecord.objects.get().session_id == "cust_1"


class TestKey:
    @pytest.fixture
    def store(self, settings: Any) -> SessionStore:
        settings.SESSION_KEYS = (NamedSecret("vault", "TRIED", Fernet.generate_key().decode()),)
        return make_store()

    def test_the_name_of_the_key_is_noted(self, administrator: Client, store: SessionStore) -> None:
        said = {"key": "vault", "ttl": "3600", "session_ids": ""}
        page = administrator.post(reverse("sessions:store-key", args=["main"]), said, follow=True)
        assert "Saved." in page.text
        assert "Agents can read an encrypted item for 1 hour." in page.text
        store.refresh_from_db()
        assert (store.encryption_key, store.encryption_ttl_seconds) == ("vault", 3600)

    def test_a_lifetime_that_was_not_stated_stays_undeclared(self, administrator: Client, store: SessionStore) -> None:
        """The form was filled with the SDK's default: saving the key declared it."""
        address = reverse("sessions:store", args=["main"])
        form = administrator.get(address).context["encryption_form"]
        said = {name: form.initial[name] or "" for name in form.fields} | {"key": "vault"}
        page = administrator.post(reverse("sessions:store-key", args=["main"]), said, follow=True)
        assert "Lifetime of items not declared" in page.text
        store.refresh_from_db()
        assert (store.encryption_key, store.encryption_ttl_seconds) == ("vault", None)

    @pytest.mark.parametrize(
        ("changed", "sentence"),
        [
            ({"key": "elsewhere"}, "Select a valid choice."),
            ({"ttl": "0"}, "greater than or equal to 1"),
            ({"ttl": "99999999999"}, "at most a hundred years"),
            ({"session_ids": "no arrow"}, "no arrow"),
        ],
    )
    def test_what_makes_no_sense_gives_the_form_back(
        self, administrator: Client, store: SessionStore, changed: dict[str, str], sentence: str
    ) -> None:
        said = {"key": "vault", "ttl": "600", "session_ids": "", **changed}
        page = administrator.post(reverse("sessions:store-key", args=["main"]), said)
        assert page.status_code == 422
        assert sentence in page.text
        store.refresh_from_db()
        assert store.encryption_key == ""

    def test_others_see_it_and_have_no_form(self, operator: Client, store: SessionStore) -> None:
        assert "Change key or lifetime" not in operator.get(reverse("sessions:store", args=["main"])).text
