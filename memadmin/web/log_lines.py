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
        return " ".join(super().format(brief).split("\n"))
