"""A refused request is one line of the log; a fault of the server has its traceback."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import connection, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client
from django.test.utils import override_settings
from django.urls import path, reverse

from memadmin import audit, log_context
from memadmin.log_context import LogContext
from memadmin.web.log_lines import JsonLines, TextLines, traceback_of
from tests.audit.log_pages import NOTED

VALUE = "quokka-7@example.org"
"""A constant: a traceback shows lines of code."""

REFUSALS: dict[str, tuple[Exception, str]] = {
    "denied": (PermissionDenied("not yours"), "Forbidden (Permission denied): /denied"),
    "bad": (BadRequest("a strange\nform"), r"a strange\nform: /bad"),
    "suspicious": (SuspiciousOperation("a strange\nvalue"), "a strange value"),
    "large": (RequestDataTooBig("too much"), "too much"),
    "missing": (Http404("nothing"), "Not Found: /missing"),
}


def raising(problem: Exception) -> Callable[[HttpRequest], HttpResponse]:
    def view(request: HttpRequest) -> HttpResponse:
        raise problem

    view.login_required = False  # type: ignore[attr-defined]
    return view


def querying(statement: str) -> Callable[[HttpRequest], HttpResponse]:
    def view(request: HttpRequest) -> HttpResponse:
        with connection.cursor() as cursor:
            cursor.execute(statement, [VALUE])
        raise AssertionError("the statement must fail")

    view.login_required = False  # type: ignore[attr-defined]
    return view


urlpatterns = [
    *(path(name, raising(problem)) for name, (problem, _) in REFUSALS.items()),
    path("fault", raising(ZeroDivisionError(VALUE)), name="fault"),
    path("wrong", querying("SELECT %s::integer"), name="wrong"),
    path("away", querying("SELECT %s FROM no_such_table"), name="away"),
]


def answering(status: int) -> Callable[..., HttpResponse]:
    return lambda request, exception=None: HttpResponse(status=status)


handler400, handler403, handler404, handler500 = map(answering, (400, 403, 404, 500))


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """The text that the handler of the settings writes."""
    # Beside the one of the settings are those of pytest.
    [handler] = [each for each in logging.getLogger("django").handlers if type(each) is logging.StreamHandler]
    text = io.StringIO()
    monkeypatch.setattr(handler, "stream", text)
    with override_settings(ROOT_URLCONF=__name__):
        yield text


@pytest.mark.django_db
@pytest.mark.parametrize("name", REFUSALS)
def test_refusal_is_one_line(logged: io.StringIO, name: str) -> None:
    Client().get(f"/{name}")
    [line] = logged.getvalue().splitlines()
    assert line.endswith(REFUSALS[name][1])


@pytest.mark.django_db
def test_unknown_host_and_missing_token_are_one_line(logged: io.StringIO) -> None:
    Client().get("/missing", headers={"host": "elsewhere.example"})
    [line] = logged.getvalue().splitlines()
    assert "Invalid HTTP_HOST header: 'elsewhere.example'. You may need to add 'elsewhere.example' to MEMADMIN_" in line
    assert line.endswith(
        "MEMADMIN_ALLOWED_HOSTS. Behind a proxy, let it pass the Host header of the browser's request."
    )
    Client(enforce_csrf_checks=True).post("/missing")
    assert len(logged.getvalue().splitlines()) == 2


@pytest.fixture
def as_json(logged: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, Any]]]:
    """The entries that the handler writes as JSON; each must be one line."""
    [handler] = [each for each in logging.getLogger("django").handlers if type(each) is logging.StreamHandler]
    monkeypatch.setattr(handler, "formatter", JsonLines())
    return lambda: [json.loads(line) for line in logged.getvalue().splitlines()]


@pytest.mark.django_db
def test_fault_has_its_traceback_without_the_message(logged: io.StringIO) -> None:
    answer = Client(raise_request_exception=False).get("/fault")
    first, *others = logged.getvalue().splitlines()
    assert first.endswith(f"{answer['X-Request-ID']} Internal Server Error: /fault")
    assert others[0] == "Traceback (most recent call last):"
    assert others[-1] == "ZeroDivisionError"
    assert VALUE not in logged.getvalue()


@pytest.mark.django_db
def test_fault_is_one_line_of_json(as_json: Callable[[], list[dict[str, Any]]]) -> None:
    answer = Client(raise_request_exception=False).get("/fault")
    [entry] = as_json()
    assert (entry["level"], entry["logger"], entry["page"], entry["status"]) == (
        "ERROR",
        "django.request",
        "fault",
        500,
    )
    assert entry["request_id"] == answer["X-Request-ID"]
    assert entry["error"] == "ZeroDivisionError"
    assert "in view\n    raise problem" in entry["traceback"]
    assert datetime.fromisoformat(entry["time"]).utcoffset() == timedelta(0)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("page", "state", "ending"),
    [("wrong", "22P02", ": 22P02\n"), ("away", "42P01", 'relation "no_such_table" does not')],
)
def test_errors_of_the_database_have_their_state_and_no_values(
    as_json: Callable[[], list[dict[str, Any]]], page: str, state: str, ending: str
) -> None:
    with transaction.atomic():
        Client(raise_request_exception=False).get(f"/{page}")
        transaction.set_rollback(True)
    [entry] = as_json()
    assert entry["sqlstate"] == state
    assert ending in entry["traceback"]
    assert VALUE not in json.dumps(entry)


@pytest.mark.django_db
def test_an_address_that_is_no_page_is_not_repeated(as_json: Callable[[], list[dict[str, Any]]]) -> None:
    Client().get("/quokka-7@example.org")
    [entry] = as_json()
    assert entry["message"] == "Not Found: an unknown address"
    assert (entry["page"], entry["status"]) == ("unknown", 404)


@pytest.mark.django_db
def test_lines_that_django_writes_about_an_answer_name_its_request(
    as_json: Callable[[], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = Client().get("/no-such-page")
    monkeypatch.setattr("memadmin.web.health.reasons_not_to_serve", lambda: ["The database is not responding."])
    away = Client().get("/readyz")
    found, probed = as_json()
    assert [found["request_id"], probed["request_id"]] == [missing["X-Request-ID"], away["X-Request-ID"]]
    assert (probed["message"], probed["page"], probed["status"]) == ("Service Unavailable: /readyz", "readyz", 503)


@pytest.mark.django_db
def test_each_request_has_an_id_of_its_own_which_the_client_cannot_choose() -> None:
    answers = [Client().get("/healthz", headers={"x-request-id": "quokka"}) for _ in range(2)]
    ids = {answer["X-Request-ID"] for answer in answers}
    assert len(ids) == 2
    assert all(re.fullmatch(r"[0-9a-f]{16}", each) for each in ids)
    assert log_context.current() is None


@pytest.mark.django_db
def test_the_error_page_names_the_request(administrator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(request: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("memadmin.deploy.system.views.system_page", breaks)
    administrator.raise_request_exception = False
    page = administrator.get(reverse("system:system"))
    assert page.status_code == 500
    assert f"request {page['X-Request-ID']}" in page.text


@pytest.mark.django_db
def test_lines_name_the_audit_events_of_their_request() -> None:
    record = logging.LogRecord("memadmin", logging.WARNING, "", 0, "one\nline", (), None)
    with log_context.within(LogContext(request_id="00ff")):
        events = [str(audit.record_alone(NOTED)) for _ in range(2)]
        entry = json.loads(JsonLines().format(record))
    assert (entry["message"], entry["request_id"], entry["audit_events"]) == ("one line", "00ff", events)
    with log_context.within(LogContext(job="drain_outbox", job_id=7)):
        entry = json.loads(JsonLines().format(record))
    assert (entry["job"], entry["job_id"], "request_id" in entry) == ("drain_outbox", 7, False)


@pytest.mark.django_db
def test_requests_are_lines_at_level_info(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="memadmin.requests"):
        Client().get("/healthz", {"q": "quokka"})
    [record] = [record for record in caplog.records if record.name == "memadmin.requests"]
    entry = json.loads(JsonLines().format(record))
    assert (entry["page"], entry["status"]) == ("healthz", 200)
    assert entry["milliseconds"] >= 0
    assert "quokka" not in json.dumps(entry)


def test_other_handlers_get_the_exception() -> None:
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, "refused", (), (KeyError, KeyError(), None))
    record.status_code = 403
    assert TextLines("%(message)s").format(record) == "refused"
    assert record.exc_info
    record.status_code = 500
    assert "KeyError" in TextLines("%(message)s").format(record)


def test_causes_come_first() -> None:
    try:
        try:
            raise KeyError("quokka")
        except KeyError as missing:
            raise ValueError("quokka") from missing
    except ValueError as problem:
        text = traceback_of(problem)
    assert text.index("KeyError") < text.index("The above exception led to") < text.rindex("ValueError")
    assert text.endswith("\nValueError")
