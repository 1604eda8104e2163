"""How a typed text is read, and what is marked where it was found."""

from __future__ import annotations

import json

import pytest

from sessions_app.search.snippets import snippet
from sessions_app.search_syntax import ParsedSearch, Unsearchable
from tests.cases import for_each


@for_each(
    ("typed", "asked"),
    [
        ("refund", '"refund"'),
        ("refund seat", '"refund" "seat"'),
        ('"seat 14A" refund', '"seat 14A" "refund"'),
        ("refund -card", '"refund" -"card"'),
        ('refund -"credit card"', '"refund" -"credit card"'),
        ("a b or c", '"a" "b" or "c"'),
        ("or", '"or"'),
        ("a or", '"a"'),
        ('"or"', '"or"'),
        ("T-90420", '"T 90420"'),
        ("jane@shop.example", '"jane shop example"'),
        ("a && b", '"a" "b"'),
        ("東京 タワー", '"東 京" "タ ワ ー"'),
        ("“curly”", '"curly"'),
        ("it's 100%", '"it\'s" "100%"'),
    ],
)
def test_what_is_typed_is_asked(typed: str, asked: str) -> None:
    assert str(ParsedSearch.parse(typed)) == asked


def test_a_quotation_mark_that_is_not_closed_is_mentioned() -> None:
    parsed = ParsedSearch.parse('a 15" screen')
    assert str(parsed) == '"a" "15" "screen"'
    assert "not closed" in parsed.note


@for_each(("typed", "sentence"), [("!?", "at least one letter or digit"), ("-refund", "has only excluded words")])
def test_a_text_with_nothing_to_look_for_is_refused(typed: str, sentence: str) -> None:
    with pytest.raises(Unsearchable, match=sentence):
        ParsedSearch.parse(typed)


def shown(typed: str, stored: object) -> str:
    """The snippet with what was found in brackets."""
    found = snippet(
        stored if isinstance(stored, str) else json.dumps(stored), ParsedSearch.parse(typed).visible_pattern()
    )
    return "".join(f"[{text}]" if is_hit else text for text, is_hit in found.parts)


@for_each(
    ("typed", "stored", "marked"),
    [
        ("refund", {"role": "user", "content": "A refund, please. Refunds?"}, "A [refund], please. Refunds?"),
        ("CAFÉ", {"content": "le café"}, "le [café]"),
        ("T-90420", {"content": "ticket t-90420 and T 90420"}, "ticket [t-90420] and [T 90420]"),
        ('"seat 14a"', {"content": "14A, seat\n14A"}, "14A, [seat 14A]"),
        ("京", {"content": "東京"}, "東[京]"),
        (
            "refund -user",
            {"role": "user", "content": [{"type": "input_text", "text": "the user refund"}]},
            "the user [refund]",
        ),
        ("josé", {"output": json.dumps({"name": "José\nHi"})}, '{"name": "[José] Hi"}'),
        ("user", {"role": "user", "content": "hello"}, "hello"),
        ("b", {"content": "<b>&amp;</b>"}, "<[b]>&amp;</[b]>"),
        ("rest", '{"content": "cut off, the rest is', "cut off, the [rest] is"),
        ("corrupt", "} corrupt {", "} [corrupt] {"),
        ("half", '{"content":"half \\ud800 \\u0000"}', "[half] \N{REPLACEMENT CHARACTER} \N{SYMBOL FOR NULL}"),
        ("x", {"content": []}, ""),
    ],
)
def test_the_place_is_shown_and_marked(typed: str, stored: object, marked: str) -> None:
    assert shown(typed, stored) == marked


def test_the_surroundings_are_cut_at_words() -> None:
    text = shown("needle", {"content": "before " * 500 + "needle" + " after" * 500})
    assert text.startswith("…before before")
    assert " [needle] after" in text
    assert text.endswith("…")
    assert len(text) < 300


def test_words_without_end_are_cut_too() -> None:
    assert len(shown("needle", {"content": "x" * 100_000 + " needle " + "y" * 100_000})) < 400
