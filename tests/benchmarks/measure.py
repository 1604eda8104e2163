"""Taking times: contenders take turns in short rounds, so that what disturbs one disturbs all."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from typing import TypeVar
from urllib.parse import urlencode

Name = TypeVar("Name", bound=Hashable)

ROUNDS = 10
WARM_UP = 5

FORM_TOKEN = "b" * 32
"""Sent as a cookie, as browsers do since their first page, and in forms; the console looks that both are the same."""

Call = Callable[[int], object]
"""Does one request; the argument counts upwards, for requests that should not all ask for the same thing."""


class WrongAnswer(Exception):
    """A page did not show what it was asked for, so its time would mean nothing."""


@dataclass(frozen=True, slots=True)
class Contender:
    call: Call
    cpu_seconds: Callable[[], float] | None = None
    """How much the process that answers has computed so far: what a request costs however busy the machine is."""


@dataclass(slots=True)
class Timing:
    """How long each of a number of requests took, in milliseconds."""

    samples: list[float] = field(default_factory=list)
    cpu_ms: float | None = None
    """Computed by the process that answered, per request."""

    @property
    def p50(self) -> float:
        return statistics.median(self.samples)

    @property
    def p95(self) -> float:
        return sorted(self.samples)[int(0.95 * (len(self.samples) - 1))]

    def as_json(self) -> dict[str, float]:
        cpu = {} if self.cpu_ms is None else {"cpu_ms": round(self.cpu_ms, 2)}
        return {"requests": len(self.samples), "p50_ms": round(self.p50, 2), "p95_ms": round(self.p95, 2), **cpu}


def in_turns(contenders: Mapping[Name, Contender], requests: int) -> dict[Name, Timing]:
    """Times of at least this many requests of each contender, after a warm-up; one client."""
    for contender in contenders.values():
        for number in range(min(WARM_UP, requests)):
            contender.call(number)
    timings = {name: Timing() for name in contenders}
    rounds = min(ROUNDS, requests)
    per_round = -(-requests // rounds)
    for round_number in range(rounds):
        for name, contender in contenders.items():
            timing, clock = timings[name], contender.cpu_seconds
            computed = clock() if clock else 0
            for number in range(round_number * per_round, (round_number + 1) * per_round):
                started = time.perf_counter()
                contender.call(number)
                timing.samples.append((time.perf_counter() - started) * 1000)
            if clock:
                timing.cpu_ms = (timing.cpu_ms or 0) + (clock() - computed) * 1000 / (rounds * per_round)
    return timings


def throughput(make_call: Callable[[], Call], clients: int, requests: int) -> float:
    """Requests a second with a number of clients, each of which asks again as soon as it is answered."""
    calls = [make_call() for _ in range(clients)]
    per_client = -(-requests // clients)

    def ask(call: Call) -> None:
        for number in range(per_client):
            call(number)

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(lambda call: call(0), calls))
        started = time.perf_counter()
        list(pool.map(ask, calls))
        return clients * per_client / (time.perf_counter() - started)


class Browser:
    """A signed-in client that keeps its connection open, as browsers do."""

    def __init__(self, port: int, cookie: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=300)
        self._headers = {"Cookie": f"sessionid={cookie}; csrftoken={FORM_TOKEN}", "Accept": "text/html"}

    def get(self, path: str) -> bytes:
        """Raises WrongAnswer for anything but a page."""
        try:
            response = self._ask(path)
        except RemoteDisconnected:  # the server does not keep a connection that was idle for long
            response = self._ask(path)
        body = response.read()
        if response.status != 200:
            raise WrongAnswer(f"{path} answered {response.status}")
        return body

    def post(self, path: str, form: Mapping[str, object]) -> str:
        """Sends a form, and returns where it leads. Raises WrongAnswer where it leads nowhere."""
        headers = {**self._headers, "Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode({**form, "csrfmiddlewaretoken": FORM_TOKEN})
        self._connection.request("POST", path, body, headers)
        response = self._connection.getresponse()
        response.read()
        if response.status != 302:
            raise WrongAnswer(f"{path} answered {response.status}")
        return response.headers["Location"]

    def count_lines(self, path: str) -> int:
        """Takes a file away, a piece at a time. Raises WrongAnswer."""
        response = self._ask(path)
        if response.status != 200:
            raise WrongAnswer(f"{path} answered {response.status}")
        lines = 0
        while piece := response.read(64 * 1024):
            lines += piece.count(b"\n")
        return lines

    def _ask(self, path: str) -> HTTPResponse:
        self._connection.request("GET", path, headers=self._headers)
        return self._connection.getresponse()


def load_average() -> float:
    return round(os.getloadavg()[0], 2)
