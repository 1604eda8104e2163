"""Figures of sealed sessions, by `python -m tests.benchmarks.encryption`: opening and looking at seals, sealing anew.

On one core, without a database: what a page, an inspection and a rotation compute for an item. Processor time, so that
other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django
from agents import SQLiteSession, TResponseInputItem
from agents.extensions.memory import EncryptedSession
from cryptography.fernet import Fernet

from memadmin.environment import NamedSecret
from memadmin.settings import DATA_DIR
from sessions_app.items import Position, StoredItem
from tests.benchmarks import report
from tests.benchmarks.measure import load_average
from tests.benchmarks.report import Target

ITEM_BYTES = 300
ITEMS_A_PAGE = 100
OPENED_PER_SECOND = 10_000
ROUNDS = 5
"""The best counts: what a core can do."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.encryption", description=__doc__)
    parser.add_argument("--items", type=int, default=20_000, help="how many a round; default: %(default)s")
    parser.add_argument("--json", type=Path, default=DATA_DIR / "bench-encryption.json", help="default: %(default)s")
    arguments = parser.parse_args()
    figures = measure(arguments.items)
    targets = [
        Target("items of 300 bytes opened a second, one core", figures["opened"], "at least", OPENED_PER_SECOND),
    ]
    report.print_targets(targets)
    for name, rate in figures.items():
        print(f"{name}: {rate:,.0f} items/s")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": report.machine(),
        "load": load_average(),
        "items_per_s": {name: round(rate) for name, rate in figures.items()},
        "targets": [target.as_json() for target in targets],
    }
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def measure(item_count: int) -> dict[str, float]:
    """Items a second by what is done with them."""
    from sessions_app.encryption import Keyring, Sealing, WrapperIds
    from sessions_app.encryption.rotation import Rotation

    old, new = (Fernet.generate_key().decode() for _ in range(2))
    keys = Keyring.of([NamedSecret("old", "OLD", old), NamedSecret("new", "NEW", new)])
    sealing = Sealing("old", timedelta(minutes=10), WrapperIds(), keys)
    items = sealed_items(old, item_count)
    pages = [items[start : start + ITEMS_A_PAGE] for start in range(0, len(items), ITEMS_A_PAGE)]
    now = datetime.now(UTC)

    def look(opens: bool) -> None:
        # Each page is another request: its session's key is derived anew.
        for page in pages:
            sealing.of_session("s").examined(page, at=now, opens=opens)

    def reseal() -> None:
        rotation = Rotation.of(keys.keys["old"], keys.keys["new"], sealing.of_session("s"))
        for item in items:
            rotation.key_state(item)
            rotation.resealed(item)

    return {
        "opened": rate(lambda: look(True), item_count),
        "looked at": rate(lambda: look(False), item_count),
        "sealed anew": rate(reseal, item_count),
    }


def rate(work: Callable[[], None], item_count: int) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return item_count / min(times)


def sealed_items(key: str, item_count: int) -> Sequence[StoredItem]:
    """As the SDK stores them, each with ITEM_BYTES of JSON inside."""
    bare = len(json.dumps({"content": "", "role": "user"}, separators=(",", ":")))
    item: Any = {"content": "x" * (ITEM_BYTES - bare), "role": "user"}

    async def seal() -> list[TResponseInputItem]:
        inner = SQLiteSession("s", ":memory:")
        await EncryptedSession("s", inner, encryption_key=key).add_items([item] * item_count)
        return list(await inner.get_items())

    texts = [json.dumps(envelope, separators=(",", ":")) for envelope in asyncio.run(seal())]
    at = datetime.now(UTC)
    return [
        StoredItem(str(number), Position((at.isoformat(), number)), text, len(text), at)
        for number, text in enumerate(texts, start=1)
    ]


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memadmin.settings")
    django.setup()
    main()
