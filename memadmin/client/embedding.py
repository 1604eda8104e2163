"""Texts in, vectors out: 256 numbers that lie close together where texts mean alike.

The console and the agents load the same embedder by its name; what one wrote the other can compare. Vectors of
different embedders cannot be compared, so each is stored with the name of its own.
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
"""How long a hosted embedder may take for a call, which is tried twice."""


class Embedder(Protocol):
    """Its name is stored with what it made; a change of model or size is another name."""

    name: str

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector of length 1 for each text, in the same order."""
        ...


class UnknownEmbedder(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is no embedder: take {OFFLINE}, {OPENAI}text-embedding-3-small or {NONE}.")


class UnfitVectors(ValueError):
    """What an embedder answered cannot be compared: another size, too few, or numbers that are none."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The embedder {name} answered something else than {DIMENSIONS} numbers for each text.")


def embed(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """What it makes, once that was looked at: who speaks a protocol may ignore the size that it asks for. Raises
    UnfitVectors, and whatever the embedder does."""
    made = embedder.embed(texts)
    if len(made) != len(texts) or not all(len(vector) == DIMENSIONS and _is_small(vector) for vector in made):
        raise UnfitVectors(embedder.name)
    return made


def _is_small(vector: Sequence[float]) -> bool:
    """NaN is not, nor what four bytes do not hold."""
    return sum(map(abs, vector)) < 1e30


class WordLlamaEmbedder:
    """Averages of word vectors: no network, no model server, thousands of texts a second. English above all."""

    name = "wordllama-256"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        # A text without a word that it knows would come back as a vector of NaN.
        made = _wordllama().embed([text if text.strip() else "." for text in texts], norm=True)
        return [[float(number) if number == number else 0.0 for number in vector] for vector in made]


class OpenAIEmbedder:
    """A hosted model of OpenAI, or of whoever speaks its protocol at OPENAI_BASE_URL."""

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
