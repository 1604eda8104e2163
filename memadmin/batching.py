"""Values in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values in their order, `size` at a time; reads one batch at a time. From Python 3.12 on, itertools has it."""
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch
