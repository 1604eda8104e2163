"""Likeness to a query by the offline embedder, in meaning and word by word, and the candidates that have it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from memadmin.client.candidates import with_likeness
from memadmin.client.embedding import MOST_WORDS, WordLlamaEmbedder, compare, words_of
from tests.cases import for_each
from tests.client.test_recalling import candidate

EMBEDDER = WordLlamaEmbedder()


def likeness(query: str, *texts: str) -> list[float]:
    found = compare(EMBEDDER, query, texts)
    assert found is not None
    return [each.words for each in found]


def meaning(query: str, *texts: str) -> list[float]:
    return [each.meaning for each in EMBEDDER.compare(query, texts)]


def test_the_meaning_of_a_text_is_nearest_to_itself() -> None:
    itself, near, far = meaning("They drink tea.", "They drink tea.", "She likes coffee.", "The printer has no paper.")
    assert itself == pytest.approx(1)
    assert itself > near > far + 0.1


def test_a_near_word_counts_more_than_its_cosine() -> None:
    near, far = likeness("bicycle", "bike", "printer")
    ((cosine,), (unlike,)) = (meaning("bicycle", word) for word in ("bike", "printer"))
    assert near > cosine + 0.05
    assert far < near - 0.2
    assert unlike < cosine


def test_the_closest_word_counts() -> None:
    soup, bike = likeness("Is the refrigerator broken?", "The fridge was repaired.", "Rides a bicycle to work.")
    assert soup > bike
    assert likeness("bicycle", "Has a bicycle.") == [pytest.approx(1)]


def test_a_word_with_a_digit_is_like_no_other_word() -> None:
    this, other = likeness("48213", "Order 48213 was refunded.", "Order 48231 was refunded.")
    assert this == pytest.approx(1)
    assert other == 0


def test_rare_words_count_more_than_frequent_ones() -> None:
    frequent, rare = likeness("the glockenspiel", "the", "glockenspiel")
    assert rare > frequent + 0.3


@for_each(("common", "single"), [("order", "coat"), ("coat", "order")])
def test_a_word_that_most_of_the_texts_have_counts_less(common: str, single: str) -> None:
    *others, one = likeness("order coat", *[f"{common} {number}" for number in range(8)], single)
    assert one > max(others)


@for_each("query", ["", "?!", "\x00", "ありがとう", "🚲", "x" * 3000, "word " * 3000])
@for_each("text", ["", "...", "Ордер 7", "🚲", "y" * 3000, "Has a bicycle."])
def test_any_text_has_a_share_between_0_and_1(query: str, text: str) -> None:
    assert all(0 <= share <= 1.000001 for share in likeness(query, text, "Has a bicycle."))
    assert all(-1.000001 <= cosine <= 1.000001 for cosine in meaning(query, text, "Has a bicycle."))


def test_no_texts_have_no_shares() -> None:
    assert likeness("bicycle") == []


def test_long_texts_are_compared_by_their_first_words() -> None:
    assert len(words_of(" ".join(f"word{number}" for number in range(1000)))) == MOST_WORDS
    assert words_of("The user's T-71120, the café") == ["the", "user's", "t-71120", "café"]


def test_embedders_without_vectors_of_words_leave_candidates_as_they_are() -> None:
    class Hosted:
        name = "openai:a-model-256"

        def embed(self, texts: list[str]) -> list[list[float]]:
            raise AssertionError("nothing is sent for words")

    found = [candidate(1, words=1), candidate(2)]
    assert with_likeness(found, "order", Hosted()) == found  # type: ignore[arg-type]


def test_candidates_keep_everything_else() -> None:
    found = [candidate(1, words=1, statement="Has a bicycle."), candidate(2, statement="Drinks tea.")]
    compared = with_likeness(found, "bicycle", EMBEDDER)
    assert [replace(each, likeness=None, word_likeness=None) for each in compared] == found
    assert compared[0].word_likeness == pytest.approx(1)
    assert (compared[0].likeness or 0) > (compared[1].likeness or 0)
    assert compared[0].id == UUID(int=1)
