"""That both rankings together find what helps more often than either alone, on the labelled cases."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks.recall import CASES, measure


@pytest.mark.django_db
def test_both_together_beat_either_alone() -> None:
    scores = measure(json.loads(CASES.read_text()))
    both = scores["both"]
    assert both.asks >= 60
    for way in ("words alone", "meaning alone"):
        assert both.at_5 > scores[way].at_5, way
        assert both.at_1 > scores[way].at_1, way
    assert both.at_5 > 0.8
