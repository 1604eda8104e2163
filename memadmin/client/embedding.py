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
from typing import Any, NamedTuple, Protocol

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

COMMON_PART = 0.5
"""Share of the mean of all tokens' vectors that is subtracted when texts and words are compared."""

NEARNESS = 0.7
"""Exponent of the likeness of two words: below 1, a word that is only near counts more."""


class Embedder(Protocol):
    """Stored with its vectors; another model or size has another name."""

    name: str

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector of length 1 for each text, in the same order."""
        ...


class Likeness(NamedTuple):
    """Likeness of a text to a query: `meaning` is the cosine of their vectors, -1 to 1; `words` is the share of the
    query's words that the text has, 0 to 1, to which similar words count in part.
    """

    meaning: float
    words: float


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


def compare(embedder: Embedder, query: str, texts: Sequence[str]) -> list[Likeness] | None:
    """Likeness of each text to the query; None if the embedder has no vectors of words."""
    return embedder.compare(query, texts) if isinstance(embedder, WordLlamaEmbedder) else None


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

    def compare(self, query: str, texts: Sequence[str]) -> list[Likeness]:
        """Likeness of each text to the query. For `words` each word of the query counts as much as the closest word of
        the text is like it; the result is their weighted mean. Linear in the number of texts.

        Words weigh more if they are rare, in general or among these texts. A word with a digit names one thing, so no
        other word is like it.
        """
        import numpy

        asked, said = words_of(query), [words_of(text) for text in texts]
        column = {word: number for number, word in enumerate(dict.fromkeys(word for words in said for word in words))}
        whole = _without_common_part([query, *texts])
        meanings = whole[1:] @ whole[0]
        if not asked or not column:
            return [Likeness(float(meaning), 0.0) for meaning in meanings]
        words = _without_common_part([*asked, *column])
        likeness = numpy.clip(words[: len(asked)] @ words[len(asked) :].T, 0, 1) ** NEARNESS
        is_name = numpy.array([any(map(str.isdigit, word)) for word in (*asked, *column)])
        likeness[is_name[: len(asked), None] | is_name[None, len(asked) :]] = 0
        for row, word in enumerate(asked):
            if word in column:
                likeness[row, column[word]] = 1
        closest = numpy.zeros((len(texts), len(asked)))
        for row, own in enumerate(said):
            if own:
                closest[row] = likeness[:, [column[word] for word in own]].max(axis=1)
        having = closest.sum(axis=0)
        weights = numpy.log1p((len(texts) - having + 0.5) / (having + 0.5))
        encoded = _wordllama().tokenizer.encode_batch(asked, add_special_tokens=False)
        weights *= [_rarity(each) for each in encoded]
        shares = closest @ weights / (weights.sum() or 1)
        return [Likeness(float(meaning), float(share)) for meaning, share in zip(meanings, shares, strict=True)]


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


def _without_common_part(texts: list[str]) -> Any:
    """Vectors of length 1 of texts or words, as rows, less half of what the vectors of all tokens have in common.

    That part says nothing about a meaning (Mu, Viswanath: All-but-the-Top, ICLR 2018). Half of it, because that found
    most (docs/recall.md).
    """
    import numpy

    vectors = numpy.nan_to_num(_wordllama().embed(texts) - COMMON_PART * _mean_of_tokens())
    return vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


@cache
def _mean_of_tokens() -> Any:
    return _wordllama().embedding[FIRST_TOKEN:].mean(axis=0)
