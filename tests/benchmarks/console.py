"""The console under measurement, beside the plain admin and the bare query, at two sizes at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.conversations import Size
from tests.benchmarks.database import BenchServer
from tests.benchmarks.measure import Browser, Call, Timing, in_turns, throughput
from tests.benchmarks.pages import PAGES, Arena, Place, Site
from tests.benchmarks.processes import ConsoleProcess, say
from tests.benchmarks.seed import seed
from tests.benchmarks.servers import WebServer, running_server

CLIENTS = 8
CONSOLE = "tests.benchmarks.settings"
PLAIN_ADMIN = "tests.benchmarks.plain_admin.settings"
PREPARE = "tests.benchmarks.prepare.main"


@dataclass(frozen=True, slots=True)
class ConsoleFigures:
    preparation: dict[str, dict[str, float]]
    """Seconds of each step, by the number of sessions. What was there already took next to nothing."""
    pages: dict[str, dict[str, Timing]]
    """By page, then by who was asked."""
    requests_per_s: dict[int, float]
    """Of the session list, by the number of clients."""
    peak_memory_mb: float | None


class Stage:
    """One size of the data: its pages, and whoever can be asked for them, until the stack is left."""

    def __init__(
        self, stack: ExitStack, server: BenchServer, size: Size, prepared: Any, *, requests: int, has_admin: bool
    ) -> None:
        self._stack, self._server, self._size = stack, server, size
        self.seconds: dict[str, float] = prepared["seconds"]
        self._places = {key: [Place(**place) for place in each[:requests]] for key, each in prepared["places"].items()}
        self._cookies: dict[str, str] = {CONSOLE: prepared["cookie"], PLAIN_ADMIN: prepared["admin_cookie"]}
        self.console = self._serve(CONSOLE)
        self._admin = self._serve(PLAIN_ADMIN) if has_admin else None

    def arena(self) -> Arena:
        """With connections of its own."""
        connection = self._stack.enter_context(closing(self._server.connect(self._size.database)))
        admin = self._visit(self._admin, PLAIN_ADMIN) if self._admin else None
        return Arena(self._places, self._visit(self.console, CONSOLE), connection, admin)

    def _visit(self, server: WebServer, settings: str) -> Site:
        return Site(server, Browser(server.port, self._cookies[settings]))

    def _serve(self, settings: str) -> WebServer:
        environment = {**self._server.environment(self._size.database), "DJANGO_SETTINGS_MODULE": settings}
        log = self._server.data_dir / f"{settings}-{self._size.sessions}.log"
        return self._stack.enter_context(running_server(environment, log))


def measure_console(server: BenchServer, size: Size, requests: int) -> ConsoleFigures:
    """At this size and at a tenth of it, in the same rounds."""
    with (
        ConsoleProcess(size.database) as on_full,
        ConsoleProcess(size.tenth().database) as on_tenth,
        ThreadPoolExecutor() as pool,
    ):
        # Both use the same static files, so one of them collects them.
        preparing = (
            pool.submit(prepare, server, size, on_full, collect_static=True),
            pool.submit(prepare, server, size.tenth(), on_tenth),
        )
        for_full, for_tenth = (each.result() for each in preparing)
    with ExitStack() as stack:
        full = Stage(stack, server, size, for_full, requests=requests, has_admin=True)
        tenth = Stage(stack, server, size.tenth(), for_tenth, requests=requests, has_admin=False)
        say("Checking every page.")
        contenders = {
            (key, f"{name}{suffix}"): contender
            for suffix, arena in (("", full.arena()), ("_tenth", tenth.arena()))
            for key in PAGES
            for name, contender in arena.contenders(key).items()
        }
        say(f"Measuring {len(PAGES)} pages.")
        pages: dict[str, dict[str, Timing]] = {key: {} for key in PAGES}
        for (key, name), timing in in_turns(contenders, requests).items():
            pages[key][name] = timing

        def new_reader() -> Call:
            return full.arena().contenders("list")["console"].call

        rates = {clients: throughput(new_reader, clients, requests) for clients in (1, CLIENTS)}
        preparation = {f"{size.sessions}": full.seconds, f"{size.tenth().sessions}": tenth.seconds}
        return ConsoleFigures(preparation, pages, rates, full.console.peak_memory_mb())


def prepare(server: BenchServer, size: Size, console: ConsoleProcess, *, collect_static: bool = False) -> Any:
    """Seeds a size unless it is there, brings our side up to date, and tells where its pages are."""
    if not server.is_seeded(size.database):
        say(f"Seeding {size.sessions:,} sessions.")
        seed(server, size, size.database)
        server.mark_seeded(size.database)
    return console.run(PREPARE, collect_static)
