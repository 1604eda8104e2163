"""Fixtures of requests of people, and of what happens during an erasure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from memadmin.erasure.suppression import entering
from memadmin.erasure.suppression.ledger import Ledger
from tests.erasure.faults import after_chunk, reads, small_chunks, start
from tests.people import person

__all__ = ["after_chunk", "copies_folder", "reads", "small_chunks", "start"]


@pytest.fixture
def officer(db: None) -> User:
    """Who handles requests."""
    return person("compliance")


@pytest.fixture
def second(db: None) -> User:
    """Another one, who approves."""
    return person("compliance", "reviewer")


@pytest.fixture
def copies_folder(settings: Any, tmp_path: Path) -> Path:
    """A folder of this test alone for copies."""
    settings.ACCESS_COPY_FOLDER = tmp_path / "access-copies"
    return tmp_path / "access-copies"


@pytest.fixture
def ledger(tmp_path: Path, settings: Any) -> Iterator[Ledger]:
    """The suppression ledger of this test alone."""
    settings.SUPPRESSION_LEDGER = tmp_path / "suppressions.jsonl"
    entering.check_again()
    yield Ledger(tmp_path / "suppressions.jsonl")
    entering.check_again()
