"""A port at which a process without pages answers Prometheus with its own metrics: the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from django.utils.crypto import constant_time_compare
from prometheus_client import make_wsgi_app

from memadmin.process_metrics import OF_PROCESS

PATH = "/metrics"


def is_allowed(authorization: str, token: str) -> bool:
    """Whether a header `Authorization` has the bearer token."""
    scheme, _, given = authorization.partition(" ")
    return scheme.lower() == "bearer" and constant_time_compare(given.strip(), token)


def metrics_application(token: str) -> Callable[..., Iterable[bytes]]:
    """A WSGI application that answers `GET /metrics` with the metrics of this process, for requests with the token."""
    answer_metrics = make_wsgi_app(OF_PROCESS)

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, headers, text = "", [("Content-Type", "text/plain")], b""
        if environ["PATH_INFO"] != PATH:
            status, text = "404 Not Found", b"Metrics are at /metrics.\n"
        elif environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            status = "405 Method Not Allowed"
        elif not is_allowed(environ.get("HTTP_AUTHORIZATION", ""), token):
            status, text = "401 Unauthorized", b"A bearer token is required.\n"
            headers.append(("WWW-Authenticate", "Bearer"))
        if status:
            start_response(status, headers)
            return [text]
        answered: Iterable[bytes] = answer_metrics(environ, start_response)
        return answered

    return answer


class ThreadedServer(ThreadingMixIn, WSGIServer):
    """A thread for each scrape, so that one that hangs delays no other."""

    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    timeout = 10
    """Seconds for which a connection may be silent."""

    def log_message(self, *args: Any) -> None:
        """Nothing: each scrape would be a line."""


def serve_metrics(host: str, port: int, token: str) -> WSGIServer:
    """Answers at this port, in a thread that ends with the process. Raises OSError."""
    server = make_server(
        host, port, metrics_application(token), server_class=ThreadedServer, handler_class=QuietHandler
    )
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
