"""The client alone, as an agent's process loads it."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOAD_EVERYTHING = """
import importlib, pkgutil, sys
import memadmin.client

for module in pkgutil.iter_modules(memadmin.client.__path__):
    importlib.import_module(f"memadmin.client.{module.name}")
print(sorted({name.split(".")[0] for name in sys.modules} & {"django", "sessions_app", "memories_app", "wordllama"}))
"""


@pytest.mark.slow
def test_no_django_is_loaded_and_no_model_of_words_before_it_is_needed() -> None:
    ran = subprocess.run([sys.executable, "-c", LOAD_EVERYTHING], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
