"""Spans of requests, jobs and calls to stores: what they name, and that they repeat nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from memadmin import tracing
from memadmin.web.log_lines import JsonLines
from sessions_app.management.commands.worker import act_as_job
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.circuit_breaker import ask_all
from tests.builders import make_store

VALUE = "quokka-7@example.org"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def breaks(request: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError(VALUE)


breaks.login_required = False  # type: ignore[attr-defined]
urlpatterns = [path("breaks", breaks, name="breaks")]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Spans that ended in this process."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("memadmin"))
    return exporter


def only(recorded: InMemorySpanExporter, name: str) -> tuple[ReadableSpan, Mapping[str, Any]]:
    [span] = [span for span in recorded.get_finished_spans() if span.name == name]
    return span, dict(span.attributes or {})


@pytest.mark.django_db
def test_the_span_of_a_request_names_its_page_and_repeats_no_address(recorded: InMemorySpanExporter) -> None:
    answer = Client().get("/healthz", {"q": VALUE}, headers={"traceparent": PARENT})
    span, attributes = only(recorded, "GET healthz")
    assert attributes == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "memadmin.page": "healthz",
        "memadmin.request_id": answer["X-Request-ID"],
    }
    assert span.parent is None, "Without a proxy, no client chooses the trace."
    Client().get(f"/{VALUE}")
    only(recorded, "GET unknown")
    assert VALUE not in "".join(span.to_json() for span in recorded.get_finished_spans())


@pytest.mark.django_db
def test_behind_a_proxy_its_trace_goes_on(recorded: InMemorySpanExporter) -> None:
    with override_settings(IS_BEHIND_PROXY=True):
        Client().get("/healthz", headers={"traceparent": PARENT, "tracestate": f"vendor={VALUE[:6]}"})
        Client().get("/healthz", headers={"traceparent": VALUE})
    continued, begun = recorded.get_finished_spans()
    assert continued.parent
    assert f"{continued.parent.span_id:016x}" == "b7ad6b7169203331"
    assert not continued.context.trace_state
    assert begun.parent is None


@pytest.mark.urls("tests.web.test_tracing")
@pytest.mark.django_db
def test_a_fault_is_an_error_without_its_message(recorded: InMemorySpanExporter) -> None:
    Client(raise_request_exception=False).get("/breaks")
    span, attributes = only(recorded, "GET breaks")
    assert (span.status.status_code, attributes["error.type"]) == (StatusCode.ERROR, "500")
    assert VALUE not in span.to_json()


def test_a_job_has_a_span_and_the_class_of_its_exception(recorded: InMemorySpanExporter) -> None:
    async def run() -> None:
        raise ValueError(VALUE)

    context = SimpleNamespace(job=SimpleNamespace(task_name="memadmin.runs.jobs.work_on_run", id=7))
    with pytest.raises(ValueError, match=VALUE):
        asyncio.run(act_as_job(run, cast(Any, context), cast(Any, None)))
    span, attributes = only(recorded, "job work_on_run")
    assert attributes == {"memadmin.job": "work_on_run", "memadmin.job_id": 7, "error.type": "ValueError"}
    assert VALUE not in span.to_json()


@pytest.mark.django_db
def test_calls_to_stores_are_within_the_span_of_the_request_also_in_threads(recorded: InMemorySpanExporter) -> None:
    here, elsewhere = make_store("main"), make_store("archive", kind="json_files")

    def fails() -> None:
        raise StoreUnavailable(VALUE)

    with tracing.span("page", {}):
        ask_all({here: lambda: None, elsewhere: fails})
    page, _ = only(recorded, "page")
    calls = {span.attributes["memadmin.store.id"]: span for span in recorded.get_finished_spans() if span.attributes}
    assert set(calls) == {here.pk, elsewhere.pk}
    assert {span.parent and span.parent.span_id for span in calls.values()} == {page.context.span_id}
    failed = calls[elsewhere.pk]
    assert failed.attributes
    assert failed.attributes["error.type"] == "StoreUnavailable"
    assert VALUE not in failed.to_json()


def test_log_lines_name_the_trace(recorded: InMemorySpanExporter) -> None:
    record = logging.LogRecord("memadmin", logging.WARNING, "", 0, "a line", (), None)
    assert "trace_id" not in json.loads(JsonLines().format(record))
    with tracing.span("page", {}) as span:
        entry = json.loads(JsonLines().format(record))
    assert entry["trace_id"] == f"{span.get_span_context().trace_id:032x}"


@pytest.fixture
def collector() -> Iterator[tuple[str, Queue[ExportTraceServiceRequest]]]:
    """A receiver of OTLP over HTTP: its address, and what was sent to it."""
    received: Queue[ExportTraceServiceRequest] = Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.put(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """No line for each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()


PROGRAM = """
from memadmin import tracing
tracing.start("memadmin-web")
with tracing.span("GET home", {"memadmin.page": "home"}):
    pass
"""


@pytest.mark.slow
def test_spans_reach_the_collector_that_the_environment_names(
    collector: tuple[str, Queue[ExportTraceServiceRequest]],
) -> None:
    address, received = collector
    run_program({"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"})
    [of_resource] = received.get(timeout=30).resource_spans
    named = {each.key: each.value.string_value for each in of_resource.resource.attributes}
    assert named["service.name"] == "memadmin-web"
    assert [span.name for span in of_resource.scope_spans[0].spans] == ["GET home"]


@pytest.mark.slow
def test_an_address_without_the_packages_is_said_and_stops_nothing() -> None:
    missing = "import sys; sys.modules['opentelemetry.sdk'] = None\n"
    output = run_program({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, before=missing)
    assert "memadmin[traces] is not installed" in output


def run_program(environment: Mapping[str, str], before: str = "") -> str:
    """Runs PROGRAM in a process with this environment; returns what it wrote to standard error."""
    ended = subprocess.run(
        [sys.executable, "-c", before + PROGRAM],
        cwd=settings.CHECKOUT_DIR,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ended.stderr
