"""A company's sign-in that runs beside the tests: a real provider of OpenID Connect, on this machine."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from django.test import Client, override_settings
from oidc_provider_mock import User as CompanyUser
from oidc_provider_mock import run_server_in_thread

BEGIN = "/accounts/company/login/"


@contextmanager
def company(*people: CompanyUser, domains: list[str] | None = None) -> Iterator[str]:
    """Runs the provider, with our settings pointing to it; gives its address."""
    with run_server_in_thread(user_claims=people) as server:
        address = f"http://localhost:{server.server_port}"
        with company_at(address, domains=domains):
            yield address


@contextmanager
def company_at(address: str, domains: list[str] | None = None) -> Iterator[None]:
    providers: dict[str, Any] = copy.deepcopy(settings.SOCIALACCOUNT_PROVIDERS)
    app = providers["openid_connect"]["APPS"][0]
    app |= {"client_id": "memadmin", "secret": "not so secret", "settings": {"server_url": address}}
    with override_settings(
        OIDC_ISSUER=address, OIDC_DOMAINS=domains or [], SOCIALACCOUNT_PROVIDERS=providers, OIDC_NAME="Tea company"
    ):
        yield


def somebody(sub: str, email: str, *, is_verified: object = True) -> CompanyUser:
    claims: dict[str, object] = {"email": email, "email_verified": is_verified, "preferred_username": sub}
    return CompanyUser(sub=sub, claims=claims)


def come_in(client: Client, sub: str, *, to: str = "") -> object:
    """The whole way there and back; returns the answer of the last page of ours."""
    away = client.get(BEGIN, {"next": to} if to else {}, headers={"Sec-Fetch-Site": "same-origin"})
    assert away.status_code == 302, away
    sent_back = requests.post(away["Location"], data={"sub": sub}, allow_redirects=False, timeout=10)
    assert sent_back.status_code == 302, sent_back.text
    back = urlsplit(sent_back.headers["Location"])
    return client.get(f"{back.path}?{back.query}")
