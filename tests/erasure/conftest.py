"""Fixtures of requests of people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def copies_folder(settings: Any, tmp_path: Path) -> Path:
    """A folder of this test alone for copies."""
    settings.ACCESS_COPY_FOLDER = tmp_path / "access-copies"
    return tmp_path / "access-copies"
