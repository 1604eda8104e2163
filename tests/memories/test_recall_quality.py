"""The order of the ways of ranking, on the labelled cases: each part finds more of what helps than without it."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from django.db import transaction

from tests.benchmarks.recall import BOTH, CASES, EXACT, MEANING, WORDS, Result, Score, measure, scores


@pytest.fixture(scope="module")
def cases() -> list[Any]:
    return [json.loads(path.read_text()) for path in CASES]


def test_labels_name_memories_and_times_lists_and_names_are_asked_for_in_both_halves(cases: list[Any]) -> None:
    for group in (group for file in cases for group in file["subjects"]):
        known = {name for file in cases for name in file["shared"]} | set(group["memories"])
        for query, *_, wanted in group["asks"]:
            assert wanted, query
            assert set(wanted) <= known, query
    kinds = Counter((group["half"], ask[1]) for group in cases[1]["subjects"] for ask in group["asks"])
    assert sum(kinds.values()) >= 100
    assert all(kinds[half, kind] >= 18 for half in ("development", "held") for kind in ("temporal", "several", "names"))


@pytest.mark.release
@pytest.mark.django_db
def test_each_part_finds_more_of_what_helps(cases: list[Any]) -> None:
    results = list[Result]()
    for file in cases:
        with transaction.atomic():
            results += measure(file)
            transaction.set_rollback(True)
    both = {half: [each for each in results if each.half == half] for half in ("development", "held")}
    assert_order(scores(results), (WORDS, MEANING, EXACT, BOTH))
    for half, least in (("development", 0.865), ("held", 0.84)):
        found = scores(both[half])
        assert found[BOTH].asks >= 75
        assert_order(found, (WORDS, EXACT, BOTH))
        assert found[BOTH].at_5 > least


def assert_order(found: dict[str, Score], ways: tuple[str, ...]) -> None:
    for worse, better in pairwise(ways):
        assert found[better].at_1 > found[worse].at_1, (worse, better)
        assert found[better].at_5 > found[worse].at_5, (worse, better)
