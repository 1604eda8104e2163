"""Moments of a sweep at which something else happens."""

from __future__ import annotations

from tests.erasure.faults import after_chunk, small_chunks, start

__all__ = ["after_chunk", "small_chunks", "start"]
