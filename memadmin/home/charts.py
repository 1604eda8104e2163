"""Charts: what a template draws, and the same figures as a table. No query. Colours are classes of `app.css`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

NOTHING_COUNTED = "Nothing has been counted yet. The worker counts every five minutes."


@dataclass(frozen=True, slots=True)
class Series:
    """One row of numbers, in the order of the chart's labels."""

    label: str
    # s1, s2 and s3 without a meaning; s-red, s-gold, s-green, s-orange and s-purple with theirs.
    colour: str
    values: Sequence[int | float]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: `templates/home/_chart.html` shows it as a card, `_plot.html` without one."""

    # Unique on the page.
    id: str
    title: str
    # What the picture says, for those who do not see it. The figures are in the table.
    sentence: str
    # Head of the first column of the table.
    row_title: str
    labels: Sequence[str]
    series: Sequence[Series]
    note: str = ""
    form: Literal["bar", "line"] = "bar"
    # Labels of the table's rows, if the axis has shorter ones.
    row_labels: Sequence[str] = ()
    # Why there is nothing to draw.
    empty: str = NOTHING_COUNTED

    @property
    def is_empty(self) -> bool:
        return not any(any(series.values) for series in self.series)

    @property
    def figures(self) -> str:
        """Labels and series as JSON, for `static/charts.js`."""
        series = [{"label": each.label, "colour": each.colour, "data": list(each.values)} for each in self.series]
        return json.dumps({"form": self.form, "labels": list(self.labels), "series": series})

    @property
    def rows(self) -> list[tuple[str, list[int | float]]]:
        """Rows of the table: a label, and a number for each series."""
        labels = self.row_labels or self.labels
        return [(label, [each.values[place] for each in self.series]) for place, label in enumerate(labels)]


def day_labels(days: Sequence[date]) -> list[str]:
    """Short labels of days for an axis: "30 Oct", and only the number within a month."""
    return [f"{day.day} {day:%b}" if place == 0 or day.day == 1 else str(day.day) for place, day in enumerate(days)]


def long_day_labels(days: Sequence[date]) -> list[str]:
    """Labels of days for a table: "3 Nov 2026"."""
    return [f"{day.day} {day:%b %Y}" for day in days]
