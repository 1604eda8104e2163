"""Connecting a store in the browser, and saying with which key its agents seal what they say."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents import SQLiteSession
from cryptography.fernet import Fernet
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.environment import NamedSecret
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.connecting import kinds_to_connect
from tests.builders import make_store
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
            ({"path": "here"}, "here is not a whole path; begin it with /."),
            ({"ending": "a/b"}, "Give the ending of a file"),
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
        for name, sentence in (("hotline", "There is a store hotline already."), ("other", "is in this place already")):
            page = administrator.post(form_of("json_file"), {"name": name, "path": str(chats)})
            assert page.status_code == 422
            assert sentence in page.text
        assert SessionStore.objects.count() == 1

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
        assert "Agents read a sealed item for 1 hour." in page.text
        store.refresh_from_db()
        assert (store.encryption_key, store.encryption_ttl_seconds) == ("vault", 3600)

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
        assert "Change the key" not in operator.get(reverse("sessions:store", args=["main"])).text
