"""How often what helps is among the first five: words alone, meaning alone, and both fused, on labelled cases.

    python -m tests.benchmarks.recall [FILE]

FILE has the shape of tests/data/recall-cases.json. Runs in a transaction that is rolled back.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent.parent / "data" / "recall-cases.json"
FIRST = 5


@dataclass(frozen=True, slots=True)
class Score:
    """Of all asks, how many have what helps at the first place and among the first five."""

    asks: int
    at_1: float
    at_5: float


def measure(cases: Mapping[str, Any]) -> dict[str, Score]:
    """The scores of each way; memories are written to the database as approved ones, and embedded."""
    ranks: dict[str, list[int | None]] = {"words alone": [], "meaning alone": [], "both": []}
    shared = {name: _approved(text, None) for name, text in cases["shared"].items()}
    for group in cases["subjects"]:
        subject = _subject(group["name"])
        names = {_approved(text, subject): name for name, text in group["memories"].items()}
        names |= {memory: name for name, memory in shared.items()}
        for query, wanted in group["asks"]:
            for way, order in _orders(query, subject):
                places = [place for place, found in enumerate(order, 1) if names[found] in wanted]
                ranks[way].append(min(places, default=None))
    return {way: _score(found) for way, found in ranks.items()}


def _score(ranks: list[int | None]) -> Score:
    def share(first: int) -> float:
        return sum(rank is not None and rank <= first for rank in ranks) / len(ranks)

    return Score(len(ranks), share(1), share(FIRST))


def _orders(query: str, subject: Any) -> Iterator[tuple[str, list[Any]]]:
    """What each way puts in which order: without what words say the same function goes by meaning alone."""
    from django.conf import settings
    from django.db import connection

    from memadmin.client import candidates, embedding
    from memadmin.client.recalling import choose

    embedder = embedding.load(settings.EMBEDDER)
    assert embedder is not None
    with connection.cursor() as cursor:
        cursor.execute(candidates.SET_RUN, candidates.run_of(subject.pk))
        cursor.execute(
            candidates.FIND, candidates.parameters(query, embedder.embed([query])[0], embedder=embedder.name)
        )
        found = candidates.read(cursor.fetchall())
    by_words = [replace(each, likeness=None) for each in found if each.found_words]
    by_meaning = [replace(each, found_words=()) for each in found if each.likeness is not None]
    for way, some in (("words alone", by_words), ("meaning alone", by_meaning), ("both", found)):
        yield way, [chosen.memory.id for chosen in choose(some, budget=100_000).chosen]


def _subject(name: str) -> Any:
    from sessions_app.models import Subject, SubjectAlias

    subject = Subject.objects.create()
    SubjectAlias.objects.create(subject=subject, kind="user", key=f"recall case: {name}", is_primary=True)
    return subject


def _approved(statement: str, subject: Any) -> Any:
    from tests.memories.builders import approved

    return approved(statement, subject=subject, is_embedded=True).pk


def table(scores: Mapping[str, Score]) -> str:
    lines = ["| way | asks | first | among the first five |", "| --- | --- | --- | --- |"]
    lines += [f"| {way} | {each.asks} | {each.at_1:.0%} | {each.at_5:.0%} |" for way, each in scores.items()]
    return "\n".join(lines)


def main(path: Path) -> None:
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memadmin.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import transaction

    call_command("migrate", verbosity=0)
    with transaction.atomic():
        scores = measure(json.loads(path.read_text()))
        transaction.set_rollback(True)
    print(table(scores))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else CASES)
