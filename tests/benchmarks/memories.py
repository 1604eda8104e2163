"""Figures of memories, by `python -m tests.benchmarks.memories`: recall in the database and for agents; pages; vectors.

200,000 memories by default, 50 a subject, of whom one has a thousand; half of them proposals, 100,000 at most; a
thousand memories that all share; and sessions, whose list other pages are compared with. A second database has a tenth.
Both stay for the next time. Agents ask under their own role, with its row policies; what reviewers decide is put back
afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.conninfo import make_conninfo

from memadmin.client import candidates, embedding, recalling
from memadmin.client.connection import Console
from memadmin.client.memories import MemoryClient
from memadmin.settings import DATA_DIR
from tests.benchmarks import report
from tests.benchmarks.conversations import LEAST_SESSIONS, Size
from tests.benchmarks.database import BenchServer
from tests.benchmarks.measure import Browser, Contender, Timing, in_turns, load_average
from tests.benchmarks.processes import ConsoleProcess, load_console, say
from tests.benchmarks.report import Target
from tests.benchmarks.reviewing import measure_reviewing
from tests.benchmarks.seed import seed as seed_sessions
from tests.benchmarks.servers import running_server

WARM_UP = 20
FIND_PAGES = "tests.benchmarks.memory_pages.tell"
EMBEDDED_TEXTS = 5_000
SEED_VERSION = "3"
PREPARE = "tests.benchmarks.prepare.main"
MOST_SESSIONS = 2_000
"""For the list of sessions, with which other pages are compared; with more it takes the same time."""
SESSION_LIST = "session list"
AT_MOST_LISTS = 2
"""How many times the median of the list of sessions another page or a decision may take."""
AT_MOST_GROWTH = 1.3
LEAST_MEMORIES = 200
KEY = "bench_subject"
ONE = UUID(int=1)
"""The subject who is asked for."""

ABOUT = (
    "refund",
    "seat",
    "delay",
    "baggage",
    "invoice",
    "meal",
    "visa",
    "upgrade",
    "hotel",
    "voucher",
    "ticket",
    "pet",
)
WAYS = ("prefers", "asked about", "complained about", "wants a note on", "never takes", "was told of", "paid for")
DETAILS = (
    "by card",
    "in spring",
    "at the front",
    "for the family",
    "on long trips",
    "before nine",
    "in euros",
    "by e-mail",
)

SEED = """
INSERT INTO sessions_app_subject (id) SELECT ('00000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid
FROM generate_series(1, %(subjects)s) AS n;
INSERT INTO sessions_app_subjectalias (subject_id, kind, key, is_primary)
SELECT ('00000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid, 'user',
       CASE n WHEN 1 THEN %(key)s ELSE 'bench_' || n END, true
FROM generate_series(1, %(subjects)s) AS n;
INSERT INTO memories_app_memory (
    subject_id, kind, source, statement, status, is_verified, content_hash, screened_hash, embedded_hash, embedder,
    embedding, provenance, risk_flags, hints, decided_at, proposed_at, awaiting_since
)
SELECT
    subject_id, made.kind, made.source, made.statement, CASE WHEN waits THEN 'proposed' ELSE 'approved' END,
    NOT waits, hash, hash, hash, %(embedder)s, vector, CASE WHEN n %% 2 = 0 THEN 'explicit' ELSE 'inferred' END,
    CASE WHEN waits AND n %% 50 = 1 THEN '{link}' ELSE '{}' END::varchar[],
    CASE WHEN waits AND n %% 20 = 2 THEN '{near_duplicate}' ELSE '{}' END::varchar[],
    CASE WHEN NOT waits THEN at END, at, at
FROM (
    SELECT
        n, n > %(of_one)s AND n <= %(of_one)s + %(proposals)s AS waits, vector,
        pool.statement || ' ' || n AS statement, now() - n * interval '1 second' AS at,
        CASE WHEN n > %(memories)s - %(shared)s THEN NULL
             ELSE ('00000000-0000-0000-0000-' || lpad(to_hex(
                 CASE WHEN n <= %(of_one)s THEN 1 ELSE 2 + n %% (%(subjects)s - 1) END), 12, '0'))::uuid END
            AS subject_id
    FROM generate_series(1, %(memories)s) AS n JOIN bench_pool AS pool ON pool.id = n %% %(pool)s
) AS counted
-- Many are of a kind and source of which few wait.
CROSS JOIN LATERAL (
    SELECT CASE WHEN is_other THEN 'procedure' ELSE 'fact' END AS kind,
           CASE WHEN is_other THEN 'tool' ELSE 'user' END AS source, counted.statement
    FROM (VALUES (n %% CASE WHEN waits THEN 1000 ELSE 5 END = 0)) AS chance (is_other)
) AS made
-- As the gate hashes it, which does so anew at each change.
CROSS JOIN LATERAL (
    SELECT encode(sha256(convert_to(jsonb_build_array(
        subject_id, made.kind, '', made.statement, '{}'::jsonb, '[]'::jsonb)::text, 'UTF8')), 'hex') AS hash
) AS hashed
"""


def main() -> None:
    arguments = parse_arguments()
    server = BenchServer(arguments.data_dir, is_tuned=arguments.memories >= 100_000)
    counts = (arguments.memories, max(arguments.memories // 10, LEAST_MEMORIES))
    load_console(server)
    # Both before texts are embedded, which starts threads.
    with ConsoleProcess(database_of(counts[0])) as console, ConsoleProcess(database_of(counts[1])) as on_tenth:
        seconds = seed(server, console, counts[0])
        seed(server, on_tenth, counts[1])
        load = [load_average()]
        in_database, for_agent = measure_recall(server, database_of(counts[0]), arguments.requests)
        pages = measure_pages(server, console, counts[0], arguments.requests)
        tenth = measure_pages(server, on_tenth, counts[1], arguments.requests)
    rate = measure_embedding()
    load.append(load_average())
    targets = [
        Target("recall in the database: p95", in_database.p95, "at most", 15, "ms"),
        Target("recall for an agent: p95", for_agent.p95, "at most", 25, "ms"),
        Target("texts embedded a second, one core", rate, "at least", 5_000, ""),
        *page_targets(pages, tenth),
    ]
    report.print_timings("page or decision", pages)
    report.print_targets(targets)
    result = {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": report.machine(),
        "load": load,
        "memories": arguments.memories,
        "seeded_s": seconds,
        "recall_in_database": in_database.as_json(),
        "recall_for_agent": for_agent.as_json(),
        "pages": {title: timing.as_json() for title, timing in pages.items()},
        "pages_tenth": {title: timing.as_json() for title, timing in tenth.items()},
        "embedded_per_s": round(rate),
        "targets": [target.as_json() for target in targets],
    }
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    say(f"Written to {arguments.json}.")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.memories", description=__doc__)
    parser.add_argument("--memories", type=int, default=200_000, help="at least 200; default: 200,000")
    parser.add_argument("--requests", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--data-dir", type=Path, default=DATA_DIR / "bench", help="default: %(default)s")
    parser.add_argument("--json", type=Path, help="default: bench-memories.json in the data directory")
    arguments = parser.parse_args()
    arguments.json = arguments.json or arguments.data_dir / "bench-memories.json"
    return arguments


def database_of(memories: int) -> str:
    return f"memories_{memories}"


def page_targets(pages: Mapping[str, Timing], tenth: Mapping[str, Timing]) -> Iterator[Target]:
    """Growth is that of the share of the session list, since both sizes are not measured at the same time."""
    for title, each in pages.items():
        if title != SESSION_LIST:
            share = each.p50 / pages[SESSION_LIST].p50
            share_at_tenth = tenth[title].p50 / tenth[SESSION_LIST].p50
            yield Target(f"{title}: {report.OVER_LIST}", share, "at most", AT_MOST_LISTS, "times")
            yield Target(f"{title}: over a tenth", share / share_at_tenth, "at most", AT_MOST_GROWTH, "times")


def seed(server: BenchServer, console: ConsoleProcess, memories: int) -> float:
    """Seconds that it took; nothing where they are there already."""
    database = database_of(memories)
    if server.is_seeded(database, SEED_VERSION):
        console.command("migrate", "--verbosity=0")
        # What a migration brought is to have its owner and rights, as after any upgrade.
        console.command("db_roles", "--apply")
        return 0.0
    began = time.perf_counter()
    seed_sessions(server, Size(max(LEAST_SESSIONS, min(MOST_SESSIONS, memories // 10))), database)
    console.run(PREPARE, collect_static=False)
    say(f"Writing {memories:,} memories.")
    embedder = embedding.load(embedding.OFFLINE)
    assert embedder is not None
    pool = [f"{way} {about} {detail}" for way in WAYS for about in ABOUT for detail in DETAILS]
    with server.connect(database) as connection:
        # Not the triggers' time: what is measured is what was stored.
        connection.execute("SET session_replication_role = replica")
        connection.execute("CREATE TABLE bench_pool (id int PRIMARY KEY, statement text, vector vector(256))")
        with connection.cursor() as cursor, cursor.copy("COPY bench_pool FROM STDIN") as copy:
            for number, (text, vector) in enumerate(zip(pool, embedder.embed(pool), strict=True)):
                copy.write_row((number, text, as_text(vector)))
        numbers = {
            "memories": memories,
            "subjects": max(memories // 50, 2),
            "of_one": min(1000, memories // 10),
            "shared": min(1000, memories // 10),
            "proposals": min(100_000, memories // 2),
            "pool": len(pool),
            "key": KEY,
            "embedder": embedder.name,
        }
        for statement in SEED.split(";\n"):
            connection.execute(statement, {name: numbers[name] for name in numbers if f"%({name})s" in statement})
        connection.execute("VACUUM ANALYZE")
    console.command("db_roles", "--apply")
    server.mark_seeded(database, SEED_VERSION)
    return round(time.perf_counter() - began, 1)


def as_text(vector: list[float]) -> str:
    return f"[{','.join(format(number, '.6g') for number in vector)}]"


def questions(count: int) -> list[str]:
    chance = random.Random(7)
    return [f"What about my {chance.choice(ABOUT)} {chance.choice(DETAILS)}?" for _ in range(count)]


def measure_recall(server: BenchServer, database: str, requests: int) -> tuple[Timing, Timing]:
    """Finding and reading the candidates; and the whole of `MemoryClient.recall`, which embeds, ranks and records."""
    asked = questions(WARM_UP + requests)
    embedder = embedding.load(embedding.OFFLINE)
    assert embedder is not None
    vectors = embedder.embed(asked)
    address = {**server.address(), "user": "memadmin_agents", "dbname": database}
    with psycopg.connect(**address) as connection:

        def find(number: int) -> None:
            with connection.transaction():
                connection.execute(candidates.SET_RUN, candidates.run_of(ONE))
                given = candidates.parameters(asked[number], vectors[number], embedder=embedder.name)
                found = candidates.read(connection.execute(candidates.FIND, given).fetchall())
            assert recalling.choose(found).chosen

        in_database = timed(find, requests)
    return in_database, asyncio.run(measure_client(make_conninfo(**address), asked, requests))


def timed(call: Callable[[int], object], requests: int) -> Timing:
    timing = Timing()
    for number in range(WARM_UP + requests):
        began = time.perf_counter()
        call(number)
        if number >= WARM_UP:
            timing.samples.append((time.perf_counter() - began) * 1000)
    return timing


async def measure_client(dsn: str, asked: list[str], requests: int) -> Timing:
    # More patient than agents: the figure tells of a slow machine, and no question is given up for it.
    client, timing = MemoryClient(Console(dsn, seconds=60)), Timing()
    for number in range(WARM_UP + requests):
        began = time.perf_counter()
        recalled: Any = await client.recall(asked[number], KEY)
        if number >= WARM_UP:
            timing.samples.append((time.perf_counter() - began) * 1000)
        assert recalled.choice.chosen, recalled.refused
    await client.aclose()
    return timing


def measure_pages(server: BenchServer, console: ConsoleProcess, memories: int, requests: int) -> dict[str, Timing]:
    """Lists by what they show and reviewing, each asked for by turns, over HTTP."""
    database = database_of(memories)
    told = console.run(FIND_PAGES)
    with running_server(server.environment(database), server.data_dir / "memory-pages.log") as web:
        browser = Browser(web.port, told["cookie"])

        def contender(addresses: list[str]) -> Contender:
            return Contender(lambda number: browser.get(addresses[number % len(addresses)]), web.cpu_seconds)

        lists = in_turns({title: contender(addresses) for title, addresses in told["pages"].items()}, requests)
        reviewing = measure_reviewing(server, web, database, console, requests)
    return {**lists, **{f"review queue, {title}": timing for title, timing in reviewing.items()}}


def measure_embedding() -> float:
    """Short texts a second, by the processor time of one core."""
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    embedder = embedding.load(embedding.OFFLINE)
    assert embedder is not None
    texts = [f"{question} {number}" for number, question in enumerate(questions(EMBEDDED_TEXTS))]
    embedder.embed(texts[:100])
    began = time.process_time()
    embedder.embed(texts)
    return EMBEDDED_TEXTS / (time.process_time() - began)


if __name__ == "__main__":
    main()
