"""What every answer says about itself."""

from __future__ import annotations

import pytest
from django.test import Client

POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "report-uri /policy-report/",
    "require-trusted-types-for 'script'",
    "trusted-types default",
}


def policy_of(client: Client, address: str) -> set[str]:
    return set(client.get(address)["Content-Security-Policy"].split("; "))


@pytest.mark.parametrize("address", ["/accounts/login/", "/no/such/page/"])
def test_nothing_inline_and_nothing_from_elsewhere_may_run(client: Client, db: None, address: str) -> None:
    assert policy_of(client, address) == POLICY


def test_admin_has_the_same_policy(administrator: Client) -> None:
    assert policy_of(administrator, "/admin/") == POLICY


def test_no_page_tells_other_sites_where_it_was(administrator: Client) -> None:
    response = administrator.get("/admin/")
    assert response["Referrer-Policy"] == "same-origin"
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("address", ["/accounts/login/", "/no/such/page/"])
def test_page_has_no_inline_script_or_style(client: Client, db: None, address: str) -> None:
    text = client.get(address).text
    assert "<style" not in text
    assert " style=" not in text
    assert "<script>" not in text
    assert " onclick=" not in text
