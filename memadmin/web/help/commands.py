"""Commands of memadmin with the first sentence of their own help."""

from __future__ import annotations

import re
from functools import cache

from django.core.management import get_commands, load_command_class


@cache
def purpose_of(command: str) -> str:
    """The first sentence of the command's help text."""
    text = load_command_class(get_commands()[command], command).help
    return re.split(r"(?<=\.)\s", text.strip())[0]
