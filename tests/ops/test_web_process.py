"""What a process of the web server loads before the first request: memory that is taken many times over."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.conf import settings

LOADED = """
import sys
import memadmin.wsgi
from django.urls import get_resolver
from sessions_app.stores.kinds import kinds
assert get_resolver().url_patterns and kinds()
print(*{name.partition(".")[0] for name in sys.modules})
"""
OF_AGENTS_AND_STORES = {"agents", "openai", "agno", "phi", "pymongo", "redis", "grpc", "dapr", "aiohttp", "boto3"}


@pytest.mark.slow
def test_neither_the_sdk_nor_a_driver_is_loaded_until_somebody_needs_it() -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=settings.CHECKOUT_DIR, capture_output=True, text=True, check=True
    )
    loaded = set(run.stdout.split())
    assert "django" in loaded
    assert not loaded & OF_AGENTS_AND_STORES
