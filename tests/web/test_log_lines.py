"""A refused request is one line of the log; a fault of the server has its traceback."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator

import pytest
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client
from django.test.utils import override_settings
from django.urls import path

from memadmin.web.log_lines import RefusalsInOneLine

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


urlpatterns = [
    *(path(name, raising(problem)) for name, (problem, _) in REFUSALS.items()),
    path("fault", raising(ZeroDivisionError("a fault"))),
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


@pytest.mark.django_db
def test_fault_has_its_traceback(logged: io.StringIO) -> None:
    Client(raise_request_exception=False).get("/fault")
    lines = logged.getvalue()
    assert "Traceback (most recent call last)" in lines
    assert "ZeroDivisionError: a fault" in lines


def test_other_handlers_get_the_exception() -> None:
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, "refused", (), (KeyError, KeyError(), None))
    record.status_code = 403
    assert RefusalsInOneLine("%(message)s").format(record) == "refused"
    assert record.exc_info
    record.status_code = 500
    assert "KeyError" in RefusalsInOneLine("%(message)s").format(record)
