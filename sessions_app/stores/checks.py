"""System check for the store kinds in MEMADMIN_STORE_KINDS."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from sessions_app.stores.kinds import kinds


@register
def kinds_of_stores_are_there(**options: Any) -> list[CheckMessage]:
    try:
        kinds()
    except ImproperlyConfigured as problem:
        return [Error(str(problem), hint="docs/own-kind.md describes such a file.", id="memadmin.E003")]
    return []
