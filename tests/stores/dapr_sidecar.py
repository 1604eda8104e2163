"""A stand-in for a Dapr sidecar: the part of its gRPC service that reads and writes state, on the generated stubs.

No package brings a sidecar. This one keeps values with etags in memory and has Dapr's meaning of first-write and
last-write; where a key is missing it takes any etag, as the Redis state store does, because that is the harder case for
us. A value may have a time to live. It also answers the health check that the SDK's client begins with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import grpc
from dapr.proto import api_service_v1, api_v1, common_v1
from google.protobuf.empty_pb2 import Empty

STATE_STORE = "sessions"

FIRST_WRITE = common_v1.StateOptions.StateConcurrency.CONCURRENCY_FIRST_WRITE


@dataclass
class Kept:
    data: bytes
    etag: str
    expires_at: datetime | None = None

    @property
    def metadata(self) -> dict[str, str]:
        return {"ttlExpireTime": self.expires_at.isoformat()} if self.expires_at else {}


class Sidecar(api_service_v1.DaprServicer):
    def __init__(self) -> None:
        self.values: dict[str, Kept] = {}
        self.numbers, self.lock = count(1), threading.RLock()
        self.refusal: tuple[grpc.StatusCode, str] | None = None
        self.has_etags, self.token = True, ""
        self.before: Callable[[str, str], None] = lambda question, key: None
        """Called before each question is answered, for a test to come in between."""
        self.open = threading.Event()
        self.open.set()
        limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.server = grpc.server(futures.ThreadPoolExecutor(16), options=limits)
        register: Any = api_service_v1.add_DaprServicer_to_server
        register(self, self.server)
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.health = ThreadingHTTPServer(("127.0.0.1", 0), Healthy)
        self.health_thread = threading.Thread(
            target=self.health.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self.health_thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def health_address(self) -> str:
        return f"http://127.0.0.1:{self.health.server_address[1]}"

    def empty(self) -> None:
        self.values.clear()
        self.has_etags, self.token, self.refusal = True, "", None
        self.before = lambda question, key: None

    def leftovers(self, words: str) -> list[str]:
        with self.lock:
            return [key for key, kept in self.values.items() if words.encode() in key.encode() + b" " + kept.data]

    def put(self, key: str, data: bytes) -> None:
        """By somebody who is not the SDK."""
        self.values[key] = Kept(data, str(next(self.numbers)))

    @contextmanager
    def refusing(self, code: grpc.StatusCode, details: str = "no, and here is what was stored: 4711") -> Iterator[None]:
        self.refusal = code, details
        try:
            yield
        finally:
            self.refusal = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes questions, and answers none; what it was asked meanwhile it does not do."""
        self.open.clear()
        try:
            yield
        finally:
            self.open.set()

    def end(self) -> None:
        self.open.set()
        self.server.stop(None).wait()
        self.health.shutdown()
        self.health.server_close()
        self.health_thread.join()

    # --- what it does -------------------------------------------------------------------------------------------------

    def check(self, question: str, request: Any, context: Any) -> None:
        if not self.open.is_set():
            self.open.wait()
            context.abort(grpc.StatusCode.CANCELLED, "too late")
        self.before(question, getattr(request, "key", ""))
        if self.token and dict(context.invocation_metadata()).get("dapr-api-token") != self.token:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "authentication error: api token mismatch")
        if self.refusal:
            context.abort(*self.refusal)
        if request.store_name != STATE_STORE:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"state store {request.store_name} is not found")

    def standing(self, key: str) -> Kept | None:
        kept = self.values.get(key)
        if kept and kept.expires_at and kept.expires_at <= datetime.now(UTC):
            del self.values[key]
            return None
        return kept

    def GetState(self, request: Any, context: Any) -> Any:
        self.check("get", request, context)
        with self.lock:
            kept = self.standing(request.key)
            if kept is None:
                return api_v1.GetStateResponse()
            etag = kept.etag if self.has_etags else ""
            return api_v1.GetStateResponse(data=kept.data, etag=etag, metadata=kept.metadata)

    def GetBulkState(self, request: Any, context: Any) -> Any:
        self.check("get", request, context)
        with self.lock:
            items = []
            for key in request.keys:
                kept = self.standing(key)
                more: Any = {"data": kept.data, "etag": kept.etag, "metadata": kept.metadata} if kept else {}
                items.append(api_v1.BulkStateItem(key=key, **more))
            return api_v1.GetBulkStateResponse(items=items)

    def SaveState(self, request: Any, context: Any) -> Any:
        for state in request.states:
            self.check("save", api_v1.GetStateRequest(store_name=request.store_name, key=state.key), context)
        with self.lock:
            for state in request.states:
                self.check_etag(state, context)
                seconds = state.metadata.get("ttlInSeconds")
                expires_at = datetime.now(UTC) + timedelta(seconds=int(seconds)) if seconds else None
                self.values[state.key] = Kept(state.value, str(next(self.numbers)), expires_at)
        return Empty()

    def DeleteState(self, request: Any, context: Any) -> Any:
        self.check("delete", request, context)
        with self.lock:
            self.check_etag(request, context)
            self.values.pop(request.key, None)
        return Empty()

    def check_etag(self, given: Any, context: Any) -> None:
        kept = self.standing(given.key)
        if kept is None:
            return
        is_first_write = given.options.concurrency == FIRST_WRITE
        if given.etag.value != kept.etag and (given.etag.value or is_first_write):
            context.abort(grpc.StatusCode.ABORTED, "possible etag mismatch. error from state store")


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass
