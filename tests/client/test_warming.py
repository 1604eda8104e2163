"""The embedder is loaded before the first recall, beside the event loop."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from memadmin.client import embedding
from memadmin.client.synchronous import SyncMemoryClient
from tests.cases import for_each
from tests.client.agents import client_at, in_agent


def test_a_warm_client_has_loaded_the_embedder_beside_its_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    load = embedding._wordllama.__wrapped__

    @cache
    def loaded() -> Any:
        threads.append(threading.current_thread().name)
        return load()

    embedding._mean_of_tokens.cache_clear()
    monkeypatch.setattr(embedding, "_wordllama", loaded)
    client = client_at("postgresql://nobody.invalid/none")

    async def run() -> Sequence[float] | None:
        await client.warm()
        assert len(threads) == 1
        return await client._vector_of("tea")

    assert in_agent(run)
    assert len(threads) == 1
    assert threads[0].startswith("memadmin-client")


@for_each("embedder", ["none", "openai:text-embedding-3-small"])
def test_embedders_with_nothing_to_load_are_warm(embedder: str) -> None:
    in_agent(client_at("postgresql://nobody.invalid/none", embedder=embedder).warm)


def test_an_embedder_that_cannot_be_loaded_ends_no_program(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("the weights are gone")

    monkeypatch.setattr(embedding, "_wordllama", fail)
    in_agent(client_at("postgresql://nobody.invalid/none").warm)
    assert [record.message for record in caplog.records] == ["The embedder could not be loaded (OSError)."]


def test_a_client_without_an_event_loop_is_warmed_too() -> None:
    embedding._wordllama.cache_clear()
    with SyncMemoryClient("postgresql://nobody.invalid/none") as client:
        client.warm()
    assert embedding._wordllama.cache_info().currsize == 1
