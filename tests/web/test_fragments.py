"""Whole page or part of it: decided in one place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import include, path

from memadmin.web.fragments import render_page_or_fragment


def tea(request: HttpRequest) -> HttpResponse:
    return render_page_or_fragment(request, "tea.html", {"kind": "<green>"}, fragment="cup", status=409)


urlpatterns = [path("tea/", tea), path("", include("memadmin.urls"))]

pytestmark = pytest.mark.usefixtures("tea_house")


@pytest.fixture
def tea_house() -> Iterator[None]:
    with override_settings(ROOT_URLCONF=__name__):
        yield


def test_browser_gets_the_whole_page(outsider: Client) -> None:
    response = outsider.get("/tea/")
    assert "<html" in response.text
    assert "a cup of &lt;green&gt;" in response.text


def test_htmx_gets_the_part_alone(outsider: Client) -> None:
    response = outsider.get("/tea/", headers={"HX-Request": "true"})
    assert response.text.strip() == "<p>a cup of &lt;green&gt;</p>"


@pytest.mark.parametrize("reason", ["HX-Boosted", "HX-History-Restore-Request"])
def test_boosted_and_restored_requests_get_the_whole_page(outsider: Client, reason: str) -> None:
    assert "<html" in outsider.get("/tea/", headers={"HX-Request": "true", reason: "true"}).text


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_cache_is_told_what_the_answer_depends_on(outsider: Client, headers: dict[str, str]) -> None:
    response = outsider.get("/tea/", headers=headers)
    assert response.status_code == 409
    assert {"HX-Request", "HX-Boosted"} <= set(response["Vary"].split(", "))
