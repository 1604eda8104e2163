"""Pages for what cannot be shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unittest import mock
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError, connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.test import Client, override_settings
from django.urls import path
from django.utils.timezone import now
from django.views.decorators.http import require_POST
from psycopg import errors as postgres

from memadmin import urls
from memadmin.web.errors import csrf_failure, is_database_away
from tests.people import person

handler400, handler403, handler404, handler500 = urls.handler400, urls.handler403, urls.handler404, urls.handler500


def refuse(request: HttpRequest) -> HttpResponse:
    raise PermissionDenied


def lose(request: HttpRequest) -> HttpResponse:
    raise Http404("the name of a customer")


def fail(request: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError("the name of a customer")


def mistake(request: HttpRequest) -> HttpResponse:
    raise SuspiciousOperation


def from_elsewhere(request: HttpRequest) -> HttpResponse:
    return csrf_failure(request)


def too_often(request: HttpRequest) -> HttpResponse:
    return render(request, "429.html", status=429)


def lose_the_database(request: HttpRequest) -> HttpResponse:
    raise OperationalError("connection refused")


def ask_the_database(request: HttpRequest) -> HttpResponse:
    connection.ensure_connection()
    return HttpResponse("answered")


urlpatterns = [
    path("refused/", refuse),
    path("lost/", lose),
    path("failed/", fail),
    path("asks/", ask_the_database),
    path("mistaken/", mistake),
    path("from-elsewhere/", from_elsewhere),
    path("too-often/", too_often),
    path("away/", lose_the_database),
    path("forms-only/", require_POST(fail)),
    *urls.urlpatterns,
]


@pytest.fixture(autouse=True)
def pages_that_fail() -> Iterator[None]:
    with override_settings(ROOT_URLCONF=__name__):
        yield


@pytest.fixture
def database_is_away() -> Iterator[None]:
    def refuse_connection(*args: object, **kwargs: object) -> None:
        raise OperationalError("connection refused") from postgres.OperationalError("connection refused")

    with (
        mock.patch.object(connection, "ensure_connection", refuse_connection),
        mock.patch.object(connection, "_cursor", refuse_connection),
    ):
        yield


def forgiving(client: Client) -> Client:
    """Answers with the error page, as a server does, instead of raising."""
    client.raise_request_exception = False
    return client


def test_refusal_keeps_the_shell_and_names_own_role(operator: Client) -> None:
    response = operator.get("/refused/")
    assert response.status_code == 403
    assert "You are signed in as support." in response.text
    assert 'id="nav"' in response.text


@pytest.mark.django_db
def test_who_signed_in_after_sending_a_form_learns_that_nothing_was_sent(client: Client) -> None:
    """The login leads to the address of the form, which takes no visitors."""
    sent = client.post("/sessions/label/", {"label": "vip"})
    client.force_login(person("support"))
    arrived = client.get(parse_qs(urlsplit(sent["Location"]).query)["next"][0])
    assert arrived.status_code == 405
    assert arrived["Allow"] == "POST"
    assert "Nothing was sent" in arrived.text
    assert 'id="nav"' in arrived.text


def test_refusal_of_a_place_in_the_sidebar_says_who_may(operator: Client) -> None:
    assert "Raw edits is available to: administrator." in operator.get("/admin/auth/user/").text


def test_outsider_learns_that_a_role_is_missing(outsider: Client) -> None:
    assert "You have no role yet." in outsider.get("/refused/").text


def test_refusal_of_anything_else_names_no_role_that_may(operator: Client) -> None:
    assert "is available to" not in operator.get("/refused/").text


@pytest.mark.parametrize("address", ["/lost/", "/never/existed/"])
def test_lost_and_never_existed_look_the_same(operator: Client, address: str) -> None:
    response = operator.get(address)
    assert response.status_code == 404
    assert "It does not exist, was erased, or you don't have access to it." in response.text
    assert "customer" not in response.text
    assert 'id="nav"' in response.text


def test_stranger_gets_a_404_without_the_shell(client: Client, db: None) -> None:
    response = client.get("/never/existed/")
    assert response.status_code == 404
    assert 'id="nav"' not in response.text


def test_failure_shows_no_trace_of_itself(operator: Client) -> None:
    response = forgiving(operator).get("/failed/")
    assert response.status_code == 500
    assert "This page could not be shown" in response.text
    assert "customer" not in response.text
    assert "ZeroDivision" not in response.text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/mistaken/", 400),
        ("/refused/", 403),
        ("/from-elsewhere/", 403),
        ("/lost/", 404),
        ("/forms-only/", 405),
        ("/too-often/", 429),
        ("/failed/", 500),
        ("/away/", 503),
    ],
)
def test_every_error_page_has_the_id_of_the_request_and_the_time_in_utc(
    operator: Client, address: str, status: int
) -> None:
    operator.cookies["time_zone"] = "Pacific/Kiritimati"
    response = forgiving(operator).get(address)
    assert response.status_code == status
    reference = re.search(r"(\d+ \w{3} \d{4}, [\d:]{8}) UTC, request (\w+)", response.text)
    assert reference
    assert reference[2] == response["X-Request-ID"]
    made = datetime.strptime(reference[1], "%d %b %Y, %H:%M:%S").replace(tzinfo=UTC)
    assert abs(now() - made) < timedelta(hours=1)


def test_form_without_proof_of_its_sender_is_refused(db: None) -> None:
    response = Client(enforce_csrf_checks=True).post("/accounts/login/", {"username": "a", "password": "b"})
    assert response.status_code == 403
    assert "This form has expired or came from another site" in response.text


def test_request_to_a_wrong_host_is_refused_with_a_page(client: Client) -> None:
    response = client.get("/accounts/login/", headers={"Host": "elsewhere.example"})
    assert response.status_code == 400
    assert "Bad request" in response.text


@pytest.mark.parametrize("address", ["/asks/", "/refused/", "/accounts/login/", "/admin/"])
def test_database_that_went_away_is_said_on_any_page(operator: Client, database_is_away: None, address: str) -> None:
    response = forgiving(operator).get(address)
    assert response.status_code == 503
    assert "The database is not responding" in response.text
    assert response["Retry-After"] == "10"
    assert f'href="{address}"' in response.text


def test_try_again_after_a_post_does_not_repeat_it(operator: Client, database_is_away: None) -> None:
    response = forgiving(operator).post("/asks/")
    assert response.status_code == 503
    assert 'href="/"' in response.text


def test_address_that_never_existed_needs_no_database(operator: Client, database_is_away: None) -> None:
    response = operator.get("/never/existed/")
    assert response.status_code == 404
    assert 'id="nav"' not in response.text


@pytest.mark.parametrize(
    ("cause", "is_away"),
    [
        (postgres.OperationalError("connection refused"), True),
        (postgres.ConnectionFailure(), True),
        (postgres.AdminShutdown(), True),
        (postgres.CannotConnectNow(), True),
        (postgres.TooManyConnections(), True),
        (postgres.QueryCanceled(), False),
        (postgres.DeadlockDetected(), False),
        (postgres.LockNotAvailable(), False),
    ],
)
def test_trouble_of_one_statement_is_not_the_database_away(cause: Exception, is_away: bool) -> None:
    error = OperationalError()
    error.__cause__ = cause
    assert is_database_away(error) is is_away
