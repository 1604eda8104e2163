"""Encrypted connections that servers refuse, or want: said on the store's page and by check_stores, on real servers."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from sessions_app import registry
from sessions_app.models import SessionStore
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.redis import server as redis_asking
from tests.stores.mariadb import MariaDb
from tests.stores.postgres import PostgresServer
from tests.stores.remote_agents import certificates
from tests.stores.servers import RedisServer, own_redis
from tests.stores.test_redis import own_certificate

pytestmark = pytest.mark.slow

VARIABLE = "TLS_URL"

Connect = Callable[..., SessionStore]
"""Declares a store of a kind at an address."""


@pytest.fixture
def connect(db: None, monkeypatch: pytest.MonkeyPatch) -> Connect:
    def declared(kind: str, address: str) -> SessionStore:
        monkeypatch.setenv(VARIABLE, address)
        return declare_store("away", kind=kind, options={"url_env": VARIABLE})

    return declared


def is_told(store: SessionStore, sentence: str, administrator: Client) -> None:
    """Everywhere where somebody looks; and attaching is refused with it."""
    printed = StringIO()
    call_command("check_stores", stdout=printed)
    page = administrator.get(reverse("sessions:store", args=[store.name])).text
    for told in (printed.getvalue(), page):
        assert re.search(sentence, told), told
        assert "secret:word" not in told
    with pytest.raises(registry.AttachRefused, match=sentence):
        registry.plan_attachment(store)
    with pytest.raises(StoreUnavailable, match=sentence):
        backend_for(store).erase_session("talk")


class TestPostgres:
    """It knows no TLS."""

    @pytest.mark.parametrize(
        "query", [{"sslmode": "require"}, {"ssl": "require"}, {"sslmode": "verify-full", "sslrootcert": certificates()}]
    )
    def test_a_server_without_it_is_not_spoken_to(
        self, postgres_on_tcp: PostgresServer, connect: Connect, administrator: Client, query: dict[str, str]
    ) -> None:
        store = connect("remote_sql", postgres_on_tcp.address(**query))
        is_told(store, f"{VARIABLE} asks for an encrypted connection. The server offers none", administrator)

    def test_without_asking_for_it_the_same_address_is_spoken_to(
        self, postgres_on_tcp: PostgresServer, connect: Connect
    ) -> None:
        (problem, _) = registry.health(connect("remote_sql", postgres_on_tcp.address(sslmode="prefer"))).problems
        assert "are not in the database" in problem.sentence

    def test_a_wrong_password_is_told(
        self, postgres_on_tcp: PostgresServer, connect: Connect, administrator: Client
    ) -> None:
        address = postgres_on_tcp.url(password="not it").render_as_string(hide_password=False)
        store = connect("remote_sql", address)
        is_told(store, f"refuses the user name or the password in {VARIABLE}", administrator)


class TestMariaDb:
    def test_a_server_without_it_is_not_spoken_to(
        self, mariadb: MariaDb, connect: Connect, administrator: Client
    ) -> None:
        url = mariadb.url(database="mysql")
        address = url.set(query={**url.query, "ssl_ca": certificates()}).render_as_string(hide_password=False)
        is_told(connect("remote_sql", address), f"{VARIABLE} asks for an encrypted connection", administrator)


class TestRedis:
    def test_a_server_without_it_is_not_spoken_to(
        self, redis_server: RedisServer, connect: Connect, administrator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It takes the beginning of TLS for a command, and waits for the rest of it."""
        monkeypatch.setattr(redis_asking, "ANSWER_SECONDS", 0.1)
        store = connect("redis", f"rediss://localhost:{redis_server.port}/0")
        is_told(store, "cannot be reached: TLS failed; it may not speak TLS on this port", administrator)

    def test_nor_one_whose_certificate_nobody_here_trusts(
        self, tmp_path: Path, connect: Connect, administrator: Client
    ) -> None:
        certificate, key = own_certificate(tmp_path)
        files = {"tls_cert_file": str(certificate), "tls_key_file": str(key), "tls_ca_cert_file": str(certificate)}
        with own_redis(is_on_tls=True, tls_auth_clients="no", **files) as server:
            store = connect("redis", f"rediss://localhost:{server.port}/0")
            is_told(store, "its TLS certificate is not trusted here", administrator)
