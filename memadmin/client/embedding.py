"""Embedders: turn texts into vectors of 256 numbers, which are close together for similar meanings.

The console and the agents load the same embedder by its name; one compares the vectors that the other stored. Vectors
of different embedders cannot be compared, so each is stored with its embedder's name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from math import log1p
from pathlib import Path
from typing import Any, Protocol

DIMENSIONS = 256

OFFLINE = "wordllama"
NONE = "none"
OPENAI = "openai:"

BATCH = 256
"""Texts in one call of a hosted embedder."""

SECONDS = 30.0
"""Time limit for a call to a hosted embedder, which is tried twice."""


WORD = re.compile(r"[^\W_]+(?:[-'\N{RIGHT SINGLE QUOTATION MARK}][^\W_]+)*")
LONGEST_WORD = 32
MOST_WORDS = 200
"""Words of a text that are compared; a text of 2,000 characters has about 330."""

RARE = 3000
"""Place in the tokenizer's list, which is sorted by frequency, from which on tokens count as rare."""

FIRST_TOKEN = 259
"""The tokens before it are single bytes."""


class Embedder(Protocol):
    """Stored with its vectors; another model or size has another name."""

    name: str

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector of length 1 for each text, in the same order."""
        ...


class UnknownEmbedder(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is not an embedder: use {OFFLINE}, {OPENAI}text-embedding-3-small or {NONE}.")


class UnfitVectors(ValueError):
    """The result of an embedder cannot be compared: another size, too few vectors, or values that are not numbers."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The embedder {name} did not return {DIMENSIONS} numbers for each text.")


def embed(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """Checked vectors: a compatible server may ignore the requested size. Raises UnfitVectors, and exceptions of the
    embedder.
    """
    made = embedder.embed(texts)
    if len(made) != len(texts) or not all(len(vector) == DIMENSIONS and _is_small(vector) for vector in made):
        raise UnfitVectors(embedder.name)
    return made


def word_likeness(embedder: Embedder, query: str, texts: Sequence[str]) -> list[float] | None:
    """Likeness of each text to the query word by word, 0 to 1; None if the embedder has no vectors of words."""
    return embedder.word_likeness(query, texts) if isinstance(embedder, WordLlamaEmbedder) else None


def _is_small(vector: Sequence[float]) -> bool:
    """False for NaN, and for numbers that do not fit into four bytes."""
    return sum(map(abs, vector)) < 1e30


class WordLlamaEmbedder:
    """Averages of word vectors: no network, no model server, thousands of texts a second. English above all."""

    name = "wordllama-256"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        # For a text without a known word it would return a vector of NaN.
        made = _wordllama().embed([text if text.strip() else "." for text in texts], norm=True)
        return [[float(number) if number == number else 0.0 for number in vector] for vector in made]

    def word_likeness(self, query: str, texts: Sequence[str]) -> list[float]:
        """Likeness of each text to the query, 0 to 1: for each word of the query that of the closest word of the text,
        averaged with the weight of the word. Linear in the number of texts.

        Rare words weigh more: rare in general, or among these texts. A word with a digit names one thing, so it is like
        no other word.
        """
        import numpy

        asked, said = words_of(query), [words_of(text) for text in texts]
        if not asked or not any(said):
            return [0.0] * len(texts)
        column = {word: number for number, word in enumerate(dict.fromkeys(word for words in said for word in words))}
        model = _wordllama()
        vectors = numpy.nan_to_num(model.embed([*asked, *column], norm=True))
        is_name = numpy.array([any(map(str.isdigit, word)) for word in (*asked, *column)])
        likeness = numpy.clip(vectors[: len(asked)] @ vectors[len(asked) :].T, 0, 1)
        likeness[is_name[: len(asked), None] | is_name[None, len(asked) :]] = 0
        for row, word in enumerate(asked):
            if word in column:
                likeness[row, column[word]] = 1
        closest = numpy.zeros((len(texts), len(asked)))
        for row, words in enumerate(said):
            if words:
                closest[row] = likeness[:, [column[word] for word in words]].max(axis=1)
        having = closest.sum(axis=0)
        weights = numpy.log1p((len(texts) - having + 0.5) / (having + 0.5))
        weights *= [_rarity(encoded) for encoded in model.tokenizer.encode_batch(asked, add_special_tokens=False)]
        return [float(share) for share in closest @ weights / (weights.sum() or 1)]


class OpenAIEmbedder:
    """A hosted model of OpenAI, or of a compatible server at OPENAI_BASE_URL."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.name = f"{OPENAI}{model}-{DIMENSIONS}"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        from openai import OpenAI

        client, made = OpenAI(timeout=SECONDS, max_retries=1), list[list[float]]()
        for start in range(0, len(texts), BATCH):
            some = [text or " " for text in texts[start : start + BATCH]]
            answer = client.embeddings.create(model=self.model, input=some, dimensions=DIMENSIONS)
            made += [row.embedding for row in sorted(answer.data, key=lambda row: row.index)]
        return made


def words_of(text: str) -> list[str]:
    """The different words of a text in lower case, in their order; MOST_WORDS at most."""
    found = dict.fromkeys(match[0].lower()[:LONGEST_WORD] for match in WORD.finditer(text))
    return list(found)[:MOST_WORDS]


def _rarity(encoded: Any) -> float:
    """Rarity of a word in general: 0 for the most frequent, about 2.4 for the rarest; that of its rarest token."""
    tokens = [token for token, is_token in zip(encoded.ids, encoded.attention_mask, strict=True) if is_token]
    return log1p(max(0, max(tokens, default=0) - FIRST_TOKEN) / RARE)


@cache
def load(name: str) -> Embedder | None:
    """The embedder of this name, as `MEMADMIN_EMBEDDER` has it; None for "none". Raises UnknownEmbedder."""
    if name == NONE:
        return None
    if name == OFFLINE:
        return WordLlamaEmbedder()
    if name.startswith(OPENAI) and len(name) > len(OPENAI):
        return OpenAIEmbedder(name.removeprefix(OPENAI))
    raise UnknownEmbedder(name)


@cache
def _wordllama() -> Any:
    """Loaded once, 0.4 s. Its own look-up misses the tokenizer that is in the package, and asks the network for it."""
    import wordllama

    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
