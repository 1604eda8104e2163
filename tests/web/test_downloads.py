"""Files to take away: no cell of a table is a formula, whatever somebody has written into it."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memadmin.web import downloads
from memadmin.web.downloads import as_download, csv_lines

# Told apart from the module's own pattern on purpose: what spreadsheets skip, and what makes them calculate.
SKIPPED = " \u00a0\u200b\u2060\ufeff"
SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
TRIGGERS = f"{SIGNS}\t\r\n"
TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
texts = st.text(st.sampled_from(f"{TRIGGERS}{SKIPPED}a1;,|\"'\x00é\U0001f600")) | st.text()


def read(lines: list[str]) -> list[list[str]]:
    return list(csv.reader(StringIO("".join(lines), newline="")))


def is_formula(cell: str, triggers: str = TRIGGERS) -> bool:
    return cell.lstrip(SKIPPED)[:1] in set(triggers)


@given(st.lists(st.lists(texts, min_size=2, max_size=2), max_size=3))
@example([["=1+1", "\ufeff =cmd|' /C calc'!A0"]])
def test_no_cell_is_a_formula(rows: list[list[str]]) -> None:
    lines = list(csv_lines(["one", "=two"], rows))
    assert len(lines) == 1 + len(rows)
    cells = read(lines)
    assert [len(row) for row in cells] == [2] * (1 + len(rows))
    assert not [cell for row in cells for cell in row if is_formula(cell)]


@given(st.lists(texts, min_size=1, max_size=3))
@example(['a;=HYPERLINK("https://elsewhere.example")', "b"])
@example(["\n=1"])
def test_no_cell_is_a_formula_for_a_program_with_another_delimiter(row: list[str]) -> None:
    for delimiter in ";|\t":
        for piece in re.split(f"[{delimiter}\r\n]", next(csv_lines(row, []))):
            assert not is_formula(piece, SIGNS), delimiter


@given(st.lists(texts, min_size=1, max_size=3))
def test_only_apostrophes_are_added(row: list[str]) -> None:
    (cells,) = read([next(csv_lines(row, []))])
    for cell, text in zip(cells, row, strict=True):
        assert cell.replace("'", "") == text.replace("'", "")


@pytest.mark.parametrize(
    "broken",
    [
        lambda value: str(value),
        lambda value: f"'{value}" if str(value).startswith(("=", "+", "-", "@")) else str(value),
    ],
    ids=["nothing is done", "only the first character is looked at"],
)
def test_cells_that_are_not_made_harmless_are_noticed(
    broken: Callable[[object], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "harmless", broken)
    with pytest.raises(AssertionError):
        test_no_cell_is_a_formula()


def test_ordinary_text_stays_as_it_is() -> None:
    text = "2 + 2 = 4\r\nsecond line; third - fourth\n\nan-na@example.com"
    assert read([next(csv_lines([text], []))]) == [[text]]


def test_none_is_empty_and_every_cell_is_quoted() -> None:
    assert list(csv_lines(["a", "b"], [[None, 5], ['say "hi"', -1]])) == [
        '"a","b"\r\n',
        '"","5"\r\n',
        '"say ""hi""","\'-1"\r\n',
    ]


def test_file_is_kept_by_nobody_and_guessed_at_by_nobody() -> None:
    response = as_download(["a", "\ud800"], "table.csv", "text/csv")
    assert response["Content-Disposition"] == 'attachment; filename="table.csv"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in response["Cache-Control"]
    assert response.getvalue() == b"a\xed\xa0\x80"


def test_no_link_saves_whatever_is_answered() -> None:
    """With the attribute `download` a browser saves an answer that is a page, such as the question for the password."""
    links = [
        path.name
        for path in TEMPLATES.rglob("*.html")
        if re.search(r"<a [^<]*\sdownload(=|>|\s+[a-z-]+=)", path.read_text())
    ]
    assert not links, "the answer says that it is a file: without the attribute"
