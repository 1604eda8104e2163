"""From a file to lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memadmin.erasure.batches.parsing import MOST_LINES, BadFile, parse


def keys(data: bytes) -> list[tuple[int, str, str]]:
    return [(line.number, line.text.key, line.problem) for line in parse(data)]


@pytest.mark.parametrize(
    "data",
    [
        b"ann\nbob\n",
        b"key\nann\nbob",
        b"key,kind,note\r\nann,user,\r\nbob,user,left\r\n",
        b'key;kind;note\nann;user;\nbob;user;"a;b"\n',
        b"\xef\xbb\xbfKey,Kind\nann,USER\nbob,user\n",
        b"ann\rbob\r",
        b'"ann","user","two\nlines"\n\n"bob"',
        b"ann,user,\n,,\n  \nbob,,\n",
    ],
)
def test_every_usual_form_is_read(data: bytes) -> None:
    lines = parse(data)
    assert [(line.text.key, line.text.kind, line.problem) for line in lines] == [
        ("ann", "user", ""),
        ("bob", "user", ""),
    ]


def test_line_numbers_are_those_of_an_editor() -> None:
    assert keys(b'key,kind,note\n\nann,user,"two\nlines"\n\nbob') == [(3, "ann", ""), (6, "bob", "")]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (",user", "missing"),
        ("a,user,note,more", "separators"),
        ("x" * 513, "too_long"),
        ("a,user," + "x" * 501, "too_long"),
        ("a,person", "wrong_kind"),
        ('"a;b",user', ""),
    ],
)
def test_a_broken_line_is_named_and_the_others_stay(line: str, problem: str) -> None:
    found = keys(f"key,kind,note\nann,user,\n{line}\nbob,user,\n".encode())
    assert [(number, problem) for number, _, problem in found] == [(2, ""), (3, problem), (4, "")]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "contains no lines"),
        (b"key,kind,note\n", "contains no lines"),
        ("key\nann".encode("utf-16"), "Line 1 is not UTF-8"),
        (b"ann\nm\xfcller\n", "Line 2 is not UTF-8"),
        (b"ann\0\n", "contains a NUL"),
        (b'ann\n"bob\n', "quotation mark"),
        (b"key,note\nann,left\n", "columns are key, kind and note"),
        (b"x" * 1_000_001, "larger than 1 MB"),
        (b"ann\n" * (MOST_LINES + 1), "more than 5,000 lines"),
    ],
)
def test_a_file_that_cannot_be_read_gets_a_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(BadFile, match=sentence):
        parse(data)


@given(st.binary(max_size=300))
def test_no_file_breaks_it(data: bytes) -> None:
    try:
        lines = parse(data)
    except BadFile:
        return
    assert [line.number for line in lines] == sorted({line.number for line in lines})


def test_texts_are_in_no_representation() -> None:
    assert "ann" not in repr(parse(b"ann,user,secret"))
