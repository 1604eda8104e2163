"""What a load balancer learns, without signing in."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from pytest_django.fixtures import Settings

from memadmin.web import health


def test_healthz_answers_without_a_database(client: Client) -> None:
    """No `db` fixture here: a query would fail the test."""
    assert client.get("/healthz").status_code == 200


@pytest.mark.django_db
def test_readyz_is_ready_when_all_migrations_are_there(client: Client) -> None:
    response = client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"ready": True, "problems": [], "degraded": []})


@pytest.mark.django_db
def test_readyz_names_a_missing_migration(client: Client) -> None:
    newest = max(name for app, name in health.last_migrations() if app == "sessions_app")
    MigrationRecorder(connection).record_unapplied("sessions_app", newest)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["problems"] == [f"Migrations are missing (sessions_app.{newest}): run `memadmin migrate`."]


def test_readyz_says_so_when_the_database_is_away(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(recorder: MigrationRecorder) -> None:
        raise OperationalError("connection refused for role console")

    monkeypatch.setattr(MigrationRecorder, "applied_migrations", refuse)
    response = client.get("/readyz")
    assert (response.status_code, response.json()["problems"]) == (503, ["The database is not responding."])


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_only_ask(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405


def test_probes_are_not_sent_to_https(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/healthz").status_code == 200
    assert client.get("/accounts/login/").status_code == 301


@pytest.mark.parametrize("host", ["10.0.0.7:8000", "elsewhere.example", "no such host"])
def test_probes_by_any_name_are_answered(client: Client, host: str) -> None:
    response = client.get("/healthz", headers={"host": host})
    assert (response.status_code, response.text) == (200, "alive\n")
    assert response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.django_db
def test_a_ready_answer_by_address_says_no_more_than_by_name(client: Client) -> None:
    by_address = client.get("/readyz", headers={"host": "10.0.0.7:8000"})
    assert (by_address.status_code, by_address.json()) == (200, client.get("/readyz").json())


@pytest.mark.parametrize("path", ["/", "/accounts/login/", "/healthz/", "/readyz/../"])
def test_nothing_else_is_answered_by_an_unknown_name(client: Client, path: str) -> None:
    """No `db` fixture here: the name is refused before any query."""
    assert client.get(path, headers={"host": "10.0.0.7:8000"}).status_code == 400
