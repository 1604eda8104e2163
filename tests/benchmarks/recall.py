"""Share of the memories that help among the first five, for each way of ranking, on labelled cases.

    python -m tests.benchmarks.recall [FILE ...]

A FILE has the shape of tests/data/recall-cases.json or recall-cases-conversations.json; without one, both are measured.
Runs in a transaction that is rolled back. The last lines are the time that a ranking takes, with and without comparing
word by word.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "data"
CASES = (DATA / "recall-cases.json", DATA / "recall-cases-conversations.json")
FIRST = 5

WORDS, MEANING, EXACT, BOTH = "words alone", "meaning alone", "meaning and exact words", "meaning and similar words"
WAYS = (WORDS, MEANING, EXACT, BOTH)


@dataclass(frozen=True, slots=True)
class Score:
    """Of all questions, the share whose first memory helps; and the share of what helps that is among the first
    five, averaged over the questions.
    """

    asks: int
    at_1: float
    at_5: float


@dataclass(frozen=True, slots=True)
class Result:
    """Ranks of the memories that help with one question, None for one that was not found."""

    half: str
    kind: str
    ranks: Mapping[str, Sequence[int | None]]


def measure(cases: Mapping[str, Any]) -> list[Result]:
    """The ranks of each way; memories are written to the database as approved ones, and embedded."""
    results: list[Result] = []
    shared = {name: _approved(text, None) for name, text in cases["shared"].items()}
    for group in cases["subjects"]:
        subject = _subject(group["name"])
        ids = shared | {name: _approved(text, subject) for name, text in group["memories"].items()}
        for query, *kind, wanted in group["asks"]:
            orders = dict(_orders(query, subject))
            ranks = {way: [_rank(ids[name], order) for name in wanted] for way, order in orders.items()}
            results.append(Result(group.get("half", "development"), kind[0] if kind else "one memory", ranks))
    return results


def _rank(memory: Any, order: Sequence[Any]) -> int | None:
    return order.index(memory) + 1 if memory in order else None


def scores(results: Sequence[Result]) -> dict[str, Score]:
    """The score of each way."""
    return {way: _score([each.ranks[way] for each in results]) for way in WAYS}


def _score(asked: Sequence[Sequence[int | None]]) -> Score:
    firsts = [1 in ranks for ranks in asked]
    shares = [sum(rank is not None and rank <= FIRST for rank in ranks) / len(ranks) for ranks in asked]
    return Score(len(asked), sum(firsts) / len(asked), sum(shares) / len(asked))


def _orders(query: str, subject: Any) -> Iterator[tuple[str, list[Any]]]:
    """The order of each way: without words the same function ranks by meaning alone."""
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
    compared = candidates.with_likeness(found, query, embedder)
    for way, some in zip(WAYS, (by_words, by_meaning, found, compared), strict=True):
        yield way, [chosen.memory.id for chosen in choose(some, budget=100_000).chosen]


def _subject(name: str) -> Any:
    from sessions_app.models import Subject, SubjectAlias

    subject = Subject.objects.create()
    SubjectAlias.objects.create(subject=subject, kind="user", key=f"recall case: {name}", is_primary=True)
    return subject


def _approved(statement: str, subject: Any) -> Any:
    from tests.memories.builders import approved

    return approved(statement, subject=subject, is_embedded=True).pk


def table(measured: Mapping[str, Mapping[str, Score]]) -> str:
    """Rows are ways, columns the named sets of questions: first memory right / share among the first five."""
    lines = ["| method | " + " | ".join(f"{name} ({one[BOTH].asks})" for name, one in measured.items()) + " |"]
    lines.append("| --- |" + " --- |" * len(measured))
    for way in WAYS:
        cells = (f"{one[way].at_1 * 100:.0f} / {one[way].at_5 * 100:.0f} %" for one in measured.values())
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def times() -> str:
    """Milliseconds of a ranking for some numbers of candidates, as the least of seven."""
    from uuid import UUID

    from memadmin.client import candidates, embedding
    from memadmin.client.recalling import choose

    embedder = embedding.load(embedding.OFFLINE)
    assert embedder is not None
    cases = json.loads(CASES[1].read_text())
    texts = [text for group in cases["subjects"] for text in group["memories"].values()]
    query = "What did I do to sleep better, and since when?"
    embedder.embed([query])
    lines = ["| candidates | exact words, ms | similar words, ms | ratio |", "| --- | --- | --- | --- |"]
    for count in (10, 100, 500):
        some = [
            candidates.Candidate(
                UUID(int=number), 1, "fact", "", f"{texts[number % len(texts)]} {number}", None, True, "explicit",
                None, 0.5, ("sleep", "better", "sinc"), ("sleep",),
            )
            for number in range(count)
        ]  # fmt: skip
        plain = _least(lambda some=some: choose(some))  # type: ignore[misc]
        compared = _least(lambda some=some: choose(candidates.with_likeness(some, query, embedder)))  # type: ignore[misc]
        lines.append(f"| {count} | {plain:.2f} | {compared:.2f} | {compared / plain:.1f} |")
    return "\n".join(lines)


def _least(work: Callable[[], object]) -> float:
    def once() -> float:
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1000

    return min(once() for _ in range(7))


def main(paths: Sequence[Path]) -> None:
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memadmin.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import transaction

    call_command("migrate", verbosity=0)
    measured: dict[str, dict[str, Score]] = {}
    for path in paths:
        with transaction.atomic():
            results = measure(json.loads(path.read_text()))
            transaction.set_rollback(True)
        for half in dict.fromkeys(each.half for each in results):
            of_half = [each for each in results if each.half == half]
            measured[f"{path.stem} {half}"] = scores(of_half)
            kinds = dict.fromkeys(each.kind for each in of_half)
            if len(kinds) > 1:
                measured |= {f"{half}: {kind}": scores([e for e in of_half if e.kind == kind]) for kind in kinds}
    print(table(measured))
    print(times())


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or CASES)
