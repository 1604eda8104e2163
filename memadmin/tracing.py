"""OpenTelemetry spans of requests, jobs and calls to stores. Nothing is recorded unless a collector is named.

Attributes are names from our code, numbers and random ids: never a text, an address or a message of an exception.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

logger = logging.getLogger(__name__)

ADDRESSES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Variables of OpenTelemetry's specification with the address of a collector; one of them turns traces on.

Their names, and those of the attributes: https://opentelemetry.io/docs/specs/
"""

_tracer = trace.get_tracer("memadmin")
_parents = TraceContextTextMapPropagator()


def start(service: str) -> None:
    """Sends this process's spans to the collector that the environment names, by OTLP over HTTP.

    `service` is the name there, unless OTEL_SERVICE_NAME has another. Call it once, after the process was forked.
    """
    if not any(os.environ.get(name) for name in ADDRESSES):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning("No traces are sent: OTEL_EXPORTER_OTLP_ENDPOINT is set, but memadmin[traces] is not installed.")
        return
    named = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or service})
    provider = TracerProvider(resource=named)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


@contextmanager
def span(
    name: str,
    attributes: Mapping[str, str | int],
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    parent: Mapping[str, str] | None = None,
) -> Iterator[Span]:
    """A span around the block, within the current one, or within that of the `traceparent` header in `parent`.

    An exception makes it an error with the class of the exception alone, because messages repeat values.
    """
    # Without `tracestate`, in which a client could send any text.
    context = _parents.extract({"traceparent": parent.get("traceparent", "")}) if parent else None
    with _tracer.start_as_current_span(
        name, context, kind, dict(attributes), record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except Exception as problem:
            fail(current, type(problem).__name__)
            raise


def fail(current: Span, kind: str) -> None:
    """Marks a span as failed, with a class of exception or an HTTP status."""
    current.set_attribute("error.type", kind)
    current.set_status(Status(StatusCode.ERROR))


def trace_id() -> str:
    """The id of the current trace for log lines, 32 hexadecimal digits; empty outside of a recorded span."""
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid and context.trace_flags.sampled else ""
