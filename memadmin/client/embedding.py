"""Embedders: turn texts into vectors of 256 numbers, which are close together for similar meanings.

The console and the agents load the same embedder by its name; one compares the vectors that the other stored. Vectors
of different embedders cannot be compared, so each is stored with its embedder's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
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
