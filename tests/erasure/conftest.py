"""Fixtures of tests in which something else happens during an erasure."""

from __future__ import annotations

from tests.erasure.faults import after_chunk, small_chunks

__all__ = ["after_chunk", "small_chunks"]
