"""Formatter of the log: one line for a refused request, a traceback only for a fault of the server."""

from __future__ import annotations

import copy
import logging

FAULTS = 500
"""Status codes from here on are faults of the server; refusals are below."""


class RefusalsInOneLine(logging.Formatter):
    """Django logs permission denied, bad requests and wrong host names with a traceback, which any client can cause."""

    def format(self, record: logging.LogRecord) -> str:
        if getattr(record, "status_code", FAULTS) >= FAULTS:
            return super().format(record)
        # A copy: other handlers get the record with its exception.
        brief = copy.copy(record)
        brief.exc_info = brief.exc_text = brief.stack_info = None
        if record.name == "django.security.DisallowedHost":
            brief.msg, brief.args = naming_our_setting(record.getMessage()), ()
        return " ".join(super().format(brief).split("\n"))


def naming_our_setting(message: str) -> str:
    """Django's message about an unknown Host, with the name of the environment variable and what a proxy has to do."""
    return message.replace(
        " to ALLOWED_HOSTS.",
        " to MEMADMIN_ALLOWED_HOSTS. Behind a proxy, let it pass the Host header of the browser's request.",
    )
