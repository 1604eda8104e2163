"""What reviewers wait for: pages of the queue, one proposal, and decisions, while a tenth of all memories waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.benchmarks.database import BenchServer
from tests.benchmarks.measure import Browser, Contender, Timing, WrongAnswer, in_turns
from tests.benchmarks.processes import ConsoleProcess
from tests.benchmarks.servers import WebServer

FIND = "tests.benchmarks.queue_pages.tell"

DECISIONS: dict[str, dict[str, str]] = {"approve": {}, "reject": {"reason": "not_needed"}}
"""What somebody says to each besides what they read."""

# As they were, without a trace: the next time as many wait, and the same first.
PUT_BACK = """
DELETE FROM memories_app_review WHERE memory_id = ANY (%(ids)s);
DELETE FROM memories_app_vectornote WHERE memory_id = ANY (%(ids)s);
UPDATE memories_app_memory SET status = 'proposed', is_verified = false, decided_at = NULL WHERE id = ANY (%(ids)s);
UPDATE memories_app_memory SET claimed_by_id = NULL, claimed_until = NULL WHERE claimed_by_id IS NOT NULL
"""


def measure_reviewing(
    server: BenchServer, web: WebServer, database: str, console: ConsoleProcess, requests: int
) -> dict[str, Timing]:
    """By what is asked for, by turns, over HTTP, as a reviewer."""
    # Some more for the rounds, which are of whole numbers, and for warming up.
    told = console.run(FIND, len(DECISIONS) * (requests + 20))
    waiting = iter(told["proposals"])
    with put_back(server, database, [key for key, _, _ in told["proposals"]]):
        browser = Browser(web.port, told["cookie"])

        def page(addresses: list[str]) -> Contender:
            return Contender(lambda number: browser.get(addresses[number % len(addresses)]), web.cpu_seconds)

        def decision(verb: str) -> Contender:
            def decide(number: int) -> None:
                _, address, read = next(waiting)
                # The page of the next one: an answer that is none would be as quick.
                if "decided=" not in (led := browser.post(f"{address}{verb}/", {**DECISIONS[verb], **read})):
                    raise WrongAnswer(f"A decision led to {led}")

            return Contender(decide, web.cpu_seconds)

        pages = {title: page(addresses) for title, addresses in told["pages"].items()}
        return in_turns({**pages, **{verb: decision(verb) for verb in DECISIONS}}, requests)


@contextmanager
def put_back(server: BenchServer, database: str, proposals: list[Any]) -> Iterator[None]:
    """Lets them wait again that were decided about meanwhile."""
    try:
        yield
    finally:
        with server.connect(database) as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in PUT_BACK.split(";\n"):
                given = {"ids": proposals} if "%(ids)s" in statement else None
                connection.execute(statement, given)
